package org.apache.rocketmq.test.container;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.TransactionCheckListener;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.container.BrokerContainer;
import org.apache.rocketmq.container.InnerSalveBrokerController;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.store.ha.HAConnection;
import org.apache.rocketmq.store.ha.HAConnectionState;
import org.apache.rocketmq.store.ha.HAService;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.junit.BeforeClass;
import shim.EmulatedBroker;
import shim.EmulatedCluster;
import shim.EmulatedContainer;

import static org.awaitility.Awaitility.await;

/** The base class of RocketMQ's tests of containers, with three emulated ones: container i has the master of group i. */
public class ContainerIntegrationTestBase {
    protected static final String THREE_REPLICAS_TOPIC = "SEND_MESSAGE_TEST_TOPIC_THREE_REPLICAS";
    private static final int QUEUES = 8;
    private static final int READ_AND_WRITE = 6;
    private static final Duration SLAVES_WITHIN = Duration.ofSeconds(100);
    private static final Duration SYNC_WITHIN = Duration.ofSeconds(60);
    private static final Duration SETTLE = Duration.ofSeconds(2);

    protected static String nsAddr;
    protected static List<BrokerContainer> brokerContainerList = new ArrayList<>();
    protected static BrokerContainer brokerContainer1;
    protected static BrokerContainer brokerContainer2;
    protected static BrokerContainer brokerContainer3;
    protected static BrokerController master1With3Replicas;
    protected static BrokerController master2With3Replicas;
    protected static BrokerController master3With3Replicas;
    protected static DefaultMQAdminExt defaultMQAdminExt;

    private static EmulatedCluster cluster;
    /** Mapping slave -> topics that it has not copied from its master yet. */
    private static final Map<String, List<String>> UNCOPIED = new TreeMap<>();

    @BeforeClass
    public static void setUp() throws Exception {
        if (cluster != null) {
            return;
        }
        cluster = EmulatedCluster.of("containers.toml");
        nsAddr = cluster.namesrvAddr();
        defaultMQAdminExt = cluster.admin();
        brokerContainer1 = container("broker-a", "broker-c-s1", "broker-b-s2");
        brokerContainer2 = container("broker-b", "broker-a-s1", "broker-c-s2");
        brokerContainer3 = container("broker-c", "broker-b-s1", "broker-a-s2");
        master1With3Replicas = cluster.broker("broker-a").controller();
        master2With3Replicas = cluster.broker("broker-b").controller();
        master3With3Replicas = cluster.broker("broker-c").controller();
        awaitUntilSlaveOK();
    }

    private static BrokerContainer container(String... nodes) {
        BrokerContainer container = new EmulatedContainer(cluster, nodes).container();
        brokerContainerList.add(container);
        return container;
    }

    /** No broker is added to the container that a test starts: it is the first one. */
    public static BrokerContainer createAndStartBrokerContainer(String nsAddr) {
        return brokerContainer1;
    }

    private static List<BrokerController> masters() {
        return List.of(master1With3Replicas, master2With3Replicas, master3With3Replicas);
    }

    private static EmulatedBroker broker(BrokerController controller) {
        BrokerConfig options = controller.getBrokerConfig();
        return broker(options.getBrokerName(), options.getBrokerId());
    }

    private static EmulatedBroker broker(String name, long id) {
        return cluster.brokers().values().stream()
            .filter(broker -> broker.name().equals(name) && broker.id() == id)
            .findFirst().orElseThrow();
    }

    private static List<EmulatedBroker> slaves(BrokerController master) {
        String name = master.getBrokerConfig().getBrokerName();
        return cluster.brokers().values().stream()
            .filter(broker -> broker.name().equals(name) && broker.id() != 0 && cluster.isRunning(broker.node()))
            .toList();
    }

    protected static void createTopicTo(BrokerController master, String topic) {
        createTopicTo(master, topic, QUEUES, QUEUES);
    }

    /**
     * A topic of a master; its slaves copy it within a minute, and {@link #awaitCopies} waits for that. Tests make a topic
     * on all masters in their order and send at once: the last one waits.
     */
    protected static void createTopicTo(BrokerController master, String topic, int readQueues, int writeQueues) {
        try {
            TopicConfig config = new TopicConfig(topic, readQueues, writeQueues, READ_AND_WRITE, 0);
            defaultMQAdminExt.createAndUpdateTopicConfig(master.getBrokerAddr(), config);
        } catch (Exception error) {
            throw new IllegalStateException("topic " + topic, error);
        }
        for (EmulatedBroker slave : slaves(master)) {
            UNCOPIED.computeIfAbsent(slave.node(), node -> new ArrayList<>()).add(topic);
        }
        if (master == master3With3Replicas) {
            awaitCopies();
        }
    }

    /** Until slaves have the topics that were made, and the nameserver knows it; no request starts a copy. */
    private static void awaitCopies() {
        UNCOPIED.forEach((node, topics) -> {
            EmulatedBroker slave = cluster.broker(node);
            if (cluster.isRunning(node)) {
                await().atMost(SLAVES_WITHIN).ignoreExceptions().until(() ->
                    slave.getTopicConfigManager().getTopicConfigTable().keySet().containsAll(topics));
                slave.registerBrokerAll(true, false, true);
            }
        });
        UNCOPIED.clear();
    }

    protected static void createGroup(BrokerController master, String group) {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        master.getSubscriptionGroupManager().updateSubscriptionGroupConfig(config);
    }

    protected static DefaultMQProducer createProducer(String group) {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setInstanceName(UUID.randomUUID().toString());
        producer.setNamesrvAddr(nsAddr);
        return producer;
    }

    protected static TransactionMQProducer createTransactionProducer(String group, TransactionCheckListener listener) {
        TransactionMQProducer producer = transactionProducer(group);
        producer.setTransactionCheckListener(listener);
        return producer;
    }

    protected static TransactionMQProducer createTransactionProducer(String group, TransactionListener listener) {
        TransactionMQProducer producer = transactionProducer(group);
        producer.setTransactionListener(listener);
        return producer;
    }

    private static TransactionMQProducer transactionProducer(String group) {
        awaitCopies();
        TransactionMQProducer producer = new TransactionMQProducer(group);
        producer.setInstanceName(UUID.randomUUID().toString());
        producer.setNamesrvAddr(nsAddr);
        return producer;
    }

    protected static DefaultMQPullConsumer createPullConsumer(String group) {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(group);
        consumer.setInstanceName(UUID.randomUUID().toString());
        consumer.setNamesrvAddr(nsAddr);
        return consumer;
    }

    protected static DefaultMQPushConsumer createPushConsumer(String group) {
        awaitCopies();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setInstanceName(UUID.randomUUID().toString());
        consumer.setNamesrvAddr(nsAddr);
        return consumer;
    }

    protected static void createAndAddSlave(int slaveId, BrokerContainer container, BrokerController master) {
        try {
            container.addBroker(broker(master.getBrokerConfig().getBrokerName(), slaveId).getBrokerConfig(), null);
        } catch (Exception error) {
            throw new IllegalStateException("slave " + slaveId, error);
        }
    }

    protected static void removeSlaveBroker(int slaveId, BrokerContainer container, BrokerController master)
        throws Exception {
        container.removeBroker(broker(master.getBrokerConfig().getBrokerName(), slaveId).getBrokerIdentity());
    }

    /** Until each master replicates to two slaves, and the nameserver has three brokers of each group. */
    protected static void awaitUntilSlaveOK() {
        for (BrokerController master : masters()) {
            await().atMost(SLAVES_WITHIN).ignoreExceptions().until(() -> replicates(master));
        }
        try {
            Thread.sleep(SETTLE.toMillis());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static boolean replicates(BrokerController master) {
        HAService replication = master.getMessageStore().getHaService();
        List<HAConnection> connections = replication.getConnectionList();
        return connections.size() == 2
            && connections.stream().allMatch(one -> one.getCurrentState() == HAConnectionState.TRANSFER)
            && master.getMessageStore().getAliveReplicaNumInGroup() == 3;
    }

    /** The nameserver removes a broker and refuses its registrations; its heartbeats still arrive. */
    protected static void isolateBroker(BrokerController controller) {
        awaitCopies();
        cluster.isolate(broker(controller));
    }

    protected static void cancelIsolatedBroker(BrokerController controller) {
        EmulatedBroker broker = broker(controller);
        cluster.endIsolation(broker);
        await().atMost(SYNC_WITHIN).ignoreExceptions().until(() -> {
            broker.registerBrokerAll(true, false, true);
            return cluster.outer()
                .syncBrokerMemberGroup(broker.getBrokerConfig().getBrokerClusterName(), broker.name())
                .getBrokerAddrs().containsKey(broker.id());
        });
    }

    protected static InnerSalveBrokerController getSlaveFromContainerByName(BrokerContainer container, String name) {
        return container.getSlaveBrokers().stream()
            .filter(slave -> slave.getBrokerConfig().getBrokerName().equals(name))
            .findFirst().orElse(null);
    }

    protected static void changeCompatibleMode(boolean compatible) {
        cluster.brokers().values().stream()
            .filter(broker -> cluster.isRunning(broker.node()))
            .forEach(broker -> broker.getBrokerConfig().setCompatibleWithOldNameSrv(compatible));
    }

    protected static Set<MessageQueue> filterMessageQueue(Set<MessageQueue> queues, String topic) {
        return queues.stream().filter(queue -> queue.getTopic().equals(topic)).collect(Collectors.toSet());
    }
}
