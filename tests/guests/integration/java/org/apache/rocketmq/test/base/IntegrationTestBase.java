package org.apache.rocketmq.test.base;

import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.attribute.CQType;
import org.apache.rocketmq.common.attribute.TopicMessageType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.test.util.MQAdminTestUtils;

import static org.apache.rocketmq.common.TopicAttributes.QUEUE_TYPE_ATTRIBUTE;
import static org.apache.rocketmq.common.TopicAttributes.TOPIC_MESSAGE_TYPE_ATTRIBUTE;

/** What {@link BaseConf} and single tests need to make topics and brokers. */
public class IntegrationTestBase {
    private static final int TOPIC_WITHIN_S = 30;

    /** A folder for the files of a server; an emulated one has none. */
    public static String createBaseDir() {
        return "";
    }

    /** A broker that was shut down begins again, with what its disk has; no other can be made. */
    public static BrokerController createAndStartBroker(MessageStoreConfig storeConfig, BrokerConfig brokerConfig) {
        BrokerController known = BaseConf.brokerControllerMap.get(brokerConfig.getBrokerName());
        if (known == null) {
            throw new UnsupportedOperationException("the scenario has no broker " + brokerConfig.getBrokerName());
        }
        try {
            known.start();
        } catch (Exception error) {
            throw new IllegalStateException(brokerConfig.getBrokerName() + " does not start", error);
        }
        return known;
    }

    public static boolean initTopic(String topic, String nsAddr, String cluster, CQType queueType) {
        return initTopic(topic, nsAddr, cluster, BaseConf.QUEUE_NUMBERS, queueType, TopicMessageType.NORMAL);
    }

    public static boolean initTopic(String topic, String nsAddr, String cluster, TopicMessageType type) {
        return initTopic(topic, nsAddr, cluster, BaseConf.QUEUE_NUMBERS, CQType.SimpleCQ, type);
    }

    public static boolean initTopic(String topic, String nsAddr, String cluster, int queues, CQType queueType) {
        return initTopic(topic, nsAddr, cluster, queues, queueType, TopicMessageType.NORMAL);
    }

    public static boolean initTopic(
        String topic, String nsAddr, String cluster, int queues, CQType queueType, TopicMessageType type) {
        Map<String, String> attributes = new TreeMap<>();
        if (queueType != CQType.SimpleCQ) {
            attributes.put("+" + QUEUE_TYPE_ATTRIBUTE.getName(), queueType.toString());
        }
        if (type != TopicMessageType.NORMAL) {
            attributes.put("+" + TOPIC_MESSAGE_TYPE_ATTRIBUTE.getName(), type.toString());
        }
        return MQAdminTestUtils.createTopic(nsAddr, cluster, topic, queues, attributes, TOPIC_WITHIN_S);
    }

    public static void initMQAdmin(String nsAddr) {
        try {
            MQAdminTestUtils.startAdmin(nsAddr);
        } catch (MQClientException error) {
            throw new IllegalStateException("the administrator's client does not start", error);
        }
    }
}
