"""What a node can be configured with: RocketMQ's options under its names, shipped defaults and units.

A field is the RocketMQ option in snake_case, so `brokerHeartbeatInterval` is
`broker_heartbeat_interval`; that is why the unit stands in the metadata
(`unit`) beside the original name (`option`) and not in the field's name.
A field that ends in `_ms` is no option of RocketMQ but a constant or a
system property of it.
"""

import re
from datetime import datetime
from enum import StrEnum
from typing import Any

import attrs

from nodes.client.client_id import DEFAULT_INSTANCE_NAME
from nodes.config_options import Config, ConfigError, Unit, option_name, options
from nodes.config_options import choice as _choice
from nodes.config_options import flag as _flag
from nodes.config_options import millis as _millis
from nodes.config_options import name_options as _name_options
from nodes.config_options import number as _number
from nodes.config_options import period_millis as _period_millis
from nodes.config_options import port as _port
from nodes.config_options import text as _text
from nodes.protocol.model import ConsumeFromWhere, MessageModel, MessageRequestMode

__all__ = [
    "CONSUME_TIMESTAMP_FORM",
    "AllocateStrategy",
    "BrokerConfig",
    "BrokerRole",
    "ClientConfig",
    "Config",
    "ConfigError",
    "ConsumerConfig",
    "LitePullConsumerConfig",
    "NameserverConfig",
    "ProducerConfig",
    "RemotingClientConfig",
    "RemotingServerConfig",
    "Unit",
    "option_name",
    "options",
]

CONSUME_TIMESTAMP_FORM = "%Y%m%d%H%M%S"


@attrs.frozen(slots=False, kw_only=True, field_transformer=_name_options)
class RemotingClientConfig(Config):
    """How a node behaves as the one who connects.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyClientConfig`.
    """

    connect_timeout_millis: int = _millis(3_000)
    """How long to wait for a connection."""
    client_close_socket_if_timeout: bool = _flag(default=True)
    """Close the connection on which a synchronous call timed out."""
    client_channel_max_idle_time_seconds: int = _number(120, Unit.SECONDS, least=1)
    """Close a connection that carried nothing in either direction for this long."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=_name_options)
class RemotingServerConfig(Config):
    """How a node behaves as the one who is connected to.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyServerConfig`.
    """

    server_channel_max_idle_time_seconds: int = _number(120, Unit.SECONDS, least=1)
    """Close a connection that carried nothing in either direction for this long."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=_name_options)
class NameserverConfig(RemotingServerConfig):
    """Options of a nameserver.

    Mirrors:
        `org.apache.rocketmq.common.namesrv.NamesrvConfig`.
    """

    listen_port: int = _port(9_876)
    first_scan_delay_ms: int = _millis(5)
    """First scan for silent brokers after the start: 5.3.3 waits 5 ms (a slip of the unit), 5.5.0 waits 5 s."""
    scan_not_active_broker_interval: int = _period_millis(5_000)
    """Time between two scans for silent brokers."""
    un_register_broker_queue_capacity: int = _number(3_000, Unit.COUNT, least=1)
    """Unregistrations that may wait; one more is refused."""
    support_acting_master: bool = _flag(default=False)
    """Present the lowest slave of a group without master as broker id 0 in route answers."""
    notify_min_broker_id_changed: bool = _flag(default=False)
    """Tell the members of a group that its lowest broker id changed."""
    need_wait_for_service: bool = _flag(default=False)
    """Refuse route questions until `wait_seconds_for_service` have passed since the start."""
    wait_seconds_for_service: int = _number(45, Unit.SECONDS)
    delete_topic_with_broker_registration: bool = _flag(default=False)
    """A registration takes away the topics that it does not mention."""
    order_message_enable: bool = _flag(default=False)
    """Tell clients which queues of an ordered topic they may use."""
    return_order_topic_config_to_broker: bool = _flag(default=True)
    """Tell brokers, when they register, which topics are ordered."""
    enable_all_topic_list: bool = _flag(default=True)
    """Answer who asks for all topics."""
    enable_topic_list: bool = _flag(default=True)
    """Answer who asks for the topics of a cluster, of the system or of units."""
    knows_member_groups: bool = _flag(default=True)
    """False: a nameserver of 4.x, as far as broker groups go; no option of RocketMQ but its release.

    It leaves 901 and 904 without any answer, as it does with every code that it does not know, and 217 too. It reads
    neither acting flag nor time-out nor zone of a registration, so only masters publish topics, nobody loses write
    permission or is shown as master, and every broker may be silent for 120 s. It sends no 905. A nameserver of 4.9
    scans every 10 s, which is `scan_not_active_broker_interval`; all else stays as in 5.3.3.
    """


class BrokerRole(StrEnum):
    """What a master promises of a message that it has accepted."""

    ASYNC_MASTER = "ASYNC_MASTER"
    """Nothing about other replicas."""
    SYNC_MASTER = "SYNC_MASTER"
    """That enough replicas are in sync."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=_name_options)
class BrokerConfig(RemotingServerConfig, RemotingClientConfig):
    """Options of a broker.

    Mirrors:
        `org.apache.rocketmq.common.BrokerConfig`, and of `MessageStoreConfig` what pulls depend on.
    """

    listen_port: int = _port(10_911)
    register_name_server_period: int = _millis(30_000)
    """Time between two registrations; clamped to 10,000..60,000 where it is used (`register_period_ms`)."""
    register_broker_timeout_mills: int = _millis(24_000)
    """How long a registration waits for each nameserver."""
    force_register: bool = _flag(default=True)
    """Register even where every nameserver already knows the current topics."""
    compressed_register: bool = _flag(default=False)
    """Compress the body of a registration, of which its header says nothing: every nameserver refuses it."""
    enable_slave_acting_master: bool = _flag(default=False)
    """Send the acting flag and `broker_not_active_timeout_millis` with registrations, and heartbeats between them."""
    compatible_with_old_name_srv: bool = _flag(default=True)
    """Heartbeat with QUERY_DATA_VERSION (322) instead of BROKER_HEARTBEAT (904)."""
    broker_heartbeat_interval: int = _period_millis(1_000)
    """Time between two heartbeats; sent only with `enable_slave_acting_master`."""
    sync_broker_member_group_period: int = _period_millis(1_000)
    """Time between two questions after the members of the own group; asked only with `enable_slave_acting_master`."""
    total_replicas: int = _number(1, Unit.COUNT, least=1)
    """Brokers of the group; more than one and `enable_slave_acting_master`: a broker starts isolated."""
    skip_pre_online: bool = _flag(default=False)
    """Go online without a look at the group."""
    broker_role: BrokerRole = _choice(BrokerRole.ASYNC_MASTER)
    """Of a broker with id 0; every other one is a slave, whatever this says."""
    in_sync_replicas: int = _number(1, Unit.COUNT, least=1)
    """Replicas that a SYNC_MASTER wants a message on, itself included; see `nodes.broker.ha_in_sync`."""
    min_in_sync_replicas: int = _number(1, Unit.COUNT, least=1)
    """What `enable_auto_in_sync_replicas` does not go below."""
    enable_auto_in_sync_replicas: bool = _flag(default=False)
    """Be content with as many replicas as are in sync."""
    sync_flush_timeout: int = _millis(5_000)
    """How long a send waits for the disk, before it is answered FLUSH_DISK_TIMEOUT."""
    slave_timeout: int = _millis(3_000)
    """How long a SYNC_MASTER lets a sender wait for replicas before it says that they did not make it."""
    sync_master_flush_offset_when_startup: bool = _flag(default=False)
    """A slave whose log knows nothing adopts how far the master's is flushed."""
    broker_not_active_timeout_millis: int = _millis(10_000)
    """Silence after which a nameserver forgets the broker; told only with `enable_slave_acting_master`, else 120 s."""
    broker_permission: int = _number(6, Unit.NONE, most=7)
    """What may be done here: 4 read, 2 write. Sends are refused only for ordered topics and by send-backs."""
    channel_expired_timeout: int = _millis(120_000)
    """Silence after which a client's channel is removed from the registries."""
    notify_consumer_ids_changed_enable: bool = _flag(default=True)
    """Tell the members of a group that its membership changed."""
    real_time_notify_consumer_change: bool = _flag(default=True)
    """Tell them at once; else every 15 s."""
    auto_create_topic_enable: bool = _flag(default=True)
    """Create a topic when a message for it arrives."""
    default_topic_queue_nums: int = _number(8, Unit.COUNT, least=1)
    """Most queues that such a topic gets."""
    auto_create_subscription_group: bool = _flag(default=True)
    """Create the settings of a consumer group when it is first heard of."""
    flush_consumer_offset_interval: int = _period_millis(5_000)
    """Time between two writes of the consumer offsets to disk; the first after 10 s."""
    consumer_offset_update_version_step: int = _number(500, Unit.COUNT, least=1)
    """Commits after which the version of the offset table steps."""
    delay_offset_update_version_step: int = _number(200, Unit.COUNT, least=1)
    """Updates after which the version of the delay offsets steps."""
    message_delay_level: str = _text("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
    """How long each delay level waits, the first one first."""
    flush_delay_offset_interval: int = _period_millis(10_000)
    """Time between two writes of the delay offsets to disk."""
    max_message_size: int = _number(4 * 1024 * 1024, Unit.COUNT, least=1)
    """Bytes that the body of a message may have."""
    file_reserved_time: int = _number(72, Unit.COUNT, least=1)
    """Hours after which a half message is given up."""
    reject_transaction_message: bool = _flag(default=False)
    """Refuse half messages."""
    transaction_time_out: int = _millis(6_000)
    """Age below which nobody asks the producer of a half message."""
    transaction_check_interval: int = _period_millis(30_000)
    """Time between two checks of half messages."""
    transaction_check_max: int = _number(15, Unit.COUNT, least=1)
    """Checks after which a half message is put aside."""
    transaction_op_batch_interval: int = _period_millis(3_000)
    """Time between two messages that tell which half messages have ended."""
    transaction_op_msg_max_size: int = _number(4_096, Unit.COUNT, least=1)
    """Bytes from which on such a message is written at once."""
    enable_property_filter: bool = _flag(default=False)
    """Let consumers filter by SQL92 over properties; else they are refused when they start."""
    use_server_side_reset_offset: bool = _flag(default=True)
    """Reset offsets here, for whoever pulls next; else clients are told to, and who is away is not reset."""
    enable_remote_escape: bool = _flag(default=False)
    """A slave that acts as master may hand messages that are due to other brokers; else they stay where they are."""
    load_balance_poll_name_server_interval: int = _period_millis(30_000)
    """Time between two refreshes of the routes to other brokers, and of the queues that are divided here."""
    server_load_balancer_enable: bool = _flag(default=True)
    """Divide the queues among the members that ask for their shares; else everybody gets all."""
    default_message_request_mode: MessageRequestMode = _choice(MessageRequestMode.PULL)
    """How members that ask for their shares get the messages of a topic for which nobody set a mode."""
    default_pop_share_queue_num: int = _number(-1, Unit.COUNT, least=-1)
    """With POP as default: the shares of how many following members one pops, too; -1 or 0: everybody pops all."""
    timer_wheel_enable: bool = _flag(default=True)
    """Have a timer, and so a check point of it to answer with and to copy."""
    lock_in_strict_mode: bool = _flag(default=False)
    """Lock a queue only if more than half of `total_replicas` do; else this broker alone decides."""
    long_polling_enable: bool = _flag(default=True)
    """Hold a pull that found nothing for as long as the client allows; else for `short_polling_time_mills`."""
    short_polling_time_mills: int = _millis(1_000)
    slave_read_enable: bool = _flag(default=False)
    """Let a slave answer pulls."""
    access_message_in_memory_max_ratio: int = _number(40, Unit.COUNT, most=100)
    """A consumer that lags by more than so many percent of `total_physical_memory_size` is sent to a slave."""
    total_physical_memory_size: int = _number(16 * 1024 * 1024 * 1024, Unit.COUNT, least=1)
    """Bytes of memory of the broker's machine."""
    offset_check_in_slave: bool = _flag(default=False)
    """A slave corrects a pull offset that it does not have; else it says to try again at once."""
    max_transfer_count_on_message_in_memory: int = _number(32, Unit.COUNT, least=1)
    """Most messages in one pull answer."""

    ha_master_address: str = _text("")
    """`ip:port` to replicate from. From 6 characters on it ends the tracking of the master's HA address, and does
    nothing else: it is told to the HA client before there is one."""
    ha_send_heartbeat_interval: int = _period_millis(5_000)
    """Silence after which either end of an HA link says something."""
    ha_housekeeping_interval: int = _period_millis(20_000)
    """Silence after which either end of an HA link drops it."""
    ha_transfer_batch_size: int = _number(32 * 1024, Unit.COUNT, least=1)
    """Bytes of the log in one frame to a slave; a single message may be longer."""
    ha_max_gap_not_in_sync: int = _number(256 * 1024 * 1024, Unit.COUNT)
    """Bytes that a slave may lag behind and still count as in sync."""
    mapped_file_size_commit_log: int = _number(1024 * 1024 * 1024, Unit.COUNT, least=1)
    """Bytes of one file of the log: an empty slave starts at the beginning of its master's last one."""

    @property
    def register_period_ms(self) -> int:
        """`register_name_server_period` as it is used: not below 10 s, not above 60 s."""
        return max(10_000, min(self.register_name_server_period, 60_000))


@attrs.frozen(slots=False, kw_only=True, field_transformer=_name_options)
class ClientConfig(RemotingClientConfig):
    """Options that consumers and producers have in common.

    Mirrors:
        `org.apache.rocketmq.client.ClientConfig`.
    """

    poll_name_server_interval: int = _period_millis(30_000)
    """Time between two refreshes of all routes; the first after 10 ms."""
    heartbeat_broker_interval: int = _period_millis(30_000)
    """Time between two heartbeats to all brokers; the first after 1 s."""
    persist_consumer_offset_interval: int = _period_millis(5_000)
    """Time between two commits of all offsets; the first after 10 s."""
    mq_client_api_timeout: int = _millis(3_000)
    """How long a call to a nameserver or broker waits where nothing else is said."""
    pull_time_delay_mills_when_exception: int = _millis(1_000)
    """Pause of a queue after a failed pull."""
    enable_heartbeat_channel_event_listener: bool = _flag(default=True)
    """Heartbeat a broker as soon as a connection to it is open."""
    use_heartbeat_v2: bool = _flag(default=False)
    """Leave the subscriptions out of heartbeats to brokers that know them by their hash."""
    instance_name: str = _text(DEFAULT_INSTANCE_NAME)
    """Behind the `@` of the client id; as long as it is the default one, each process of a clustering consumer or a
    producer makes up one of its own. Two processes on one address with the same name are one client to brokers."""
    rebalance_wait_interval_ms: int = _period_millis(20_000)
    """Longest time between two rebalance passes (`rocketmq.client.rebalance.waitInterval`)."""
    rebalance_min_interval_ms: int = _period_millis(1_000)
    """Shortest time between two rebalance passes (`rocketmq.client.rebalance.minInterval`)."""


def _list_of(entry: str, expected: str) -> str | None:
    whole = re.compile(rf"\s*{entry}(\s*,\s*{entry})*\s*")

    def check(_config: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if value is not None and not (isinstance(value, str) and (not value or whole.fullmatch(value))):
            raise ConfigError(field.metadata["option"], f"{expected}, not {value!r}")

    made: str | None = attrs.field(default=None, validator=check, metadata={"unit": Unit.NONE})
    return made


def _timestamp() -> str | None:
    def check(_config: object, field: "attrs.Attribute[Any]", value: object) -> None:
        if value is not None and not (isinstance(value, str) and _is_timestamp(value)):
            raise ConfigError(field.metadata["option"], f"an instant as yyyyMMddHHmmss, not {value!r}")

    made: str | None = attrs.field(default=None, validator=check, metadata={"unit": Unit.NONE})
    return made


def _is_timestamp(text: str) -> bool:
    try:
        datetime.strptime(text, CONSUME_TIMESTAMP_FORM)  # noqa: DTZ007 - only whether it is one
    except ValueError:
        return False
    return True


_QUEUE_TEXT = r"[^@,\s]+@[^,\s]+@[0-9]+"
_ROOM_TEXT = r"[^=,\s]+=[^=,\s]+"


class AllocateStrategy(StrEnum):
    """Which rule divides the queues of a topic among the members of a group."""

    AVG = "AVG"
    """Neighbouring queues to each member."""
    AVG_BY_CIRCLE = "AVG_BY_CIRCLE"
    """Queues dealt out one by one."""
    CONFIG = "CONFIG"
    """The queues of `message_queue_list`, whoever asks."""
    MACHINE_ROOM = "MACHINE_ROOM"
    """Only queues of the rooms in `consumeridcs`."""
    MACHINE_ROOM_NEARBY = "MACHINE_ROOM_NEARBY"
    """Queues of the own room in `machine_rooms`, divided by `inner_allocate_strategy`."""
    CONSISTENT_HASH = "CONSISTENT_HASH"
    """Queues by their place on a ring of hashes."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=_name_options)
class ConsumerConfig(ClientConfig):
    """Options of a push consumer.

    Mirrors:
        `org.apache.rocketmq.client.consumer.DefaultMQPushConsumer`.
    """

    allocate_message_queue_strategy: AllocateStrategy = _choice(AllocateStrategy.AVG)
    message_queue_list: str | None = _list_of(_QUEUE_TEXT, "topic@broker@queueId, ...")
    """CONFIG: the queues of this consumer; None: never configured."""
    consumeridcs: str | None = _list_of(r"[^,@]*", "room, ...")
    """MACHINE_ROOM: the rooms, each of which stands before an `@` in the names of its brokers; None: never set."""
    inner_allocate_strategy: AllocateStrategy = _choice(AllocateStrategy.AVG)
    """MACHINE_ROOM_NEARBY: what divides the queues of one room."""
    machine_rooms: str | None = _list_of(_ROOM_TEXT, "room=prefix, ...")
    """MACHINE_ROOM_NEARBY: who is where: brokers and client ids (`ip@...`) by how they begin.

    It stands for the resolver, a class that an application of RocketMQ brings along.
    """
    virtual_node_cnt: int = _number(10, Unit.COUNT)
    """CONSISTENT_HASH: places of each member on the ring."""
    message_model: MessageModel = _choice(MessageModel.CLUSTERING)
    """BROADCASTING: every member consumes all queues, keeps its offsets on its own disk and retries nothing."""
    client_rebalance: bool = _flag(default=True)
    """Divide the queues here; else one broker of the topic is asked for this member's share, unless the consumer is
    ordered or broadcasting. Queues that the broker assigns for popping are not consumed: popping is not emulated."""
    consume_from_where: ConsumeFromWhere = _choice(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    consume_timestamp: str | None = _timestamp()
    """CONSUME_FROM_TIMESTAMP: the instant, yyyyMMddHHmmss in UTC; None: half an hour before the consumer was made."""
    consume_thread_min: int = _number(20, Unit.COUNT, least=1)
    """Listeners that run at once."""
    consume_message_batch_max_size: int = _number(1, Unit.COUNT, least=1, most=1024)
    """Messages handed to one call of the listener."""
    consume_orderly: bool = _flag(default=False)
    """The listener is one for messages in order: a queue is consumed only while its lock at the broker is held."""
    suspend_current_queue_time_millis: int = _millis(1_000)
    """Pause of an ordered queue after its listener failed; clamped to 10..30,000 where it is used."""
    max_time_consume_continuously_ms: int = _millis(60_000)
    """A thread leaves an ordered queue after this long (`rocketmq.client.maxTimeConsumeContinuously`)."""
    rebalance_lock_interval_ms: int = _period_millis(20_000)
    """Time between two renewals of all locks of ordered queues (`rocketmq.client.rebalance.lockInterval`)."""
    max_reconsume_times: int = _number(-1, Unit.COUNT, least=-1)
    """Deliveries again before a message goes to the dead letters; -1 means 16."""
    pull_batch_size: int = _number(32, Unit.COUNT, least=1, most=1024)
    """Messages asked for in one pull."""
    pull_interval: int = _number(0, Unit.MILLISECONDS, most=65_535)
    """Pause between a pull that found messages and the next."""
    pull_threshold_for_queue: int = _number(1_000, Unit.COUNT, least=1, most=65_535)
    """Cached messages of a queue above which pulling pauses."""
    pull_threshold_size_for_queue: int = _number(100, Unit.COUNT, least=1, most=1_024)
    """Cached MiB of a queue above which pulling pauses."""
    pull_threshold_for_topic: int = _number(-1, Unit.COUNT, least=-1, most=6_553_500)
    """Divided by the number of queues in the table it becomes `pull_threshold_for_queue`; -1: it does not."""
    pull_threshold_size_for_topic: int = _number(-1, Unit.COUNT, least=-1, most=102_400)
    """The same for `pull_threshold_size_for_queue`, MiB."""
    consume_timeout: int = _number(15, Unit.MINUTES, least=1)
    """How long a listener may have the first cached message before it is sent back; also how often that is checked."""
    consume_concurrently_max_span: int = _number(2_000, Unit.COUNT, least=1, most=65_535)
    """Distance between the first and the last cached offset above which pulling pauses."""
    broker_suspend_max_time_millis: int = _millis(15_000)
    """How long a broker may hold a pull that finds nothing."""
    consumer_timeout_millis_when_suspend: int = _millis(30_000)
    """How long the client waits for the answer of a pull."""
    pull_max_idle_time_ms: int = _millis(120_000)
    """A queue that was not pulled for this long is dropped and taken again (`rocketmq.client.pull.pullMaxIdleTime`)."""

    def __attrs_post_init__(self) -> None:
        if self.inner_allocate_strategy is AllocateStrategy.MACHINE_ROOM_NEARBY:
            raise ConfigError("innerAllocateStrategy", "a strategy that has no other inside")
        for option in ("pull_threshold_for_topic", "pull_threshold_size_for_topic"):
            if getattr(self, option) == 0:
                raise ConfigError(option_name(option), "-1 or a whole number >= 1, not 0")


_NEVER_MS = 1_000_000_000
_NOT_IN_LITE_PULL = (
    *("message_model", "client_rebalance", "consume_orderly", "consume_thread_min", "consume_message_batch_max_size"),
    *("suspend_current_queue_time_millis", "max_time_consume_continuously_ms", "rebalance_lock_interval_ms"),
    *("max_reconsume_times", "pull_interval", "pull_threshold_for_topic", "pull_threshold_size_for_topic"),
    *("consume_timeout", "consume_concurrently_max_span", "pull_max_idle_time_ms"),
)


@attrs.frozen(slots=False, kw_only=True, field_transformer=_name_options)
class LitePullConsumerConfig(ConsumerConfig):
    """Options of a lite pull consumer; those that only a listener or a thread of it needs have no other value.

    Broadcasting, which the real one can, is not emulated for it.

    Mirrors:
        `org.apache.rocketmq.client.consumer.DefaultLitePullConsumer`.
    """

    auto_commit: bool = _flag(default=True)
    """Commit at polls what earlier polls have returned; else the application commits after each batch."""
    auto_commit_interval_millis: int = _number(5_000, Unit.MILLISECONDS, least=1_000)
    """Shortest time between two such commits; brokers hear of them at the next `persist_consumer_offset_interval`."""
    broker_suspend_max_time_millis: int = _millis(20_000)
    """How long a broker may hold a pull that finds nothing; a thread waits for it."""
    consume_max_span: int = _number(2_000, Unit.COUNT, least=1)
    """Distance between the first and the last cached offset above which pulling pauses."""
    poll_timeout_millis: int = _period_millis(5_000)
    """How long the application waits for messages in one poll."""
    pull_batch_size: int = _number(10, Unit.COUNT, least=1, most=1024)
    """Messages asked for in one pull; what a pull found is what a poll returns."""
    pull_max_idle_time_ms: int = _period_millis(_NEVER_MS)
    """A queue that nobody pulls for long stays."""
    pull_thread_nums: int = _number(20, Unit.COUNT, least=1)
    """Queues pulled at once."""
    pull_threshold_for_all: int = _number(10_000, Unit.COUNT, least=1)
    """Messages in batches that wait for a poll, each counted as a full one, above which pulling pauses."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        shipped = attrs.fields_dict(LitePullConsumerConfig)
        for name in _NOT_IN_LITE_PULL:
            if getattr(self, name) != shipped[name].default:
                raise ConfigError(option_name(name), "its default: a lite pull consumer has no other")


@attrs.frozen(slots=False, kw_only=True, field_transformer=_name_options)
class ProducerConfig(ClientConfig):
    """Options of a producer.

    Mirrors:
        `org.apache.rocketmq.client.producer.DefaultMQProducer`.
    """

    send_msg_timeout: int = _millis(3_000)
    """Budget of one send, its retries included."""
    retry_times_when_send_failed: int = _number(2, Unit.COUNT)
    """Attempts after the first of a synchronous send."""
    send_msg_max_timeout_per_request: int = _number(-1, Unit.MILLISECONDS, least=-1)
    """Longest that an attempt may take after which another could follow; -1: all that is left of the budget."""
    retry_another_broker_when_not_store_ok: bool = _flag(default=False)
    """Send again what a broker accepted but keeps less well than it promises, as when its slave is away."""
    send_latency_enable: bool = _flag(default=False)
    """Avoid brokers that were slow or failed, for up to 30 s."""
    default_topic_queue_nums: int = _number(4, Unit.COUNT, least=1)
    """Queues that a topic created by a send is asked to have."""
