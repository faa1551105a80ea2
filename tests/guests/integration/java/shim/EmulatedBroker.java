package shim;

import java.util.Properties;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.out.BrokerOuterAPI;
import org.apache.rocketmq.broker.schedule.ScheduleMessageService;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.BrokerIdentity;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.container.InnerBrokerController;
import org.apache.rocketmq.container.InnerSalveBrokerController;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.timer.TimerCheckpoint;

/** What tests call of a BrokerController, as requests to an emulated broker and as verbs. */
public final class EmulatedBroker {
    private static final String WITHIN = "60s";

    private final EmulatedCluster cluster;
    private final String name;
    private final long id;
    private final String address;
    private final BrokerController controller;
    private final BrokerConfig options;
    private final MessageStoreConfig storeOptions;
    private final MessageStore store;
    private final BrokerTables tables;
    private final Properties changes = new Properties();

    EmulatedBroker(EmulatedCluster cluster, String name, long id, String address) {
        this.cluster = cluster;
        this.name = name;
        this.id = id;
        this.address = address;
        BrokerConfig values = new BrokerConfig();
        MessageStoreConfig storeValues = new MessageStoreConfig();
        Properties properties = properties();
        MixAll.properties2Object(properties, values);
        MixAll.properties2Object(properties, storeValues);
        values.setBrokerName(name);
        values.setBrokerId(id);
        values.setBrokerIP1(address.substring(0, address.lastIndexOf(':')));
        values.setListenPort(Integer.parseInt(address.substring(address.lastIndexOf(':') + 1)));
        options = StandIn.options(values, this::change);
        storeOptions = StandIn.options(storeValues, this::change);
        tables = new BrokerTables(cluster, address);
        store = StandIn.of(DefaultMessageStore.class, new EmulatedStore(cluster, this));
        controller = id == 0
            ? StandIn.of(InnerBrokerController.class, this)
            : StandIn.of(InnerSalveBrokerController.class, this);
    }

    /** The name of its node. */
    public String node() {
        return id == 0 ? name : name + "-s" + id;
    }

    public String name() {
        return name;
    }

    public long id() {
        return id;
    }

    /** The object that tests have. */
    public BrokerController controller() {
        return controller;
    }

    private Properties properties() {
        try {
            return cluster.admin().getBrokerConfig(address);
        } catch (Exception error) {
            throw new IllegalStateException("options of " + address, error);
        }
    }

    /** Change an option now, or when the broker starts again. */
    private void change(String option, String value) {
        changes.setProperty(option, value);
        if (cluster.isRunning(node())) {
            apply();
        }
    }

    private void apply() {
        try {
            cluster.admin().updateBrokerConfig(address, changes);
        } catch (Exception error) {
            throw new IllegalStateException(node() + " does not take " + changes, error);
        }
        changes.clear();
    }

    public String getBrokerAddr() {
        return address;
    }

    public BrokerConfig getBrokerConfig() {
        return options;
    }

    public MessageStoreConfig getMessageStoreConfig() {
        return storeOptions;
    }

    public BrokerIdentity getBrokerIdentity() {
        return new BrokerIdentity(options.getBrokerClusterName(), name, id);
    }

    public MessageStore getMessageStore() {
        return store;
    }

    public BrokerOuterAPI getBrokerOuterAPI() {
        return cluster.outer();
    }

    public TopicConfigManager getTopicConfigManager() {
        return tables.topics();
    }

    public SubscriptionGroupManager getSubscriptionGroupManager() {
        return tables.groups();
    }

    public ConsumerOffsetManager getConsumerOffsetManager() {
        return tables.offsets();
    }

    public ScheduleMessageService getScheduleMessageService() {
        return tables.delays();
    }

    public TimerCheckpoint getTimerCheckpoint() throws Exception {
        return cluster.outer().getTimerCheckPoint(address);
    }

    /** A broker registers when its permission is set, to whatever value. */
    public void registerBrokerAll(boolean checkOrderConfig, boolean oneway, boolean forceRegister) {
        change("brokerPermission", Integer.toString(options.getBrokerPermission()));
    }

    /** A new process with what the disk has; nothing happens to one that runs. */
    public void start() {
        if (!cluster.isRunning(node())) {
            cluster.verb("start", node());
            cluster.verb("until", node(), "ready", "within", WITHIN);
            if (!changes.isEmpty()) {
                apply();
            }
        }
    }

    public void shutdown() {
        if (cluster.isRunning(node())) {
            cluster.verb("stop", node());
            cluster.verb("until", node(), "down", "within", WITHIN);
        }
    }
}
