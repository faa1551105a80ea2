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
    VIEW = "view"
    """Consumer: what a rebalance pass allocated from.

    Subject: group/topic; value: {"cids", "queues"}; source: who gave the ids.
    """
    ASSIGNMENT = "assignment"
    """Consumer: the queues a pass gave it. Subject: group/topic; value: sorted [brokerName, queueId]."""


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
    UNLOCKED = "unlocked"


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
