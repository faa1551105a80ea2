package org.apache.rocketmq.test.base;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.consumer.MQPullConsumer;
import org.apache.rocketmq.client.consumer.MQPushConsumer;
import org.apache.rocketmq.client.producer.MQProducer;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.common.attribute.CQType;
import org.apache.rocketmq.common.attribute.TopicMessageType;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.test.client.rmq.RMQAsyncSendProducer;
import org.apache.rocketmq.test.client.rmq.RMQNormalConsumer;
import org.apache.rocketmq.test.client.rmq.RMQNormalProducer;
import org.apache.rocketmq.test.client.rmq.RMQTransactionalProducer;
import org.apache.rocketmq.test.clientinterface.AbstractMQConsumer;
import org.apache.rocketmq.test.clientinterface.AbstractMQProducer;
import org.apache.rocketmq.test.clientinterface.MQConsumer;
import org.apache.rocketmq.test.factory.ConsumerFactory;
import org.apache.rocketmq.test.listener.AbstractListener;
import org.apache.rocketmq.test.util.MQAdminTestUtils;
import org.apache.rocketmq.test.util.MQRandomUtils;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.apache.rocketmq.tools.admin.MQAdminExt;
import shim.EmulatedBroker;
import shim.EmulatedCluster;

import static org.awaitility.Awaitility.await;

/** The base class of RocketMQ's integration tests, with an emulated cluster: one nameserver and three masters. */
public class BaseConf {
    public static final String NAMESRV_ADDR;

    protected static final String CLUSTER_NAME = "DefaultCluster";
    protected static final String BROKER1_NAME = "broker-a";
    protected static final String BROKER2_NAME = "broker-b";
    protected static final String BROKER3_NAME = "broker-c";
    protected static final int BROKER_NUM = 3;
    protected static final int WAIT_TIME = 5;
    protected static final int CONSUME_TIME = 2 * 60 * 1000;
    protected static final int QUEUE_NUMBERS = 8;
    private static final int WITHIN_S = 30;

    protected static NamesrvController namesrvController;
    protected static BrokerController brokerController1;
    protected static BrokerController brokerController2;
    protected static BrokerController brokerController3;
    protected static List<BrokerController> brokerControllerList;
    protected static Map<String, BrokerController> brokerControllerMap = new TreeMap<>();
    protected static List<Object> mqClients = new ArrayList<>();
    protected static boolean debug = false;

    private static final EmulatedCluster CLUSTER = EmulatedCluster.of("remoting.toml");

    static {
        NAMESRV_ADDR = CLUSTER.namesrvAddr();
        namesrvController = CLUSTER.nameserver();
        brokerController1 = CLUSTER.broker(BROKER1_NAME).controller();
        brokerController2 = CLUSTER.broker(BROKER2_NAME).controller();
        brokerController3 = CLUSTER.broker(BROKER3_NAME).controller();
        brokerControllerList = List.of(brokerController1, brokerController2, brokerController3);
        for (EmulatedBroker broker : CLUSTER.brokers().values()) {
            brokerControllerMap.put(broker.name(), broker.controller());
        }
        IntegrationTestBase.initMQAdmin(NAMESRV_ADDR);
    }

    public BaseConf() {
        waitBrokerRegistered(NAMESRV_ADDR, CLUSTER_NAME, BROKER_NUM);
    }

    public static void waitBrokerRegistered(String nsAddr, String clusterName, int expectedBrokerNum) {
        await().atMost(WITHIN_S, TimeUnit.SECONDS).ignoreExceptions().until(() ->
            CLUSTER.admin().examineTopicRouteInfo(clusterName).getBrokerDatas().size() == expectedBrokerNum);
    }

    public boolean awaitDispatchMs(long timeMs) throws Exception {
        for (BrokerController broker : brokerControllerList) {
            if (broker.getMessageStore().dispatchBehindBytes() != 0) {
                return false;
            }
        }
        return true;
    }

    public static String initTopic() {
        return initTopicWithName(MQRandomUtils.getRandomTopic());
    }

    public static String initTopic(TopicMessageType type) {
        return initTopicWithName(MQRandomUtils.getRandomTopic(), type);
    }

    public static String initTopicWithName(String topic) {
        return initTopicOnSampleTopicBroker(topic, CLUSTER_NAME);
    }

    public static String initTopicWithName(String topic, TopicMessageType type) {
        return initTopicOnSampleTopicBroker(topic, CLUSTER_NAME, type);
    }

    public static String initTopicOnSampleTopicBroker(String sample) {
        return initTopicOnSampleTopicBroker(MQRandomUtils.getRandomTopic(), sample);
    }

    public static String initTopicOnSampleTopicBroker(String sample, TopicMessageType type) {
        return initTopicOnSampleTopicBroker(MQRandomUtils.getRandomTopic(), sample, type);
    }

    /** A topic on the brokers that have another topic; the name of a cluster or a broker is a topic, too. */
    public static String initTopicOnSampleTopicBroker(String topic, String sample) {
        IntegrationTestBase.initTopic(topic, NAMESRV_ADDR, sample, CQType.SimpleCQ);
        return topic;
    }

    public static String initTopicOnSampleTopicBroker(String topic, String sample, TopicMessageType type) {
        IntegrationTestBase.initTopic(topic, NAMESRV_ADDR, sample, type);
        return topic;
    }

    public static String initConsumerGroup() {
        return initConsumerGroup(MQRandomUtils.getRandomConsumerGroup());
    }

    public static String initConsumerGroup(String group) {
        MQAdminTestUtils.createSub(NAMESRV_ADDR, CLUSTER_NAME, group);
        return group;
    }

    public static DefaultMQAdminExt getAdmin(String nsAddr) {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(3 * 1000);
        admin.setNamesrvAddr(nsAddr);
        admin.setPollNameServerInterval(100);
        return used(admin);
    }

    public static RMQNormalProducer getProducer(String nsAddr, String topic) {
        return getProducer(nsAddr, topic, false);
    }

    public static RMQNormalProducer getProducer(String nsAddr, String topic, boolean useTLS) {
        return used(new RMQNormalProducer(nsAddr, topic, useTLS));
    }

    public static RMQNormalProducer getProducer(String nsAddr, String topic, String group, String instanceName) {
        return used(new RMQNormalProducer(nsAddr, topic, group, instanceName));
    }

    public static RMQTransactionalProducer getTransactionalProducer(
        String nsAddr, String topic, TransactionListener listener) {
        return used(new RMQTransactionalProducer(nsAddr, topic, false, listener));
    }

    public static RMQAsyncSendProducer getAsyncProducer(String nsAddr, String topic) {
        return used(new RMQAsyncSendProducer(nsAddr, topic));
    }

    public static RMQNormalConsumer getConsumer(
        String nsAddr, String topic, String expression, AbstractListener listener) {
        return getConsumer(nsAddr, topic, expression, listener, false);
    }

    public static RMQNormalConsumer getConsumer(
        String nsAddr, String topic, String expression, AbstractListener listener, boolean useTLS) {
        return getConsumer(nsAddr, initConsumerGroup(), topic, expression, listener, useTLS);
    }

    public static RMQNormalConsumer getConsumer(
        String nsAddr, String group, String topic, String expression, AbstractListener listener) {
        return getConsumer(nsAddr, group, topic, expression, listener, false);
    }

    public static RMQNormalConsumer getConsumer(
        String nsAddr, String group, String topic, String expression, AbstractListener listener, boolean useTLS) {
        return used(ConsumerFactory.getRMQNormalConsumer(nsAddr, group, topic, expression, listener, useTLS));
    }

    private static <T> T used(T client) {
        mqClients.add(client);
        return client;
    }

    public static Set<String> getBrokers() {
        return new HashSet<>(brokerControllerMap.keySet());
    }

    public static void shutdown() {
        List<Object> clients = List.copyOf(mqClients);
        mqClients.clear();
        shutdown(clients);
    }

    public static void shutdown(List<Object> clients) {
        clients.forEach(client -> ForkJoinPool.commonPool().execute(() -> end(client)));
    }

    private static void end(Object client) {
        if (client instanceof AbstractMQProducer producer) {
            producer.shutdown();
        } else if (client instanceof AbstractMQConsumer consumer) {
            consumer.shutdown();
        } else if (client instanceof MQAdminExt admin) {
            admin.shutdown();
        } else if (client instanceof MQProducer producer) {
            producer.shutdown();
        } else if (client instanceof MQPullConsumer consumer) {
            consumer.shutdown();
        } else if (client instanceof MQPushConsumer consumer) {
            consumer.shutdown();
        } else if (client instanceof MQConsumer consumer) {
            consumer.shutdown();
        }
    }
}
