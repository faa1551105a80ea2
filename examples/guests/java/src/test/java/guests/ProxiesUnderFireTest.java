package guests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import rmqemu.Cluster;
import rmqemu.EmulatedRocketMQ;

/** A test with the official Java client of RocketMQ 5: `mvn test`, and nothing else has to run. */
@EmulatedRocketMQ(scenario = "../proxies.toml")
class ProxiesUnderFireTest {
    private static final String ORDERS = "Orders";
    private static final String IN_ORDER = "OrdersInOrder";
    private static final String LATER = "LaterOrders";
    private static final String PAID = "PaidOrders";
    private static final int PER_STEP = 20;
    private static final Duration ACKNOWLEDGED_WITHIN = Duration.ofSeconds(60);
    private static final Duration CONSUMED_WITHIN = Duration.ofSeconds(120);
    private static final Duration DELAY = Duration.ofSeconds(5);
    private static final Duration INVISIBLE = Duration.ofSeconds(30);

    static Cluster cluster;

    private final ClientServiceProvider provider = ClientServiceProvider.loadService();
    private final Map<String, Instant> consumed = new ConcurrentHashMap<>();
    private final List<String> acknowledged = new ArrayList<>();
    private Producer shop;
    private PushConsumer billing;
    private SimpleConsumer audit;

    @BeforeEach
    void start() throws Exception {
        ClientConfiguration configuration = ClientConfiguration.newBuilder().setEndpoints(cluster.endpoints()).build();
        shop = provider.newProducerBuilder()
            .setClientConfiguration(configuration)
            .setTopics(ORDERS, IN_ORDER, LATER, PAID)
            .setTransactionChecker(message -> TransactionResolution.COMMIT)
            .build();
        billing = provider.newPushConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup("java-billing")
            .setSubscriptionExpressions(Stream.of(ORDERS, IN_ORDER, LATER, PAID)
                .collect(Collectors.toMap(Function.identity(), topic -> FilterExpression.SUB_ALL)))
            .setMessageListener(this::consume)
            .build();
        audit = provider.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup("java-audit")
            .setAwaitDuration(Duration.ofSeconds(5))
            .setSubscriptionExpressions(Map.of(IN_ORDER, FilterExpression.SUB_ALL))
            .build();
    }

    @AfterEach
    void stop() throws Exception {
        audit.close();
        billing.close();
        shop.close();
    }

    @Test
    void everyOrderIsConsumedAlthoughAMasterAProxyAndABrokerFail() throws Exception {
        send(message(IN_ORDER, "fifo").setMessageGroup("customer-1").build());
        Instant due = Instant.now().plus(DELAY);
        send(message(LATER, "delayed").setDeliveryTimestamp(due.toEpochMilli()).build());
        recall(due);
        sendPaid("paid");
        sendOrders();

        cluster.kill("broker-b");
        sendOrders();
        cluster.start("broker-b");
        sendOrders();

        cluster.kill("proxy-1");
        sendOrders();
        cluster.start("proxy-1");
        sendOrders();

        cluster.suspend("broker-a");
        sendOrders();
        cluster.resume("broker-a");
        sendOrders();

        awaitAll();
        assertTrue(!consumed.get("delayed").isBefore(due), "the delayed order came at its time");
        assertFalse(consumed.containsKey("recalled"), "the recalled order came");
        assertEquals(List.of("fifo"), receive());
    }

    private ConsumeResult consume(MessageView message) {
        String order = StandardCharsets.UTF_8.decode(message.getBody()).toString();
        consumed.putIfAbsent(order, Instant.now());
        return ConsumeResult.SUCCESS;
    }

    private MessageBuilder message(String topic, String order) {
        return provider.newMessageBuilder().setTopic(topic).setBody(order.getBytes(StandardCharsets.UTF_8));
    }

    private void sendOrders() throws Exception {
        for (int i = 0; i < PER_STEP; i++) {
            send(message(ORDERS, "order-" + acknowledged.size()).build());
        }
    }

    private void sendPaid(String order) throws Exception {
        Transaction transaction = shop.beginTransaction();
        shop.send(message(PAID, order).build(), transaction);
        transaction.commit();
        acknowledged.add(order);
    }

    /** Send a delayed message, and take it back. */
    private void recall(Instant due) throws Exception {
        Message message = message(LATER, "recalled").setDeliveryTimestamp(due.toEpochMilli()).build();
        shop.recallMessage(LATER, shop.send(message).getRecallHandle());
    }

    /** Receive as a simple consumer until something came, and acknowledge it. */
    private List<String> receive() throws Exception {
        List<String> received = new ArrayList<>();
        Instant deadline = Instant.now().plus(CONSUMED_WITHIN);
        while (received.isEmpty() && Instant.now().isBefore(deadline)) {
            for (MessageView message : audit.receive(16, INVISIBLE)) {
                received.add(StandardCharsets.UTF_8.decode(message.getBody()).toString());
                audit.ack(message);
            }
        }
        return received;
    }

    /** Send a message until it is acknowledged. */
    private void send(Message message) throws Exception {
        Instant deadline = Instant.now().plus(ACKNOWLEDGED_WITHIN);
        while (true) {
            try {
                shop.send(message);
                acknowledged.add(StandardCharsets.UTF_8.decode(message.getBody()).toString());
                return;
            } catch (ClientException | RuntimeException error) { // a time-out is gRPC's StatusRuntimeException
                if (Instant.now().isAfter(deadline)) {
                    throw error;
                }
                Thread.sleep(500);
            }
        }
    }

    private void awaitAll() throws InterruptedException {
        Instant deadline = Instant.now().plus(CONSUMED_WITHIN);
        while (!consumed.keySet().containsAll(acknowledged)) {
            assertTrue(Instant.now().isBefore(deadline),
                consumed.size() + " of " + acknowledged.size() + " orders were consumed");
            Thread.sleep(100);
        }
    }
}
