package shim;

import com.alibaba.fastjson2.JSON;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.schedule.ScheduleMessageService;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.remoting.protocol.body.ConsumerOffsetSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** The tables of a broker, read by the requests with which its slaves read them. */
final class BrokerTables {
    private static final long NONE = -1;

    private final EmulatedCluster cluster;
    private final String address;

    BrokerTables(EmulatedCluster cluster, String address) {
        this.cluster = cluster;
        this.address = address;
    }

    TopicConfigManager topics() {
        return StandIn.of(TopicConfigManager.class, new Topics());
    }

    SubscriptionGroupManager groups() {
        return StandIn.of(SubscriptionGroupManager.class, new Groups());
    }

    ConsumerOffsetManager offsets() {
        return StandIn.of(ConsumerOffsetManager.class, new Offsets());
    }

    ScheduleMessageService delays() {
        return StandIn.of(ScheduleMessageService.class, new Delays());
    }

    public final class Topics {
        public ConcurrentMap<String, TopicConfig> getTopicConfigTable() throws Exception {
            return cluster.outer().getAllTopicConfig(address).getTopicConfigTable();
        }

        public TopicConfig selectTopicConfig(String topic) throws Exception {
            return getTopicConfigTable().get(topic);
        }

        public void updateTopicConfig(TopicConfig topic) throws Exception {
            cluster.admin().createAndUpdateTopicConfig(address, topic);
        }
    }

    public final class Groups {
        public void updateSubscriptionGroupConfig(SubscriptionGroupConfig group) throws Exception {
            cluster.admin().createAndUpdateSubscriptionGroupConfig(address, group);
        }
    }

    public final class Offsets {
        public Map<Integer, Long> queryOffset(String group, String topic) throws Exception {
            ConsumerOffsetSerializeWrapper offsets = cluster.outer().getAllConsumerOffset(address);
            return offsets.getOffsetTable().get(topic + "@" + group);
        }

        public long queryOffset(String group, String topic, int queueId) throws Exception {
            Map<Integer, Long> offsets = queryOffset(group, topic);
            return offsets == null ? NONE : offsets.getOrDefault(queueId, NONE);
        }

        /** Of a group without a pull offset it is the committed one, as in RocketMQ. */
        public long queryPullOffset(String group, String topic, int queueId) throws Exception {
            return cluster.admin().examineConsumeStats(address, group, topic, EmulatedCluster.TIMEOUT_MS)
                .getOffsetTable().entrySet().stream()
                .filter(entry -> entry.getKey().getQueueId() == queueId && entry.getKey().getTopic().equals(topic))
                .mapToLong(entry -> entry.getValue().getPullOffset())
                .findFirst().orElse(NONE);
        }
    }

    public final class Delays {
        public ConcurrentMap<Integer, Long> getOffsetTable() throws Exception {
            Map<Integer, Long> offsets = new HashMap<>();
            JSON.parseObject(cluster.outer().getAllDelayOffset(address)).getJSONObject("offsetTable")
                .forEach((level, offset) -> offsets.put(Integer.valueOf(level), ((Number) offset).longValue()));
            return new ConcurrentHashMap<>(offsets);
        }
    }
}
