package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import rmqemu.Cluster;
import rmqemu.EmulatedRocketMQ;

/** A Spring Boot application whose cluster breaks: nothing that was acknowledged may be lost. */
@EmulatedRocketMQ(scenario = "shop")
@SpringBootTest
@DirtiesContext // it is closed before the cluster is
class ShopTest {
    private static final int STEP_S = 8;

    static Cluster cluster;

    @Autowired
    private RocketMQTemplate rocketmq;

    @Autowired
    private Checkout checkout;

    @Autowired
    private Ledger ledger;

    @DynamicPropertySource
    static void nameserver(DynamicPropertyRegistry properties) {
        properties.add("rocketmq.name-server", cluster::namesrvAddr);
    }

    @Test
    void aSendGoesElsewhereWhenAMasterIsDead() {
        cluster.kill("broker-b");
        for (int i = 0; i < 10; i++) {
            assertEquals("broker-a", rocketmq.syncSend("ShopOrders", "order").getMessageQueue().getBrokerName());
        }
    }

    @Test
    void nothingThatWasAcknowledgedIsLost() throws InterruptedException {
        ledger.begin("nothing");
        checkout.open();
        TimeUnit.SECONDS.sleep(STEP_S);
        step("kill", "kill", "broker-b");
        step("cut", "cut", "shop", "broker-b");
        step("freeze", "suspend", "broker-b");
        step("read only", "permission", "broker-b", "4");
        checkout.close();
        ledger.settle();
        ledger.table().forEach(System.out::println);
        for (String step : List.of("nothing", "kill", "cut", "freeze", "read only", "after read only")) {
            assertNotEquals(0, ledger.acknowledgedIn(step), step);
        }
        assertEquals(0, ledger.lost());
    }

    /** Some seconds with a fault, and some after it. */
    private void step(String name, String... fault) throws InterruptedException {
        ledger.begin(name);
        cluster.say(fault);
        TimeUnit.SECONDS.sleep(STEP_S);
        ledger.begin("after " + name);
        cluster.heal();
        TimeUnit.SECONDS.sleep(STEP_S);
    }
}
