"""Records of a node about itself: beliefs, ownership, messages, lifecycle, acts of administrators, expired calls.

Every value is frozen and has neither time nor node nor cause: the host adds
them. Kinds and events are enums, because analyses select by them.
"""

from enum import StrEnum
from typing import Any, NamedTuple

from nodes.values import frozen

Json = Any
"""JSON without floats: None, bool, int, str, sequences, and mappings with text keys."""


class BeliefKind(StrEnum):
    """Kinds of beliefs, each with its subject and value."""

    ROUTE = "route"
    """Nameserver, client: route of a topic.

    Subject: topic; value: brokerName -> {"addrs": {broker id: address}, "queues": [read, write, permission]}, where the
    permission is 4 (read) + 2 (write); source, at a client: the nameserver.
    """
    LIVE_BROKERS = "live_brokers"
    """Nameserver: addresses it holds for a broker name. Subject: brokerName; value: {broker id: address}."""
    NAMESERVER = "nameserver"
    """Broker, client: the nameserver that it uses. Subject: "pick-one"; value: address."""
    CONSUMER_IDS = "consumer_ids"
    """Broker: members of a consumer group. Subject: group; value: [client id, ...], sorted, one per channel."""
    MEMBER_GROUP = "member_group"
    """Broker: members of its own group. Subject: brokerName; value: {broker id: address}; source: the nameserver."""
    MIN_BROKER = "min_broker"
    """Broker: lowest member of its own group. Subject: brokerName; value: {"id": number, "address": text or null}."""
    SPECIAL_SERVICE = "special_service"
    """Broker: whether its special services run. Subject: brokerName; value: true or false."""
    ONLINE_STAGE = "online_stage"
    """Broker: stage of pre-online. Subject: brokerName; value: `OnlineStage`, or "STAGE with ADDRESS"."""
    MASTER_ADDR = "master_addr"
    """Slave: the broker whose metadata it copies. Subject: brokerName; value: address."""
    DATA_VERSION = "data_version"
    """Broker: version of one of its tables; after commits once a second at most.

    Subject: `VersionedTable`; value: [stateVersion, timestamp, counter].
    """
    QUEUE_LOCKS = "queue_locks"
    """Broker: locks of ordered queues. Subject: group; value: {"topic@brokerName@queueId": client id}."""
    HA_STATE = "ha_state"
    """Broker: state of a replication link, at either end.

    Subject: "master" where it is the slave, else the slave's `ip:port`; value: {"state": text, and offsets of that
    moment}; source: the other end; null: the master has removed the connection.
    """
    SUBSCRIPTION = "subscription"
    """Consumer: a subscription.

    Subject: group/topic; value: {"expression": text, "type": text, "model": `MessageModel`}; of RocketMQ 5 also
    "delivery": `Delivery`.
    """
    VIEW = "view"
    """Consumer: the input of a rebalance pass.

    Subject: group/topic; value: {"cids": [client id, ...], "queues": {brokerName: count}}; source: the broker that
    listed the members.
    """
    ASSIGNER = "assigner"
    """Consumer: the broker that it asks for its queues, where one broker allocates them for all members.

    Subject: group/topic; value: brokerName; source: its address.
    """
    EPOCH = "epoch"
    """Consumer: the division of its assigner that it follows.

    Subject: group/topic; value: {"assigner": address, "epoch": number}; source: the same address.
    """
    ALLOCATION = "allocation"
    """Broker: how it allocates the queues of a group as its assigner.

    Subject: group/topic; value: {"epoch": number, "shares": {client id: [[brokerName, queueId], ...]}}.
    """
    REBALANCE_MODE = "rebalance_mode"
    """Consumer: who allocates the queues of its group. Subject: group; value: `RebalanceMode`."""
    ASSIGNMENT = "assignment"
    """Consumer: the queues that a pass assigned to it.

    Subject: group/topic; value: [[brokerName, queueId], ...], sorted; source: the broker that allocated them.
    """
    ACTIVE_CONSUMER = "active_consumer"
    """Broker: the single active consumer of a queue. Subject: group/topic/brokerName/queueId; value: client id."""
    LEASE = "lease"
    """Lockservice, consumer: a lease of a queue.

    Subject: group/topic/brokerName/queueId; value: {"holder": client id, "token": number}; source, at the consumer: the
    service. An expiry is recorded by the consumer only, when it notices it.
    """
    FENCING = "fencing"
    """Broker: the greatest fencing token of a queue that it has seen, and how many requests it has refused since.

    Subject: group/topic/brokerName/queueId; value: {"token": number, "refused": number}.
    """
    CONTROLLER_LEADER = "controller_leader"
    """Controller: which of them leads. Subject: "controllers"; value: {"leader": id or null, "term": number}."""
    CONTROLLER_ROLE = "controller_role"
    """Controller: its part in the group, and whether it serves requests.

    Subject: its id; value: {"role": follower, candidate or leader, "serves": true or false}.
    """
    BROKER_ROLE = "broker_role"
    """Broker: which replica it is in controller mode, and what it serves as.

    Subject: brokerName; value: {"replica": id or null, "serves_as": master, slave or null, "master": id or null,
    "epoch": number}.
    """
    SYNC_STATE = "sync_state"
    """Controller: the master of a broker group, and who is in sync with it.

    Subject: brokerName; value: {"master": id or null, "epoch": number, "in_sync": [id, ...], "in_sync_epoch": number}.
    """
    BUSY = "busy"
    """Broker, nameserver, controller: requests wait 100 ms or more for a thread, or are refused; once a second at most.

    Subject: `PoolName`; value: {"waiting": requests in the queue, "waited_max_ms": longest wait since the last record,
    "refused": {`BusyReason`: count since the last record}}; null: the pool is not busy any more.
    """
    DENIED = "denied"
    """Broker: a client may not do something by its users and permissions; once a second at most.

    Subject: user/address/request/resource, as far as they are known; value: {"user": name, "ip": address,
    "request": name, "resource": "Topic:orders" or "", "actions": ["Pub"], "reason": text, "denied": count since the
    last record}; null: the same is allowed again.
    """
    REPLICAS = "replicas"
    """Consumer: desired replicas of its StatefulSet. Subject: group; value: number; source: its sender."""
    TOPIC_TYPE = "topic_type"
    """Proxy: the type of a topic. Subject: topic; value: a type such as FIFO; UNSPECIFIED: it could not be loaded."""
    GROUP_CONFIG = "group_config"
    """Proxy: the configuration of a consumer group.

    Subject: group; value: {"orderly": true or false, "retry_max_times": number}; null: it could not be loaded.
    """
    PROXY_MEMBERS = "proxy_members"
    """Proxy: members of a consumer group, which no broker knows.

    Subject: group; value: {client id: the proxy that it has registered with}, or several with a semicolon between them,
    since a client that moves to another proxy is listed twice; {}: it has no member any more.
    """
    PROXY = "proxy"
    """Consumer, producer: of RocketMQ 5, the proxy that it is connected with.

    Subject: the endpoints, addresses with `;` between; value: one of them; null: none of them can be reached.
    """
    PROXY_ROUTE = "proxy_route"
    """Consumer, producer: of RocketMQ 5, the route of a topic as a proxy has answered it.

    Subject: topic; value: brokerName -> {"endpoints": [address, ...], "ids": [broker id, ...], "queues": number of
    entries}; source: the proxy.
    """
    RECEIPT_HANDLES = "receipt_handles"
    """Proxy: messages of a client that it may renew, whose handles no other proxy has; once a second at most.

    Subject: group/client id; value: number of handles; null: the client has left.
    """
    CLIENT_SETTINGS = "client_settings"
    """Proxy: what it knows about a client.

    Subject: client id; value: {"group": text or null, "topics": [topic, ...]}, sorted; source: the proxy that has
    reported it, if another one has.
    """
    PODS = "pods"
    """Kubernetes: the pods of a StatefulSet.

    Subject: its name; value: {"replicas": number, "pods": {name: `PodPhase`}}.
    """


class Delivery(StrEnum):
    """How the members of a group get messages, where they do not divide its queues among them."""

    PROXY = "proxy"
    """Proxies hand out messages of all queues: no member owns a queue."""


@frozen
class Belief:
    """What the node now believes about `subject`; recorded only when it changes."""

    kind: BeliefKind
    subject: str
    value: Json
    """None: the node believes nothing about the subject any more."""
    source: str = ""
    """The address that it came from; empty if the node found out by itself."""


class OwnershipEvent(StrEnum):
    """What happened between a consumer and a queue."""

    ACQUIRED = "acquired"
    """A live process queue came into its table."""
    DROPPED = "dropped"
    """Its process queue was marked dropped."""
    LOCKED = "locked"
    """A broker granted the lock of the queue; renewals are not recorded."""
    UNLOCKED = "unlocked"
    """The consumer released the lock of the queue, or a broker refused to renew it."""
    POP_ACQUIRED = "pop_acquired"
    """A live pop process queue came into its table; queue id -1: of all queues of the broker."""
    POP_DROPPED = "pop_dropped"
    """Its pop process queue was marked dropped."""


@frozen
class Ownership:
    """A consumer's hold on one queue changed."""

    event: OwnershipEvent
    group: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int = -1
    """acquired: start of the pulls; else the next offset to commit; -1 unknown."""


class MessageEvent(StrEnum):
    """A stage in the life of a message."""

    STORED = "stored"
    """Broker: appended to the queue."""
    CONSUMED = "consumed"
    """Consumer: the listener returned, with either `ConsumptionResult`."""
    COMMITTED = "committed"
    """Broker: a group's offset of the queue was set by a client; offset = the new value."""
    FILTERED = "filtered"
    """Broker, consumer: the message does not match the subscription of the pull, so it was not delivered."""
    LOADED = "loaded"
    """Broker: its process began with this offset of a group, from its disk."""
    COPIED = "copied"
    """Broker: a group's offset was replaced by that of another member of its broker group."""
    RESET = "reset"
    """Broker: a group's offset was set by an administrator."""
    DELAYED = "delayed"
    """Broker: a message with a unique id was put aside until a time.

    Topic and queue: where it will be delivered; offset: for how long it waits, in ms.
    """
    DELIVERED = "delivered"
    """Broker: a message that had waited was appended to its queue; besides `stored`."""
    RECALLED = "recalled"
    """Broker: the producer of a message that waits has taken it back."""
    DROPPED = "dropped"
    """Broker: a message that had waited could not be delivered, and was given up; also a record of a pop."""
    HALF = "half"
    """Broker: a half message was stored, for the first time or before a question.

    Topic and queue: where its commit will be stored; offset: in the queue of half messages.
    """
    DECIDED = "decided"
    """Producer: it sends a broker how a local transaction went, by itself or because the broker asked."""
    ENDED = "ended"
    """Broker: the end of a transaction was carried out; offset: of the message that a commit stored, else -1."""
    POPPED = "popped"
    """Broker: handed out, and hidden until its invisible time is over."""
    CHECK_POINT = "check_point"
    """Broker: the check point of the pop that begins at this offset went to the log, or was refused."""
    ACKED = "acked"
    """Broker: acknowledged, whether it was popped or not."""
    INVISIBLE_CHANGED = "invisible_changed"
    """Broker: hidden again, from now on."""
    REVIVED = "revived"
    """Broker: copied to the retry topic, as no consumer acknowledged it in time."""
    RE_PUT = "re_put"
    """Broker: it could not be revived, so a new check point for it alone went to the log, or was refused."""
    LOST = "lost"
    """Broker: not acknowledged in time, and given up."""
    CUT = "cut"
    """Broker: removed from its log, since the log of the master that it follows does not have it."""
    RETRIED = "retried"
    """Broker: a copy was stored in the retry topic of the group; besides `stored`, and `revived` of a pop."""
    DEAD_LETTERED = "dead_lettered"
    """Broker: a copy was stored in the dead letter topic of the group, which consumes it no more; besides `stored`."""
    DISCARDED = "discarded"
    """Broker: given up for good, though no consumer has got it: a half message, or one that a consumer sent back."""
    EXPIRED = "expired"
    """Broker: the messages of the queue below this offset were deleted with the oldest file of its log."""
    UNACKNOWLEDGED = "unacknowledged"
    """Producer: it may have been stored, and its sender was not answered SEND_OK; offset: -1."""


class TransactionEnd(StrEnum):
    """What the end of a transaction makes of its half message."""

    COMMIT = "commit"
    ROLLBACK = "rollback"


class ConsumptionResult(StrEnum):
    """What a listener makes of a message; of a batch, all messages have the result of the batch."""

    SUCCESS = ""
    LATER = "later"
    """It failed, and is to be consumed again: `RECONSUME_LATER`, `SUSPEND_CURRENT_QUEUE_A_MOMENT`, `FAILURE`.

    RocketMQ takes an exception for the same. A simple consumer does not acknowledge such a message.
    """


class DiscardReason(StrEnum):
    """Why a broker discards a message."""

    CHECKED_TOO_OFTEN = "checked_too_often"
    """A half message: no producer has decided after `transactionCheckMax` checks."""
    TOO_OLD = "too_old"
    """A half message: it is older than `fileReservedTime`."""
    ESCAPE_FAILED = "escape_failed"
    """A half message: a slave that acts for its master could not send it to another broker."""
    NO_RETRY_QUEUE = "no_retry_queue"
    """A consumer sent it back, and its group has no retry queue (`retryQueueNums`)."""


class MessageRecord(NamedTuple):
    """Something happened to a message, or to a group's offset in its queue.

    Broker, queue, offset and `stored_ms` identify a message: offsets are used again after a loss of writes. A named
    tuple, as each message has three: it is made in a third of the time of an attrs value.
    """

    event: MessageEvent
    group: str
    """Consumer group; empty for `stored`."""
    topic: str
    broker_name: str
    queue_id: int
    offset: int
    client_id: str = ""
    """consumed: the consumer; committed, filtered, popped, acked, invisible_changed: the client of the request, if
    known; copied: the other member; decided, ended: the other side, if the producer has answered a check."""
    stored_ms: int = -1
    """Wall clock of the broker that stored the message; -1 where an offset is concerned."""
    tags: str = ""
    """stored, filtered: the tags of the message; consumed: `ConsumptionResult`; decided, ended: commit, rollback or
    unknown; check_point, acked, invisible_changed, revived, re_put, lost: what became of it,
    `nodes.broker.tables.pop.check_point.PopOutcome`; dead_lettered: how often it was consumed again; discarded:
    `DiscardReason`."""
    key: str = ""
    """stored, consumed: the keys of the message, with blanks between; delayed, half and what follows these: its unique
    id; popped and what follows a pop: its handle, as `nodes.protocol.extra_info` describes it; cut, unacknowledged:
    `attempt_key`; retried, dead_lettered: `queue_key` of the message that it is a copy of, empty if unknown."""


def queue_key(topic: str, broker_name: str, queue_id: int, offset: int) -> str:
    """The place of a message as one text: `topic brokerName queueId offset`."""
    return f"{topic} {broker_name} {queue_id} {offset}"


def attempt_key(ip: str, born_ms: int) -> str:
    """What one attempt to send a message is known by, at its producer and at a broker.

    Args:
        ip: of the sender.
        born_ms: wall clock of the sender when it sent.
    """
    return f"{ip}@{born_ms}"


class PassOutcome(StrEnum):
    """How the rebalance pass of a topic ended."""

    BALANCED = "balanced"
    """The consumer has the queues that it should have."""
    UNBALANCED = "unbalanced"
    """Some queue could not be taken or released; the next pass tries again."""
    RETAINED = "kept"
    """No broker listed the members: it keeps what it has until the next round."""
    UNANSWERED = "unanswered"
    """No broker said which queues it should have: it keeps what it has, and tries again."""
    NO_ROUTE = "no_route"
    """The consumer knows no queue of the topic."""


@frozen
class RebalancePass:
    """A rebalance pass over one topic has ended."""

    outcome: PassOutcome
    group: str
    topic: str
    mode: str
    """`RebalanceMode`, or "broadcasting"."""
    began_ns: int
    members: int = 0
    """In the list of members that it used; 0: it used none."""
    queues: int = 0
    """Queues of the topic that it knew; 0 where a broker allocated them."""
    assigned: int = 0
    """Queues that it should have."""
    source: str = ""
    """Address of the broker that answered."""
    requests: int = 0
    """For the list of members or the assignment."""
    bytes: int = 0
    """In the bodies of these requests and their answers."""


class LifecycleEvent(StrEnum):
    """What happens to a process; its host writes all that begin or end it, but READY and STOPPING."""

    STARTED = "started"
    CONFIGURED = "configured"
    """Restarts have changed options of the node since the run began; with `started`, at each later start."""
    READY = "ready"
    STOPPING = "stopping"
    """An orderly shutdown began."""
    STOPPED = "stopped"
    """An orderly shutdown ended."""
    CRASHED = "crashed"
    """The node's code raised an exception."""
    KILLED = "killed"
    POWERED_OFF = "powered_off"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    NOT_EMULATED = "not_emulated"
    """A guest asked for what the emulator does not do; said once for each guest and request. Its process goes on."""
    STORE_NEARLY_FULL = "store_nearly_full"
    """The log of a broker comes near its limit. Its process goes on, as after the next one."""
    STORE_FULL = "store_full"
    """The log of a broker has reached its limit: from now on its oldest messages are deleted."""
    COMMAND_FAILED = "command_failed"
    """A command of an administrator failed; what it had done before stays."""


PROCESS_ENDS = (LifecycleEvent.STOPPED, LifecycleEvent.CRASHED, LifecycleEvent.KILLED, LifecycleEvent.POWERED_OFF)
"""After any of these a process has no beliefs, locks or queues. A suspended process keeps them."""


START_FAILED = "start failed: "
"""What the detail of STOPPING begins with if the process could not start."""


@frozen
class Lifecycle:
    """The node reached a stage of its life."""

    event: LifecycleEvent
    detail: str = ""

    @classmethod
    def start_failed(cls, error: Exception) -> "Lifecycle":
        """A process could not start, and ends."""
        return cls(LifecycleEvent.STOPPING, f"{START_FAILED}{error}")


@frozen
class AdminRecord:
    """A request by which an administrator changed something was carried out.

    The changes themselves are recorded before it: the request has been answered with SUCCESS.
    """

    request: str
    """Name of the request code, see `nodes.protocol.administration`."""
    topic: str
    """Empty: none is concerned, as with group and broker."""
    group: str
    broker_name: str
    client: str
    """Address of the client that sent the request."""
    began_ns: int
    """When the request arrived."""
    detail: Json
    """The other fields of the request."""


@frozen
class CallTimedOut:
    """A caller gave up waiting for the answer to its request."""

    connection: int
    address: str
    code: int
    opaque: int


Event = Belief | Ownership | RebalancePass | MessageRecord | Lifecycle | AdminRecord | CallTimedOut
