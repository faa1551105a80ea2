package shim;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.BrokerIdentity;
import org.apache.rocketmq.container.BrokerContainer;
import org.apache.rocketmq.container.InnerBrokerController;
import org.apache.rocketmq.container.InnerSalveBrokerController;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** What tests call of a BrokerContainer. */
public final class EmulatedContainer {
    private static final int PORT = 10811;
    /** Heartbeats of brokers, which tests change on their way. */
    private static final Map<Integer, String> CHANGED = Map.of(
        RequestCode.BROKER_HEARTBEAT, "BROKER_HEARTBEAT",
        RequestCode.QUERY_DATA_VERSION, "QUERY_DATA_VERSION");

    private final EmulatedCluster cluster;
    private final List<EmulatedBroker> brokers;
    private final List<String> losses = new ArrayList<>();

    /**
     * A container.
     *
     * @param nodes its brokers: the master first.
     */
    public EmulatedContainer(EmulatedCluster cluster, String... nodes) {
        this.cluster = cluster;
        this.brokers = List.of(nodes).stream().map(cluster::broker).toList();
    }

    /** The object that tests have. */
    public BrokerContainer container() {
        return StandIn.of(BrokerContainer.class, this);
    }

    public String getBrokerContainerAddr() {
        return brokers.get(0).getBrokerAddr().replaceFirst(":.*", ":" + PORT);
    }

    public Collection<InnerSalveBrokerController> getSlaveBrokers() {
        return running(InnerSalveBrokerController.class, false);
    }

    public Collection<InnerBrokerController> getMasterBrokers() {
        return running(InnerBrokerController.class, true);
    }

    private <T> List<T> running(Class<T> type, boolean master) {
        return brokers.stream()
            .filter(broker -> broker.id() == 0 == master && cluster.isRunning(broker.node()))
            .map(EmulatedBroker::controller)
            .map(type::cast)
            .toList();
    }

    public BrokerController removeBroker(BrokerIdentity identity) throws Exception {
        EmulatedBroker broker = broker(identity);
        cluster.admin().removeBrokerFromContainer(
            getBrokerContainerAddr(), identity.getBrokerClusterName(), broker.name(), broker.id());
        return broker.controller();
    }

    /** The broker has its options in a file of the container, whatever a test hands over. */
    public BrokerController addBroker(BrokerConfig options, MessageStoreConfig storeOptions) throws Exception {
        EmulatedBroker broker = broker(options);
        cluster.admin().addBrokerToContainer(getBrokerContainerAddr(), "conf/" + broker.node() + ".conf");
        return broker.controller();
    }

    private EmulatedBroker broker(BrokerIdentity identity) {
        return brokers.stream()
            .filter(broker -> broker.name().equals(identity.getBrokerName()) && broker.id() == identity.getBrokerId())
            .findFirst().orElseThrow();
    }

    /** Of a hook that makes heartbeats unknown to their server: they are lost. */
    public void registerClientRPCHook(RPCHook hook) {
        CHANGED.forEach((code, name) -> {
            RemotingCommand request = RemotingCommand.createRequestCommand(code, null);
            hook.doBeforeRequest("", request);
            if (request.getCode() != code) {
                losses.add(cluster.lose(name, brokers.get(0)));
            }
        });
    }

    public void clearClientRPCHook() {
        losses.forEach(cluster::heal);
        losses.clear();
    }

    /** The cluster ends with the JVM. */
    public void shutdown() {
    }
}
