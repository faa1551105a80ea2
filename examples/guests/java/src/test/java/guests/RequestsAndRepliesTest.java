package guests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/**
 * Request-reply, as `producer.request` and Spring's `sendAndReceive` use it; add `-Drocketmq.version=5.3.0` for a client
 * that can wait for a reply.
 */
@EnabledIfEnvironmentVariable(named = "NAMESRV_ADDR", matches = ".+")
class RequestsAndRepliesTest {
    private static final String TOPIC = "JavaPrices";
    private static final int WITHIN_MS = 20_000;

    private DefaultMQProducer asks;
    private DefaultMQProducer answers;
    private DefaultMQPushConsumer consumer;

    @BeforeEach
    void start() throws Exception {
        asks = producer("java-asks");
        answers = producer("java-answers");
        asks.createTopic("TBW102", TOPIC, 4, Map.of()); // else the consumer sees new brokers up to 30 s later
        consumer = new DefaultMQPushConsumer("java-prices");
        consumer.setNamesrvAddr(System.getenv("NAMESRV_ADDR"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "price");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                try {
                    answers.send(MessageUtil.createReplyMessage(message, bytes("price of " + text(message))));
                } catch (Exception error) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }

    @AfterEach
    void stop() {
        consumer.shutdown();
        answers.shutdown();
        asks.shutdown();
    }

    @Test
    void everyRequestGetsItsReplyAndOneThatNobodyAnswersTimesOut() throws Exception {
        for (int i = 0; i < 20; i++) {
            Message reply = request("price", "book-" + i, WITHIN_MS).get(WITHIN_MS, TimeUnit.MILLISECONDS);
            assertEquals("price of book-" + i, text(reply));
        }
        CompletableFuture<Message> never = request("nobody", "chair", 2_000);
        ExecutionException failed =
            assertThrows(ExecutionException.class, () -> never.get(WITHIN_MS, TimeUnit.MILLISECONDS));
        assertInstanceOf(RequestTimeoutException.class, failed.getCause());
    }

    @Test
    void whoWaitsForTheReplyGetsIt() throws Exception {
        boolean waits = MQVersion.CURRENT_VERSION <= MQVersion.Version.V5_3_0.ordinal();
        assumeTrue(waits, "clients 5.3.1 to 5.3.3 give up as soon as the request is sent: fixed by pull request 9608");
        for (int i = 0; i < 20; i++) {
            Message reply = asks.request(new Message(TOPIC, "price", bytes("pen-" + i)), WITHIN_MS);
            assertEquals("price of pen-" + i, text(reply));
        }
    }

    private CompletableFuture<Message> request(String tag, String what, long withinMs) throws Exception {
        CompletableFuture<Message> reply = new CompletableFuture<>();
        asks.request(new Message(TOPIC, tag, bytes(what)), new RequestCallback() {
            @Override
            public void onSuccess(Message message) {
                if (message != null) { // null: only the request has arrived; these clients call back then, too
                    reply.complete(message);
                }
            }

            @Override
            public void onException(Throwable error) {
                reply.completeExceptionally(error);
            }
        }, withinMs);
        return reply;
    }

    private static DefaultMQProducer producer(String group) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setNamesrvAddr(System.getenv("NAMESRV_ADDR"));
        producer.start();
        return producer;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
