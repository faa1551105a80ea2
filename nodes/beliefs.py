"""What a node writes about itself: beliefs, ownership, messages, life, and the causes it starts itself.

Every value is frozen and says nothing about time, node or cause: the host adds
those. Kinds and events are enums, because analyses select on them.
"""

from enum import StrEnum
from typing import Any

import attrs

Json = Any
"""What JSON can say without floats: None, bool, int, str, sequences, and mappings with text keys."""


class BeliefKind(StrEnum):
    """What a belief is about; the subject's form is given behind each."""

    ROUTE = "route"
    """Nameserver, client: route of a topic. Subject: topic."""
    LIVE_BROKERS = "live_brokers"
    """Nameserver: addresses it holds for a broker name. Subject: brokerName; value: broker id -> address."""
    NAMESERVER = "nameserver"
    """Broker, client: the nameserver whose answers it follows. Subject: "pick-one"; value: address."""
    CONSUMER_IDS = "consumer_ids"
    """Broker: members of a consumer group. Subject: group; value: sorted client ids, one per channel."""
    MEMBER_GROUP = "member_group"
    """Broker: members of its own group. Subject: brokerName; value: broker id -> address; source: who told."""
    MIN_BROKER = "min_broker"
    """Broker: lowest member of its own group. Subject: brokerName; value: {"id", "address"}."""
    SPECIAL_SERVICE = "special_service"
    """Broker: whether it runs what one member of a group may run. Subject: brokerName; value: true or false."""
    ONLINE_STAGE = "online_stage"
    """Broker: how far it is on its way online. Subject: brokerName; value: `OnlineStage`, and with whom."""
    MASTER_ADDR = "master_addr"
    """Slave: whose metadata it copies. Subject: brokerName; value: address."""
    DATA_VERSION = "data_version"
    """Broker: version of one of its tables. Subject: `VersionedTable`; value: [stateVersion, timestamp, counter]."""
    QUEUE_LOCKS = "queue_locks"
    """Broker: who holds which queue in order. Subject: group; value: topic@brokerName@queueId -> client id."""
    HA_STATE = "ha_state"
    """Broker: state of a replication link, at either end.

    Subject: "master" where it is the slave, else the slave's `ip:port`; value: {"state", and offsets of that moment};
    source: the other end; null: the master has forgotten the connection.
    """
    VIEW = "view"
    """Consumer: what a rebalance pass allocated from.

    Subject: group/topic; value: {"cids", "queues"}; source: who gave the ids.
    """
    ASSIGNMENT = "assignment"
    """Consumer: the queues a pass gave it.

    Subject: group/topic; value: sorted [brokerName, queueId]; source: the broker that divided them, if one did.
    """


@attrs.frozen
class Belief:
    """What the node now holds to be true about `subject`; recorded only when it changed."""

    kind: BeliefKind
    subject: str
    value: Json
    """None: it holds nothing about the subject any more."""
    source: str = ""
    """Who told it: a host address, or empty where it found out by itself."""


class OwnershipEvent(StrEnum):
    """What happened between a consumer and a queue."""

    ACQUIRED = "acquired"
    """A live process queue came into its table."""
    DROPPED = "dropped"
    """Its process queue was marked dropped."""
    LOCKED = "locked"
    """A broker granted its order lock; renewals are not told of."""
    UNLOCKED = "unlocked"
    """It gave the order lock back, or a broker refused to renew it."""


@attrs.frozen
class Ownership:
    """A consumer's hold on one queue changed."""

    event: OwnershipEvent
    group: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int = -1
    """acquired: where it will start to pull; else the next offset it would have committed; -1 unknown."""


class MessageEvent(StrEnum):
    """A stage in the life of a message."""

    STORED = "stored"
    """Broker: appended to the queue."""
    CONSUMED = "consumed"
    """Consumer: the listener returned, whatever became of the result."""
    COMMITTED = "committed"
    """Broker: a group's offset of the queue was set; offset = the new value."""


@attrs.frozen
class MessageRecord:
    """Something happened to a message, or to a group's offset in its queue."""

    event: MessageEvent
    group: str
    """Consumer group; empty for `stored`."""
    topic: str
    broker_name: str
    queue_id: int
    offset: int
    client_id: str = ""
    """consumed: by whom; committed: who asked for it where known."""


class LifecycleEvent(StrEnum):
    """What happens to a process; the host writes all but READY and STOPPING."""

    STARTED = "started"
    READY = "ready"
    STOPPING = "stopping"
    """An orderly shutdown began."""
    STOPPED = "stopped"
    """An orderly shutdown ended."""
    CRASHED = "crashed"
    """The node's own code raised."""
    KILLED = "killed"
    POWERED_OFF = "powered_off"
    SUSPENDED = "suspended"
    RESUMED = "resumed"


PROCESS_ENDS = (LifecycleEvent.STOPPED, LifecycleEvent.CRASHED, LifecycleEvent.KILLED, LifecycleEvent.POWERED_OFF)
"""After any of these a process believes, holds and owns nothing. A suspended process keeps all of it."""


@attrs.frozen
class Lifecycle:
    """The node reached a stage of its life."""

    event: LifecycleEvent
    detail: str = ""


@attrs.frozen
class CallTimedOut:
    """A caller gave up waiting for the answer to its request."""

    connection: int
    address: str
    code: int
    opaque: int


Event = Belief | Ownership | MessageRecord | Lifecycle | CallTimedOut
