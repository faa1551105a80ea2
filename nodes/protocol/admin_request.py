"""What a request of an administrator changes, and why other requests are no act of an administrator."""

from collections.abc import Callable
from enum import StrEnum

from nodes.protocol.command import Command
from nodes.values import frozen


class Changed(StrEnum):
    """What a request of an administrator changes."""

    TOPIC = "topic"
    """A topic comes or goes, or is configured."""
    QUEUES = "queues"
    """The number of queues of a topic."""
    PERMISSION = "permission"
    """Who may read or write."""
    GROUP = "group"
    """A consumer group comes or goes, or is configured."""
    OFFSETS = "offsets"
    """What a consumer group has consumed."""
    MODE = "mode"
    """Whether a consumer group pulls or pops, or who allocates its queues."""
    CONFIG = "config"
    """Options of a node, or the key-value configuration."""
    MEMBERSHIP = "membership"
    """The brokers of a container, or the replicas of a broker group."""
    MASTER = "master"
    """The master of a broker group."""
    DATA = "data"
    """Messages, or what is stored of them."""


def _always(_request: Command) -> bool:
    return True


def is_answered(request: Command) -> bool:
    """Whether the sender waits for the answer: RocketMQ's tools do, consumers commit oneway."""
    return not request.is_oneway


def designates(request: Command) -> bool:
    """Whether an election designates a master: one that a broker asks for does not."""
    return request.ext_fields.get("designateElect") == "true"


def sets_readable(request: Command) -> bool:
    """Whether a request about a forbidden group has the field that sets it; without, it only queries."""
    return "readable" in request.ext_fields


@frozen
class AdminRequest:
    """What a request changes, and which of its fields name that.

    A field is one of the header, or of the body if the request has one, under its name on the wire.
    """

    changes: tuple[Changed, ...]
    topic: str = ""
    """The field with the topic; empty: none is concerned."""
    group: str = ""
    """The field with the consumer group."""
    broker_name: str = ""
    """The field with the brokerName."""
    entries: str = ""
    """The field of the body that lists what changes; each entry has the fields above."""
    is_change: Callable[[Command], bool] = _always
    """Whether a request of this code is an administrator's, and changes anything."""

    @property
    def names(self) -> tuple[str, str, str]:
        """The fields with topic, group and brokerName."""
        return self.topic, self.group, self.broker_name


CHANGES_TOPIC = (Changed.TOPIC, Changed.QUEUES, Changed.PERMISSION)
CHANGES_GROUP = (Changed.GROUP, Changed.PERMISSION)


class OtherReason(StrEnum):
    """Why a request is no act of an administrator."""

    READS = "it only reads"
    CLIENTS = "clients send it about themselves and their messages"
    NODES = "nameservers, brokers and controllers send it, to each other or to clients"
    CONSUMES = "it has one client consume one message, and changes nothing at a node"
    STATEFULSET = "it belongs to the StatefulSet design: RocketMQ's tools do not know it"
    ADDRESS_SERVER = "it changes the text of a web server: RocketMQ's tools do not know it"
