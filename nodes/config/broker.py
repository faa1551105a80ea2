"""The options of a broker."""

from collections.abc import Mapping
from enum import StrEnum

import attrs

from nodes.config.allocation_time import AllocationTime
from nodes.config.auth import AuthConfig
from nodes.config.options import (
    PAUSE_MS,
    TOPIC_QUEUES_MAX,
    count,
    millis,
    name_options,
    period_millis,
    port,
    printed_only,
)
from nodes.config.pop import PopConfig
from nodes.config.remoting import RemotingClientConfig, RemotingServerConfig
from nodes.config.replica import ReplicaConfig
from nodes.config.requests import RequestConfig
from nodes.config.store import StoreConfig
from nodes.config.tables import TableConfig
from nodes.config.timer import TimerConfig
from nodes.fields import IP, LONG_MAX, Rule, checked, choice, flag, text, whole
from nodes.protocol.model import MessageRequestMode
from nodes.protocol.names import DEFAULT_TRACE_REGION, TRACE_TOPIC

_LESS_IN_MEMORY_PERCENT = 10
_OWN_OR_IP = Rule("an IPv4 address, or empty", lambda value: value == "" or IP.holds(value))


class BrokerRole(StrEnum):
    """Which replication a master guarantees for an accepted message."""

    ASYNC_MASTER = "ASYNC_MASTER"
    """None."""
    SYNC_MASTER = "SYNC_MASTER"
    """On enough replicas, as `inSyncReplicas` says."""
    SLAVE = "SLAVE"
    """The broker replicates: with id 0 it is refused, and with another id it is a slave whatever its role says."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class BrokerConfig(
    RemotingServerConfig,
    RemotingClientConfig,
    TableConfig,
    StoreConfig,
    TimerConfig,
    PopConfig,
    ReplicaConfig,
    RequestConfig,
    AuthConfig,
):
    """Options of a broker.

    Mirrors:
        `org.apache.rocketmq.common.BrokerConfig`, and of `MessageStoreConfig` what pulls depend on.
    """

    listen_port: int = port(10_911)
    """For requests; replication has the next port."""
    broker_ip1: str = checked(_OWN_OR_IP, "", key="brokerIP1")
    """The IP address that it registers, which nameservers give clients and other brokers; empty: its own."""
    namesrv_addr: str = text("", empty=True)
    """Nameservers, separated by `;`: names of the scenario, `HOST:PORT`, or one domain name `NAME:PORT`; empty: all of
    the scenario. `updateBrokerConfig` changes it."""
    update_name_server_addr_period: int = period_millis(120_000)
    """Time between two looks at `namesrv_addr`, the first 10 s after the start; a changed list counts from then on."""
    fetch_name_srv_addr_by_dns_lookup: bool = flag(default=False)
    """Look the domain name in `namesrv_addr` up at the start and with each look, and register with all of its
    addresses; else the name is one nameserver, at the address that it had when the connection was opened."""
    fetch_namesrv_addr_by_address_server: bool = flag(default=False)
    """Without `namesrv_addr`: have no nameserver at first, and fetch the list from `[address_server]`, the first time
    10 s after the start."""
    fetch_namesrv_addr_interval: int = period_millis(10_000)
    """Time between two of these fetches."""
    register_name_server_period: int = millis(30_000)
    """Time between two registrations; used within 10,000..60,000 (`register_period_ms`)."""
    register_broker_timeout_mills: int = millis(24_000)
    """How long a registration waits for each nameserver."""
    force_register: bool = flag(default=True)
    """Register even if every nameserver has the current topics."""
    compressed_register: bool = flag(default=False)
    """Compress the body of a registration, without the flag in its header: every nameserver refuses it."""
    enable_split_registration: bool = flag(default=False)
    """Register all topics in parts, one after the other, each with a new version; the last part may be empty."""
    split_registration_size: int = count(800, minimum=1)
    """Topics of a part, with `enable_split_registration`."""
    enable_single_topic_register: bool = flag(default=False)
    """Register a new or changed topic alone (REGISTER_TOPIC_IN_NAMESRV), not as a registration of the broker."""
    enable_slave_acting_master: bool = flag(default=False)
    """Send the acting flag and `broker_not_active_timeout_millis` with registrations, and heartbeats between them."""
    compatible_with_old_name_srv: bool = flag(default=True)
    """Heartbeat with QUERY_DATA_VERSION (322) instead of BROKER_HEARTBEAT (904)."""
    broker_heartbeat_interval: int = period_millis(1_000)
    """Time between two heartbeats; sent only with `enable_slave_acting_master`."""
    sync_broker_member_group_period: int = period_millis(1_000)
    """Time between two polls of the members of the own group; only with `enable_slave_acting_master`."""
    total_replicas: int = count(1, minimum=1)
    """Size of the group; with more than one and `enable_slave_acting_master` a broker starts isolated."""
    skip_pre_online: bool = flag(default=False)
    """Go online without pre-online."""
    broker_role: BrokerRole = choice(BrokerRole, BrokerRole.ASYNC_MASTER)
    """Role of a broker with id 0; every other broker is a slave. A master that becomes SLAVE takes no message."""
    in_sync_replicas: int = count(1, minimum=1)
    """Replicas of a message that a SYNC_MASTER requires, itself included; see `nodes.broker.tables.ha.ha_in_sync`."""
    min_in_sync_replicas: int = count(1, minimum=1)
    """Minimum for `enable_auto_in_sync_replicas`."""
    enable_auto_in_sync_replicas: bool = flag(default=False)
    """Require only as many replicas as are in sync."""
    sync_flush_timeout: int = millis(5_000)
    """How long a send waits for the disk before the answer FLUSH_DISK_TIMEOUT."""
    slave_timeout: int = millis(3_000)
    """How long a send to a SYNC_MASTER waits for replicas before the answer FLUSH_SLAVE_TIMEOUT."""
    sync_master_flush_offset_when_startup: bool = flag(default=False)
    """A slave with an empty log adopts the master's flushed offset."""
    broker_not_active_timeout_millis: int = millis(10_000)
    """Silence after which a nameserver removes the broker; sent only with `enable_slave_acting_master`, else 120 s."""
    broker_permission: int = count(6, maximum=7)
    """Permission of the broker: 4 read, 2 write. Without write only send-backs and ordered topics are refused."""
    acl_enable: bool = flag(default=False)
    """Refuse requests that no `[[account]]` allows: ACL 1.0, of brokers with `knows_plain_acl`. 5.3.3 ignores it."""
    knows_plain_acl: bool = flag(default=False)
    """Whether the broker has ACL 1.0, which 5.3.3 has not; release 4.9 sets it; not RocketMQ's."""
    channel_expired_timeout: int = millis(120_000)
    """Silence after which a consumer's channel is removed from its groups; for producers it is always 120 s."""
    notify_consumer_ids_changed_enable: bool = flag(default=True)
    """Notify the members of a group when its members change."""
    real_time_notify_consumer_change: bool = flag(default=True)
    """Notify at once; else every 15 s."""
    trace_topic_enable: bool = flag(default=False)
    """Have the topic `msgTraceTopicName` with one queue, for traces of messages of clients with `enableTrace`."""
    msg_trace_topic_name: str = text(TRACE_TOPIC)
    """Name of that topic."""
    trace_on: bool = flag(default=True)
    """Whether clients may trace the messages of this broker: its answers and messages have it as `TRACE_ON`."""
    region_id: str = text(DEFAULT_TRACE_REGION)
    """The region in traces of messages of this broker: its answers and messages have it as `MSG_REGION`."""
    auto_create_topic_enable: bool = flag(default=True)
    """Create a topic with the first message to it."""
    default_topic_queue_nums: int = count(8, minimum=1, maximum=TOPIC_QUEUES_MAX)
    """Most queues of such a topic."""
    auto_create_subscription_group: bool = flag(default=True)
    """Create a consumer group with the first request that names it."""
    flush_consumer_offset_interval: int = period_millis(5_000)
    """Time between two writes of the consumer offsets to disk; the first after 10 s."""
    consumer_offset_update_version_step: int = count(500, minimum=1)
    """Commits per new version of the offset table."""
    delay_offset_update_version_step: int = count(200, minimum=1)
    """Updates per new version of the delay offsets."""
    message_delay_level: str = text("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", empty=True)
    """The delay of each level, from level 1."""
    flush_delay_offset_interval: int = period_millis(10_000)
    """Time between two writes of the delay offsets to disk."""
    max_message_size: int = count(4 * 1024 * 1024, minimum=1)
    """Most bytes of a message body."""
    store_reply_message_enable: bool = flag(default=True)
    """Store the replies of request-reply next to handing them to the clients that asked."""
    reject_transaction_message: bool = flag(default=False)
    """Refuse half messages."""
    transaction_time_out: int = millis(6_000, usual=PAUSE_MS)
    """Age below which a half message is not checked."""
    transaction_check_interval: int = period_millis(30_000)
    """Time between two checks of half messages."""
    transaction_check_max: int = count(15, minimum=1)
    """Checks after which a half message is put aside."""
    transaction_op_batch_interval: int = period_millis(3_000)
    """Time between two op messages."""
    transaction_op_msg_max_size: int = count(4_096, minimum=1)
    """Size in bytes above which an op message is written at once."""
    enable_property_filter: bool = flag(default=False)
    """Allow SQL92 filters over properties; else such consumers are refused at their start."""
    use_server_side_reset_offset: bool = flag(default=True)
    """Reset offsets at the broker, for the next pull; else online clients are asked to reset theirs."""
    enable_remote_escape: bool = flag(default=False)
    """An acting master may send messages that are due to other brokers; else they wait."""
    load_balance_poll_name_server_interval: int = period_millis(30_000)
    """Time between two refreshes of routes, for escapes and broker-side rebalance."""
    server_load_balancer_enable: bool = flag(default=True)
    """Broker-side rebalance allocates the queues among the members; else each gets all."""
    assigner_grace_period_ms: int = millis(20_000, minimum=1_000)
    """How long a new assigner collects what the members own before it allocates their queues; not RocketMQ's."""
    assigner_rebalance_interval_ms: int = millis(0, usual=PAUSE_MS)
    """Time between two rounds of an assigner's own thread, as the mission's report has it: what members get is what the
    last round saw. 0: no thread, it looks when a member asks; not RocketMQ's."""
    allocation_time: AllocationTime = choice(AllocationTime, AllocationTime.MILLISECONDS)
    """The same as of consumers, where this broker allocates; not RocketMQ's."""
    default_message_request_mode: MessageRequestMode = choice(MessageRequestMode, MessageRequestMode.PULL)
    """Message request mode of topics without configured one, for broker-side rebalance."""
    default_pop_share_queue_num: int = count(-1, minimum=-1)
    """With POP as default: of how many following members one pops the queues, too; -1 or 0: every member pops all."""
    lock_in_strict_mode: bool = flag(default=False)
    """Lock a queue only if more than half of `total_replicas` agree; else this broker decides alone."""
    long_polling_enable: bool = flag(default=True)
    """Hold a pull without messages for as long as the client allows; else for `short_polling_time_mills`."""
    short_polling_time_mills: int = millis(1_000)
    """Without `long_polling_enable`: how long a pull without messages is held."""
    slave_read_enable: bool = flag(default=False)
    """Let a slave answer pulls."""
    access_message_in_memory_max_ratio: int = count(40, maximum=100)
    """A consumer with more lag than this percentage of `total_physical_memory_size` is sent to a slave."""
    other_fields: Mapping[str, str] = printed_only()
    """Fields of RocketMQ's configuration that are no options here, with their values, for `getBrokerConfig`."""
    total_physical_memory_size: int = whole(16 * 1024 * 1024 * 1024, minimum=1, limit=LONG_MAX)
    """Bytes of memory of the broker's machine."""
    offset_check_in_slave: bool = flag(default=False)
    """A slave corrects a pull offset that it does not have; else the client pulls again at once."""
    max_transfer_count_on_message_in_memory: int = count(32, minimum=1)
    """Most messages in one pull answer."""

    ha_master_address: str = text("", empty=True)
    """`ip:port` to replicate from. From 6 characters on it ends the tracking of the master's HA address, and has no
    other effect: RocketMQ sets it before the HA client exists."""
    ha_send_heartbeat_interval: int = period_millis(5_000)
    """Silence after which either end of an HA link sends a heartbeat or report."""
    ha_housekeeping_interval: int = period_millis(20_000)
    """Silence after which either end of an HA link closes it."""
    ha_transfer_batch_size: int = count(32 * 1024, minimum=1)
    """Bytes of the log in one frame to a slave; a single message may be longer."""
    ha_max_gap_not_in_sync: int = count(256 * 1024 * 1024)
    """Most bytes of lag of a slave that counts as in sync."""

    def of_slave(self) -> "BrokerConfig":
        """The options of a slave, which keeps less of its log in memory.

        Mirrors:
            `org.apache.rocketmq.broker.BrokerStartup#buildBrokerController`,
            `org.apache.rocketmq.container.BrokerContainer#addBroker`.
        """
        ratio = max(self.access_message_in_memory_max_ratio - _LESS_IN_MEMORY_PERCENT, 0)
        return attrs.evolve(self, access_message_in_memory_max_ratio=ratio)

    @property
    def register_period_ms(self) -> int:
        """`register_name_server_period`, limited to 10 s to 60 s."""
        return max(10_000, min(self.register_name_server_period, 60_000))
