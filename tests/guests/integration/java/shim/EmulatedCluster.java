package shim;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.rocketmq.auth.config.AuthConfig;
import org.apache.rocketmq.broker.out.BrokerOuterAPI;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import rmqemu.Cluster;

/** The emulated cluster of this JVM, which ends with it. */
public final class EmulatedCluster {
    /** A folder with the scenarios of the base classes. */
    private static final String SCENARIOS = "scenarios";
    private static final boolean KEEPS_RUN = Boolean.getBoolean("keepRun");
    static final long TIMEOUT_MS = 5_000;

    private static EmulatedCluster running;

    private final Cluster cluster;
    private final DefaultMQAdminExt admin;
    private final BrokerOuterAPI outer;
    private final Map<String, EmulatedBroker> brokers = new TreeMap<>();
    private final Map<String, String> isolated = new TreeMap<>();

    private EmulatedCluster(String scenario) throws Exception {
        System.setProperty(RemotingCommand.REMOTING_VERSION_KEY, Integer.toString(MQVersion.CURRENT_VERSION));
        cluster = Cluster.launch(Path.of(System.getProperty(SCENARIOS), scenario).toString());
        Runtime.getRuntime().addShutdownHook(new Thread(this::end));
        admin = new DefaultMQAdminExt("EmulatedCluster");
        admin.setInstanceName("EmulatedCluster");
        admin.setNamesrvAddr(namesrvAddr());
        admin.start();
        outer = new BrokerOuterAPI(new NettyClientConfig(), new AuthConfig());
        outer.updateNameServerAddressList(namesrvAddr());
        outer.start();
        for (BrokerData group : admin.examineBrokerClusterInfo().getBrokerAddrTable().values()) {
            group.getBrokerAddrs().forEach((id, address) -> {
                EmulatedBroker broker = new EmulatedBroker(this, group.getBrokerName(), id, address);
                brokers.put(broker.node(), broker);
            });
        }
    }

    /** The cluster of a scenario; the first call starts it. */
    public static synchronized EmulatedCluster of(String scenario) {
        try {
            if (running == null) {
                running = new EmulatedCluster(scenario);
            }
            return running;
        } catch (Exception error) {
            throw new IllegalStateException("the cluster cannot be started", error);
        }
    }

    private void end() {
        if (KEEPS_RUN) {
            cluster.keepRun();
            System.out.println("run: " + cluster.run());
        }
        cluster.close();
    }

    public String namesrvAddr() {
        return cluster.namesrvAddr();
    }

    /** A broker by the name of its node: that of its group, with `-s` and its id if it is a slave. */
    public EmulatedBroker broker(String node) {
        return brokers.get(node);
    }

    /** All brokers, by the names of their nodes. */
    public Map<String, EmulatedBroker> brokers() {
        return brokers;
    }

    /** Execute a verb of the console. */
    public List<String> verb(String... words) {
        return cluster.say(words);
    }

    /** Words of each line about a node: its name, role, address and state. */
    private List<String[]> nodes() {
        return verb("nodes").stream().map(line -> line.trim().split("\\s+")).toList();
    }

    /** Whether the process of a node, or a broker in its container, runs. */
    public boolean isRunning(String node) {
        return nodes().stream().anyMatch(words -> words[0].equals(node) && words[words.length - 1].equals("running"));
    }

    /** The node that sends the frames of a broker: its container, if it has one, for all its brokers. */
    private String sender(EmulatedBroker broker) {
        String place = place(broker.getBrokerAddr());
        return nodes().stream()
            .filter(words -> words[1].equals("container") && place(words[2]).equals(place))
            .map(words -> words[0])
            .findFirst().orElse(broker.node());
    }

    /** The last two bytes of an address: guests and nodes have different blocks of loopback addresses. */
    private static String place(String address) {
        return address.replaceFirst(":.*", "").replaceFirst("^\\d+\\.\\d+\\.", "");
    }

    /** Refuse the calls of a code that a broker makes; the name of the fault ends it. */
    private String refuse(String code, EmulatedBroker broker) {
        return fault("refuse", code, "with", "SYSTEM_ERROR", "from", sender(broker));
    }

    /** Lose the requests of a code that a broker sends; the name of the fault ends it. */
    String lose(String code, EmulatedBroker broker) {
        return fault("drop", code, "from", sender(broker));
    }

    private String fault(String... words) {
        String line = verb(words).get(0);
        return line.substring(0, line.indexOf(':'));
    }

    void heal(String fault) {
        verb("heal", fault);
    }

    /** Remove a broker from the nameserver, and refuse its registrations. */
    public void isolate(EmulatedBroker broker) {
        isolated.computeIfAbsent(broker.node(), node -> refuse("REGISTER_BROKER", broker));
        outer.unregisterBrokerAll(
            broker.getBrokerConfig().getBrokerClusterName(), broker.getBrokerAddr(), broker.name(), broker.id());
    }

    /** Let a broker register again. */
    public void endIsolation(EmulatedBroker broker) {
        String fault = isolated.remove(broker.node());
        if (fault != null) {
            heal(fault);
        }
    }

    public DefaultMQAdminExt admin() {
        return admin;
    }

    /** RocketMQ's client of the requests that brokers send. */
    public BrokerOuterAPI outer() {
        return outer;
    }

    MQClientAPIImpl client() {
        return admin.getDefaultMQAdminExtImpl().getMqClientInstance().getMQClientAPIImpl();
    }

    /** What a test calls as its nameserver: its options alone. */
    public NamesrvController nameserver() {
        return StandIn.of(NamesrvController.class, new Nameserver());
    }

    public final class Nameserver {
        private final NamesrvConfig options = StandIn.options(new NamesrvConfig(), this::change);

        public NamesrvConfig getNamesrvConfig() {
            return options;
        }

        private void change(String option, String value) {
            Properties properties = new Properties();
            properties.setProperty(option, value);
            try {
                admin.updateNameServerConfig(properties, List.of(namesrvAddr()));
            } catch (Exception error) {
                throw new IllegalStateException(option + " = " + value, error);
            }
        }
    }
}
