"""The options of clients: push, lite pull and classic pull consumers, producers."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Any, NewType

import attrs

from nodes.config.allocation_time import AllocationTime
from nodes.config.options import (
    MINUTES,
    PAUSE_MS,
    TOPIC_QUEUES_MAX,
    count,
    millis,
    name_options,
    option_name,
    period_millis,
    seconds,
)
from nodes.config.remoting import RemotingClientConfig
from nodes.config.user_functions import FunctionKind, function_rule
from nodes.fields import FieldError, Rule, Usual, checked, choice, flag, text, whole
from nodes.protocol.model import ConsumeFromWhere, MessageModel
from nodes.protocol.names import DEFAULT_INSTANCE_NAME
from nodes.secret import Secret, secret

VIRTUAL_NODES_MAX = 10_000
CONSUME_TIMESTAMP_FORM = "%Y%m%d%H%M%S"


_NAMESPACE = re.compile(r"[|a-zA-Z0-9_-]+")


def _namespace() -> str | None:
    rule = Rule("a name of letters, digits, `|`, `-`, `_`", lambda value: bool(_NAMESPACE.fullmatch(str(value))))
    made: str | None = checked(rule, None)
    return made


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ClientConfig(RemotingClientConfig):
    """Options that consumers and producers have in common.

    Mirrors:
        `org.apache.rocketmq.client.ClientConfig`.
    """

    namesrv_addr: str = text("", empty=True)
    """Nameservers, separated by `;`: names of the scenario or `HOST:PORT`; empty: all of the scenario. A domain name
    is looked up when a connection is opened. The name of a proxy stands for its remoting port: the proxy takes the
    place of a nameserver and of all brokers. A restart changes the option."""
    fetch_namesrv_addr_by_address_server: bool = flag(default=False)
    """Without `namesrv_addr`: fetch the list from `[address_server]` at the start, after 10 s, and then every 120 s.
    RocketMQ's clients do so whenever they have no `namesrv_addr`; this option is not RocketMQ's."""
    leaves_removed_nameserver: bool = flag(default=True)
    """Leave a nameserver at once that a new list does not have; else only when its connection ends, as before 4.7.1
    (upstream 2042). This option is not RocketMQ's."""
    poll_name_server_interval: int = period_millis(30_000)
    """Time between two refreshes of all routes; the first after 10 ms."""
    heartbeat_broker_interval: int = period_millis(30_000)
    """Time between two heartbeats to all brokers; the first after 1 s."""
    persist_consumer_offset_interval: int = period_millis(5_000)
    """Time between two commits of all offsets; the first after 10 s."""
    mq_client_api_timeout: int = millis(3_000)
    """Default time-out of calls to nameservers and brokers."""
    pull_time_delay_mills_when_exception: int = millis(1_000, usual=PAUSE_MS)
    """Pause of a queue after a failed pull."""
    enable_heartbeat_channel_event_listener: bool = flag(default=True)
    """Send a heartbeat over each new connection to a broker."""
    use_heartbeat_v2: bool = flag(default=False)
    """Omit the subscriptions from heartbeats to brokers that know their hash."""
    instance_name: str = text(DEFAULT_INSTANCE_NAME, empty=True)
    """Part of the client id after the `@`; by default each process of a clustering consumer or a producer makes a
    unique one. Two processes on one address with the same name are one client to brokers."""
    access_key: str = text("", empty=True)
    """Access key of an account, for brokers with `aclEnable`; empty: requests are not signed."""
    secret_key: Secret = secret()
    """Secret key of the account, with which all requests are signed; needed with `access_key`. As that of an account
    it is never written or printed, and may be `{ env = "NAME" }` or `{ file = "PATH" }`."""
    namespace: str | None = _namespace()
    """Names of groups and topics begin with `NAMESPACE%`; a name that has it already stays. Brokers know the full names
    alone. None: none, or that of an instance in `namesrvAddr`, such as `http://MQ_INST_1_shop.DOMAIN:PORT`."""
    namespace_v2: str | None = _namespace()
    """Sent with each request (`ns`, `nsd`); names stay as they are, and no server of 5.3.3 reads it."""
    enable_trace: bool = flag(default=False)
    """Send traces of messages: a second client in the process sends what this one records about sends and
    consumptions to the trace topic."""
    trace_topic: str | None = text(None)
    """The trace topic; None: RMQ_SYS_TRACE_TOPIC."""
    trace_msg_batch_num: int = count(10, minimum=1)
    """Traces that are sent together; 20 at most. Fewer are sent 5 s after the last ones."""
    rebalance_wait_interval_ms: int = period_millis(20_000)
    """Longest time between two rebalance passes (`rocketmq.client.rebalance.waitInterval`)."""
    rebalance_min_interval_ms: int = period_millis(1_000)
    """Shortest time between two rebalance passes (`rocketmq.client.rebalance.minInterval`)."""


def _list_of(entry: str, expected: str) -> str | None:
    form = re.compile(rf"\s*{entry}(\s*,\s*{entry})*\s*")
    rule = Rule(expected, lambda value: isinstance(value, str) and (not value or bool(form.fullmatch(value))))
    made: str | None = checked(rule, None)
    return made


def _timestamp() -> str | None:
    rule = Rule("an instant as yyyyMMddHHmmss", lambda value: isinstance(value, str) and _is_timestamp(value))
    made: str | None = checked(rule, None)
    return made


def _is_timestamp(value: str) -> bool:
    try:
        datetime.strptime(value, CONSUME_TIMESTAMP_FORM)  # noqa: DTZ007 - only whether it is one
    except ValueError:
        return False
    return True


_QUEUE_TEXT = r"[^@,\s]+@[^,\s]+@[0-9]+"


_ROOM_TEXT = r"[^=,\s]+=[^=,\s]+"


class AllocateStrategy(StrEnum):
    """The rule that allocates the queues of a topic among the members of a group."""

    AVG = "AVG"
    """Neighbouring queues to each member."""
    AVG_BY_CIRCLE = "AVG_BY_CIRCLE"
    """Queues dealt out one by one."""
    CONFIG = "CONFIG"
    """The queues of `message_queue_list`, for every member."""
    MACHINE_ROOM = "MACHINE_ROOM"
    """Only queues of the rooms in `consumeridcs`."""
    MACHINE_ROOM_NEARBY = "MACHINE_ROOM_NEARBY"
    """Queues of the member's own room in `machine_rooms`, allocated by `inner_allocate_strategy`."""
    CONSISTENT_HASH = "CONSISTENT_HASH"
    """Queues by their place on a ring of hashes."""
    KAFKA_ROUND_ROBIN = "KAFKA_ROUND_ROBIN"
    """Queues of all topics merged and dealt out one by one, as Kafka does; no strategy of RocketMQ."""
    STICKY = "STICKY"
    """Queues stay with their members as far as balance allows; a broker assigns them. No strategy of RocketMQ."""
    PR2169 = "PR2169"
    """The sticky strategy of pull request 2169 with its defects; a broker assigns the queues."""
    ORDINAL = "ORDINAL"
    """Neighbouring queues by the ordinal of a pod in its StatefulSet; not a strategy of RocketMQ."""


STATEFUL = (AllocateStrategy.STICKY, AllocateStrategy.PR2169)
"""They remember who owned what, so one place has to allocate: no client does."""
NOT_INSIDE = (
    *STATEFUL,
    AllocateStrategy.MACHINE_ROOM_NEARBY,
    AllocateStrategy.KAFKA_ROUND_ROBIN,
    AllocateStrategy.ORDINAL,
)
"""Strategies that cannot allocate the queues of one room."""
FunctionName = NewType("FunctionName", str)
"""The name of a function of the user's own."""


def _strategy(default: AllocateStrategy) -> Any:
    """A strategy of this module, or the name of a function."""

    def convert(value: Any) -> Any:
        return AllocateStrategy(value) if isinstance(value, str) and value in list(AllocateStrategy) else value

    return checked(function_rule(FunctionKind.STRATEGY, AllocateStrategy), default, converter=convert)


class Exclusivity(StrEnum):
    """What keeps two consumers of a group from consuming one queue at the same time; not of RocketMQ."""

    NONE = "none"
    """Nothing."""
    SINGLE_ACTIVE = "single_active"
    """Brokers give the messages of a queue to one consumer only, until it cancels or its connection is gone."""
    LEASE = "lease"
    """A consumer takes a lease of a queue before it pulls it, and judges by its own clock whether it still has it."""


class LockServiceKind(StrEnum):
    """The service that lends queues; not of RocketMQ."""

    LEASE = "lease"
    """A service whose leases end by its own wall clock. A consumer compares their end with its own wall clock."""
    DYNAMODB = "dynamodb"
    """A store of conditional writes without any clock. A lock whose record version stays is taken over after the time
    that its owner has written down, by the clock of the consumer that waits: the AWS DynamoDB Lock Client."""
    BLOB = "blob"
    """Leases of blobs, which end by the clock of the store: Azure Storage. An expired one can be renewed."""
    ZOOKEEPER = "zookeeper"
    """Ephemeral nodes of a session, which ends when its client is silent; neither side looks at a wall clock."""
    REDLOCK = "redlock"
    """Keys with an expiry at most of five nodes of Redis, which do not know each other, and forget at a restart."""
    POSTGRESQL = "postgresql"
    """Advisory locks, which belong to a connection to the database and end with it."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ConsumerConfig(ClientConfig):
    """Options of a push consumer.

    Mirrors:
        `org.apache.rocketmq.client.consumer.DefaultMQPushConsumer`.
    """

    allocate_message_queue_strategy: AllocateStrategy | FunctionName = _strategy(AllocateStrategy.AVG)
    """A strategy by its name, or a function of your own: `module:function`, or the name of an entry point of
    the group `rmqemu.strategies`. It is called as `nodes.allocation.strategy.AllocateMessageQueueStrategy` says."""
    allocation_time: AllocationTime = choice(AllocationTime, AllocationTime.MILLISECONDS)
    """How long the calculation of an allocation takes before its result is used: what Java took for as many queues and
    members, in whole milliseconds, which is none for up to some hundred queues; `us` counts microseconds, `none`
    nothing. Strategies of your own and those that were not measured take no time; not RocketMQ's."""
    message_queue_list: str | None = _list_of(_QUEUE_TEXT, "topic@broker@queueId, ...")
    """CONFIG: the queues of this consumer; None: never configured."""
    consumeridcs: str | None = _list_of(r"[^,@]*", "room, ...")
    """MACHINE_ROOM: the rooms, which are the part before the `@` of broker names; None: never set."""
    inner_allocate_strategy: AllocateStrategy = choice(AllocateStrategy, AllocateStrategy.AVG)
    """MACHINE_ROOM_NEARBY: the strategy within one room."""
    machine_rooms: str | None = _list_of(_ROOM_TEXT, "room=prefix, ...")
    """MACHINE_ROOM_NEARBY: the rooms of brokers and client ids (`ip@...`), by prefix.

    It stands for the resolver, a class that applications of RocketMQ provide.
    """
    virtual_node_cnt: int = count(10, maximum=VIRTUAL_NODES_MAX)
    """CONSISTENT_HASH: places of each member on the ring."""
    hash_function: FunctionName | None = checked(function_rule(FunctionKind.HASH_FUNCTION), None)
    """CONSISTENT_HASH: a function of your own from a text to a whole number, by module and function or by entry point
    of the group `rmqemu.hash_functions`; None: the first four bytes of MD5."""
    partition_prefix: str | None = text(None)
    """ORDINAL: what the names of topics that are partitions begin with, before their number; None: the queues of each
    topic are the partitions."""
    partition_count: int = count(1, minimum=1)
    """ORDINAL with `partition_prefix`: number of partitions."""
    message_model: MessageModel = choice(MessageModel, MessageModel.CLUSTERING)
    """BROADCASTING: every member consumes all queues, stores its offsets on its own disk, and retries nothing."""
    client_rebalance: bool = flag(default=True)
    """Client-side rebalance; else one broker of the topic assigns the queues, unless the consumer is ordered or
    broadcasting, and says whether they are pulled or popped."""
    pinned_assigner: bool = flag(default=False)
    """With `clientRebalance = false`: all members ask the same broker, the assigner, which remembers what it has
    assigned; not RocketMQ's. Ordered consumers ask it, too, and still lock their queues."""
    revoke_before_assign: bool = flag(default=False)
    """With `pinnedAssigner`: a queue is assigned only when its last owner has released it."""
    heartbeat_to_assigner: bool = flag(default=False)
    """With `pinnedAssigner`: send heartbeats to the assigner alone, as the proposal draws it. Other brokers then do
    not know the consumer, and refuse its pulls."""
    consume_from_where: ConsumeFromWhere = choice(ConsumeFromWhere, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET)
    """Where a group begins in a queue of which it has no offset."""
    consume_timestamp: str | None = _timestamp()
    """CONSUME_FROM_TIMESTAMP: the time, yyyyMMddHHmmss in UTC; None: half an hour before the consumer was created."""
    consume_thread_min: int = count(20, minimum=1, maximum=1000)
    """Listeners that run concurrently."""
    consume_message_batch_max_size: int = count(1, minimum=1, maximum=1024)
    """Messages handed to one call of the listener."""
    consume_orderly: bool = flag(default=False)
    """Ordered consumption: a queue is consumed only while it is locked at its broker."""
    suspend_current_queue_time_millis: int = millis(1_000, usual=PAUSE_MS)
    """Pause of an ordered queue after its listener failed; used within 10..30,000."""
    max_time_consume_continuously_ms: int = millis(60_000)
    """A thread leaves an ordered queue after this long (`rocketmq.client.maxTimeConsumeContinuously`)."""
    rebalance_lock_interval_ms: int = period_millis(20_000)
    """Time between two renewals of all locks of ordered queues (`rocketmq.client.rebalance.lockInterval`)."""
    max_reconsume_times: int = count(-1, minimum=-1)
    """Redeliveries before a message becomes a dead letter; -1 means 16, or no limit if ordered."""
    pull_batch_size: int = count(32, minimum=1, maximum=1024)
    """Most messages of one pull."""
    pull_interval: int = millis(0, maximum=65_535, usual=PAUSE_MS)
    """Pause between a pull that found messages and the next."""
    pull_threshold_for_queue: int = count(1_000, minimum=1, maximum=65_535)
    """Cached messages of a queue above which pulling pauses."""
    pull_threshold_size_for_queue: int = count(100, minimum=1, maximum=1_024)
    """Cached MiB of a queue above which pulling pauses."""
    pull_threshold_for_topic: int = count(-1, minimum=-1, maximum=6_553_500)
    """Divided by the number of queues in the table it becomes `pull_threshold_for_queue`; -1: it does not."""
    pull_threshold_size_for_topic: int = count(-1, minimum=-1, maximum=102_400)
    """The same for `pull_threshold_size_for_queue`, MiB."""
    pop_invisible_time: int = millis(60_000)
    """How long no one else gets a message that was popped; outside of 5,000 to 300,000 it counts as 60,000."""
    pop_batch_nums: int = count(32, minimum=1)
    """Most messages of one pop; a broker refuses more than 32."""
    pop_threshold_for_queue: int = count(96, minimum=1)
    """Messages of a popped queue without answer above which popping pauses."""
    consume_timeout: int = whole(15, unit=MINUTES, minimum=1, usual=Usual(1, 24 * 60))
    """How long a listener may take before its message is sent back; also the time between two checks of that."""
    consume_concurrently_max_span: int = count(2_000, minimum=1, maximum=65_535)
    """Distance between the first and the last cached offset above which pulling pauses."""
    broker_suspend_max_time_millis: int = millis(15_000)
    """How long a broker may hold a pull without messages."""
    consumer_timeout_millis_when_suspend: int = millis(30_000)
    """How long the client waits for the answer of a pull."""
    pull_max_idle_time_ms: int = millis(120_000)
    """A queue that was not pulled for this long is dropped and added again (`rocketmq.client.pull.pullMaxIdleTime`)."""
    exclusivity: Exclusivity = choice(Exclusivity, Exclusivity.NONE)
    """Other than none, a consumer finishes the messages in process before it gives a queue away."""
    lock_service: LockServiceKind = choice(LockServiceKind, LockServiceKind.LEASE)
    """`exclusivity = "lease"`: what lends the queues; all such groups of a scenario have the same."""
    fencing: bool = flag(default=False)
    """`exclusivity = "lease"`: pulls and commits bear the number of the lock, and brokers refuse those with a smaller
    number than they have seen. Redlock has no such number."""
    lease_duration_ms: int = period_millis(15_000)
    """How long a lease is valid after it was granted or renewed; the time-out of a ZooKeeper session."""
    lease_renew_interval_ms: int = period_millis(5_000)
    """Time between two renewals of all leases, two pings of a session, two checks of a connection to the database."""
    tcp_keepalives_idle: int = seconds(7_200, usual=Usual(10, 24 * 3_600))
    """POSTGRESQL: after this silence the database asks the kernel of its client, 9 times every 75 s, and then ends the
    connection. A kernel answers for a process that is suspended."""
    replicas_poll_interval_ms: int = period_millis(1_000)
    """ORDINAL: from an answer of the API server to the next question for the replicas. The design says "periodically";
    its code pauses for 1 s."""

    def __attrs_post_init__(self) -> None:
        if self.inner_allocate_strategy in NOT_INSIDE:
            allocates = ", ".join(strategy for strategy in AllocateStrategy if strategy not in NOT_INSIDE)
            problem = f"expected a strategy that can allocate one room: {allocates}, not {self.inner_allocate_strategy}"
            raise FieldError("innerAllocateStrategy", problem)
        if self.pinned_assigner and self.client_rebalance:
            raise FieldError("pinnedAssigner", "expected clientRebalance = false with it")
        for option in ("revoke_before_assign", "heartbeat_to_assigner"):
            if getattr(self, option) and not self.pinned_assigner:
                raise FieldError(option_name(option), "expected pinnedAssigner = true with it")
        for option in ("pull_threshold_for_topic", "pull_threshold_size_for_topic"):
            if getattr(self, option) == 0:
                raise FieldError(option_name(option), "expected -1 or a whole number >= 1, not 0")


_NEVER_MS = 1_000_000_000


NOT_IN_LITE_PULL = (
    *("message_model", "client_rebalance", "consume_orderly", "consume_thread_min", "consume_message_batch_max_size"),
    *("pinned_assigner", "revoke_before_assign", "heartbeat_to_assigner"),
    *("suspend_current_queue_time_millis", "max_time_consume_continuously_ms", "rebalance_lock_interval_ms"),
    *("max_reconsume_times", "pull_interval", "pull_threshold_for_topic", "pull_threshold_size_for_topic"),
    *("consume_timeout", "consume_concurrently_max_span", "pull_max_idle_time_ms"),
    *("pop_invisible_time", "pop_batch_nums", "pop_threshold_for_queue"),
    *("exclusivity", "lock_service", "fencing", "tcp_keepalives_idle"),
    *("lease_duration_ms", "lease_renew_interval_ms"),
)
"""Options that a lite pull consumer has with their defaults only."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class LitePullConsumerConfig(ConsumerConfig):
    """Options of a lite pull consumer; those of listeners and their threads are fixed to their defaults.

    Broadcasting is not emulated for it.

    Mirrors:
        `org.apache.rocketmq.client.consumer.DefaultLitePullConsumer`.
    """

    auto_commit: bool = flag(default=True)
    """Polls commit the messages of earlier polls; else the application commits after each batch."""
    auto_commit_interval_millis: int = millis(5_000, minimum=1_000)
    """Minimum time between two such commits; brokers receive them at the next `persist_consumer_offset_interval`."""
    broker_suspend_max_time_millis: int = millis(20_000)
    """How long a broker may hold a pull without messages; a thread waits for it."""
    consume_max_span: int = count(2_000, minimum=1)
    """Distance between the first and the last cached offset above which pulling pauses."""
    poll_timeout_millis: int = period_millis(5_000)
    """How long the application waits for messages in one poll."""
    pull_batch_size: int = count(10, minimum=1, maximum=1024)
    """Most messages of one pull; a poll returns the messages of one pull."""
    pull_max_idle_time_ms: int = period_millis(_NEVER_MS)
    """Never: a queue without pulls stays."""
    pull_thread_nums: int = count(20, minimum=1, maximum=1000)
    """Queues that are pulled concurrently."""
    pull_threshold_for_all: int = count(10_000, minimum=1)
    """Messages in batches that wait for a poll, each counted as a full one, above which pulling pauses."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        shipped = attrs.fields_dict(LitePullConsumerConfig)
        for name in NOT_IN_LITE_PULL:
            if getattr(self, name) != shipped[name].default:
                raise FieldError(option_name(name), "expected its default: a lite pull consumer has no other")


class PullApplication(StrEnum):
    """What the application of a classic pull consumer does; not of RocketMQ, where applications are code."""

    SCHEDULE_SERVICE = "schedule_service"
    """`MQPullConsumerScheduleService`: it listens for changes, and each queue has a task of its own."""
    QUEUES_IN_BALANCE = "queues_in_balance"
    """One thread pulls the queues of `fetchMessageQueuesInBalance` in turn."""
    SUBSCRIBE_QUEUES = "subscribe_queues"
    """One thread pulls the queues of `fetchSubscribeMessageQueues` in turn: all queues of the topic, whatever the
    rebalance has allocated, so each member consumes every message."""


NOT_IN_PULL = (
    *(name for name in NOT_IN_LITE_PULL if name != "message_model"),
    *("consume_from_where", "consume_timestamp", "pull_threshold_for_queue", "pull_threshold_size_for_queue"),
    "pull_time_delay_mills_when_exception",
)
"""Options that a classic pull consumer has with their defaults only."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class PullConsumerConfig(ConsumerConfig):
    """Options of a classic pull consumer and of its application; it has no listener, no cache and no thread of its own.

    Mirrors:
        `org.apache.rocketmq.client.consumer.DefaultMQPullConsumer`, `MQPullConsumerScheduleService`.
    """

    broker_suspend_max_time_millis: int = millis(20_000)
    """How long a broker may hold a pull without messages, with `pull_block_if_not_found`."""
    consumer_pull_timeout_millis: int = millis(10_000)
    """How long the application waits for the answer of a pull that no broker holds."""
    enable_rebalance: bool = flag(default=True)
    """Take part in the rebalance of the group; without it no queue is owned, and no offset is committed."""
    pull_application: PullApplication = choice(PullApplication, PullApplication.SCHEDULE_SERVICE)
    """What the application does. This option is not RocketMQ's."""
    pull_batch_size: int = count(32, minimum=1, maximum=1024)
    """Most messages of one pull, an argument of `pull`. This option is not one of RocketMQ's pull consumer."""
    pull_block_if_not_found: bool = flag(default=False)
    """Pull with `pullBlockIfNotFound`, so that brokers hold the pull, and not with `pull`. This option is not
    RocketMQ's."""
    pull_max_idle_time_ms: int = period_millis(_NEVER_MS)
    """Never: a queue without pulls stays."""
    pull_next_delay_time_millis: int = millis(200, usual=PAUSE_MS)
    """Pause of a queue, or of the thread that pulls all, after a pull; a task that failed pauses for 1,000 ms. In
    RocketMQ a field of `PullTaskContext`."""
    pull_thread_nums: int = count(20, minimum=1, maximum=1000)
    """Threads of the schedule service: queues that are pulled or processed concurrently. In RocketMQ a field of
    `MQPullConsumerScheduleService`."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        shipped = attrs.fields_dict(PullConsumerConfig)
        for name in NOT_IN_PULL:
            if getattr(self, name) != shipped[name].default:
                raise FieldError(option_name(name), "expected its default: a classic pull consumer has no other")
        if self.consumer_timeout_millis_when_suspend < self.broker_suspend_max_time_millis:
            problem = f"expected at least brokerSuspendMaxTimeMillis, {self.broker_suspend_max_time_millis}"
            raise FieldError("consumerTimeoutMillisWhenSuspend", problem)


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ProducerConfig(ClientConfig):
    """Options of a producer.

    Mirrors:
        `org.apache.rocketmq.client.producer.DefaultMQProducer`.
    """

    send_msg_timeout: int = millis(3_000)
    """Budget of one send, its retries included."""
    retry_times_when_send_failed: int = count(2)
    """Attempts after the first of a synchronous send."""
    send_msg_max_timeout_per_request: int = millis(-1, minimum=-1)
    """Time-out of an attempt that a retry could follow, not of connecting; -1: the rest of the budget."""
    retry_another_broker_when_not_store_ok: bool = flag(default=False, key="retryAnotherBrokerWhenNotStoreOK")
    """Retry a send that a broker has accepted without the required flush or replication."""
    send_latency_enable: bool = flag(default=False)
    """Avoid brokers that were slow or failed, for up to 30 s."""
    default_topic_queue_nums: int = count(4, minimum=1, maximum=TOPIC_QUEUES_MAX)
    """Requested queues of a topic that a send creates."""
