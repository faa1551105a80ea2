package guests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import rmqemu.Cluster;
import rmqemu.ClusterException;
import rmqemu.EmulatedRocketMQ;

/** Tests that start the cluster which they break: `mvn test`, and nothing else has to run. */
@EmulatedRocketMQ(scenario = "guests", guests = "shop")
class UnderFireTest {
    private static final Duration WITHIN = Duration.ofSeconds(60);
    /** Clients ask for routes each 30 s; tests need not wait so long. */
    private static final int ROUTE_EVERY_MS = 1_000;

    static Cluster cluster;

    private final Set<String> consumed = new ConcurrentSkipListSet<>();
    private final List<String> sent = new ArrayList<>();
    private String topic;
    private DefaultMQProducer shop;
    private DefaultMQPushConsumer billing;

    @BeforeEach
    void start(TestInfo test) throws Exception {
        topic = test.getTestMethod().orElseThrow().getName();
        shop = new DefaultMQProducer("shop-" + topic);
        shop.setNamesrvAddr(cluster.namesrvAddr("shop"));
        shop.setPollNameServerInterval(ROUTE_EVERY_MS);
        shop.setRetryTimesWhenSendFailed(5);
        shop.start();
        shop.createTopic("TBW102", topic, 4, Map.of());
        billing = new DefaultMQPushConsumer("billing-" + topic);
        billing.setNamesrvAddr(cluster.namesrvAddr("shop"));
        billing.setPollNameServerInterval(ROUTE_EVERY_MS);
        billing.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        billing.subscribe(topic, "*");
        billing.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> consumed.add(new String(message.getBody(), StandardCharsets.UTF_8)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        billing.start();
    }

    @AfterEach
    void stop() {
        billing.shutdown();
        shop.shutdown();
    }

    @Test
    void aDeadMasterLosesNoOrder() throws Exception {
        Set<String> brokers = new ConcurrentSkipListSet<>();
        for (int i = 0; i < 30; i++) {
            brokers.add(send().getMessageQueue().getBrokerName());
        }
        assertEquals(Set.of("broker-a", "broker-b", "broker-c"), brokers);

        cluster.kill("broker-b");
        for (int i = 0; i < 30; i++) {
            assertTrue(!send().getMessageQueue().getBrokerName().equals("broker-b"), "sends go elsewhere");
        }

        cluster.start("broker-b");
        await("all orders are consumed, those of broker-b included", () -> consumed.containsAll(sent));
    }

    @Test
    void aReadOnlyTopicRefusesOrdersAndGivesOutThoseThatItHas() throws Exception {
        for (int i = 0; i < 10; i++) {
            send();
        }
        cluster.readOnly(topic);
        await("a send is refused", this::isRefused);
        await("what was accepted is consumed", () -> consumed.containsAll(sent));

        cluster.heal();
        await("orders are accepted again", () -> !isRefused());
    }

    @Test
    void whatCannotBeSaidIsRefusedInOneLine() {
        ClusterException refused = assertThrows(ClusterException.class, () -> cluster.kill("broker-x"));
        assertTrue(refused.getMessage().contains("broker-x"), refused.getMessage());
        ClusterException bad = assertThrows(ClusterException.class, () -> Cluster.launch("no-such-scenario"));
        assertTrue(bad.getMessage().contains("rmqemu: no-such-scenario: "), bad.getMessage());
    }

    private SendResult send() throws Exception {
        String order = "order-" + sent.size();
        SendResult result = shop.send(new Message(topic, order.getBytes(StandardCharsets.UTF_8)));
        assertEquals(SendStatus.SEND_OK, result.getSendStatus());
        sent.add(order);
        return result;
    }

    private boolean isRefused() {
        try {
            send();
            return false;
        } catch (MQClientException refused) {
            return true;
        } catch (Exception error) {
            return fail(error);
        }
    }

    private static void await(String what, BooleanSupplier isSo) throws InterruptedException {
        Instant deadline = Instant.now().plus(WITHIN);
        while (!isSo.getAsBoolean()) {
            assertTrue(Instant.now().isBefore(deadline), "not within " + WITHIN.toSeconds() + " s: " + what);
            Thread.sleep(100);
        }
    }
}
