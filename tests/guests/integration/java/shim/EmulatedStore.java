package shim;

import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.body.HARuntimeInfo;
import org.apache.rocketmq.store.ha.HAConnection;
import org.apache.rocketmq.store.ha.HAConnectionState;
import org.apache.rocketmq.store.ha.HAService;

/** What tests call of a message store. */
public final class EmulatedStore {
    private final EmulatedCluster cluster;
    private final EmulatedBroker broker;
    private final HAService replication = StandIn.of(HAService.class, new Replication());

    EmulatedStore(EmulatedCluster cluster, EmulatedBroker broker) {
        this.cluster = cluster;
        this.broker = broker;
    }

    public long getMaxOffsetInQueue(String topic, int queueId) throws Exception {
        return cluster.client().getMaxOffset(broker.getBrokerAddr(), queue(topic, queueId), EmulatedCluster.TIMEOUT_MS);
    }

    public long getMinOffsetInQueue(String topic, int queueId) throws Exception {
        return cluster.client().getMinOffset(broker.getBrokerAddr(), queue(topic, queueId), EmulatedCluster.TIMEOUT_MS);
    }

    private MessageQueue queue(String topic, int queueId) {
        return new MessageQueue(topic, broker.name(), queueId);
    }

    public long getMaxPhyOffset() throws Exception {
        return cluster.admin().getBrokerHAStatus(broker.getBrokerAddr()).getMasterCommitLogMaxOffset();
    }

    public long dispatchBehindBytes() throws Exception {
        return Long.parseLong(
            cluster.admin().fetchBrokerRuntimeStats(broker.getBrokerAddr()).getTable().get("dispatchBehindBytes"));
    }

    /** A broker takes it from the answer of a nameserver to this request. */
    public int getAliveReplicaNumInGroup() throws Exception {
        return cluster.outer()
            .syncBrokerMemberGroup(broker.getBrokerConfig().getBrokerClusterName(), broker.name())
            .getBrokerAddrs().size();
    }

    public HAService getHaService() {
        return replication;
    }

    public final class Replication {
        private HARuntimeInfo status() throws Exception {
            return cluster.admin().getBrokerHAStatus(broker.getBrokerAddr());
        }

        public AtomicInteger getConnectionCount() throws Exception {
            return new AtomicInteger(status().getHaConnectionInfo().size());
        }

        public List<HAConnection> getConnectionList() throws Exception {
            return status().getHaConnectionInfo().stream()
                .map(connection -> StandIn.of(HAConnection.class, new Connection(connection)))
                .toList();
        }

        /** The slaves in sync, and the master itself. */
        public int inSyncReplicasNums(long masterPutWhere) throws Exception {
            Collection<HARuntimeInfo.HAConnectionRuntimeInfo> connections = status().getHaConnectionInfo();
            return 1 + (int) connections.stream().filter(HARuntimeInfo.HAConnectionRuntimeInfo::isInSync).count();
        }
    }

    /** A connection whose slave has sent its offset: a broker transfers to it. */
    public record Connection(HARuntimeInfo.HAConnectionRuntimeInfo status) {
        public HAConnectionState getCurrentState() {
            return status.getSlaveAckOffset() >= 0 ? HAConnectionState.TRANSFER : HAConnectionState.READY;
        }
    }
}
