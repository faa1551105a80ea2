package guests;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/**
 * An ordinary application under test: `rmqemu up examples/guests.toml --exec mvn -q -f examples/guests/java test`.
 */
@EnabledIfEnvironmentVariable(named = "NAMESRV_ADDR", matches = ".+")
class SurvivesAMastersDeathTest {
    private static final String TOPIC = "JavaOrders";
    private static final int ORDERS = 100;

    @Test
    void everyOrderIsSentAndConsumedAlthoughAMasterDiesAndComesBack() throws Exception {
        Set<String> consumed = new ConcurrentSkipListSet<>();
        DefaultMQProducer producer = new DefaultMQProducer("java-shop");
        producer.setNamesrvAddr(System.getenv("NAMESRV_ADDR"));
        producer.setRetryTimesWhenSendFailed(5);
        producer.start();
        send(producer, 0, 30);

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-billing");
        consumer.setNamesrvAddr(System.getenv("NAMESRV_ADDR"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(TOPIC, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> consumed.add(new String(message.getBody(), StandardCharsets.UTF_8)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();

        rmqemu("kill", "broker-b");
        send(producer, 30, 70);
        rmqemu("start", "broker-b");
        send(producer, 70, ORDERS);

        for (int tenths = 0; consumed.size() < ORDERS && tenths < 900; tenths++) {
            Thread.sleep(100);
        }
        assertEquals(ORDERS, consumed.size());
        consumer.shutdown();
        producer.shutdown();
    }

    private static void send(DefaultMQProducer producer, int from, int to) throws Exception {
        for (int i = from; i < to; i++) {
            byte[] body = String.format("order-%03d", i).getBytes(StandardCharsets.UTF_8);
            assertEquals(SendStatus.SEND_OK, producer.send(new Message(TOPIC, body)).getSendStatus());
        }
    }

    /** Break the cluster, or heal it, as one would by hand. */
    private static void rmqemu(String verb, String node) throws Exception {
        Process said = new ProcessBuilder("rmqemu", "ctl", "--run", System.getenv("RMQEMU_RUN"), verb, node)
            .inheritIO()
            .start();
        assertEquals(0, said.waitFor());
    }
}
