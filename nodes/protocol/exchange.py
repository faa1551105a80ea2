"""The properties of a request: its classes, the nodes that answer it, what it changes, moves and requires.

Each request code has one `Exchange`. Tables by code elsewhere are derived from these.
"""

from enum import Flag, StrEnum, auto

import attrs

from nodes.protocol.admin_request import AdminRequest, OtherReason
from nodes.protocol.headers import EmptyHeader
from nodes.protocol.wire_names import wire_name
from nodes.values import frozen

_GROUPS = ("consumer_group", "producer_group", "group")


class NodeRole(Flag):
    """A kind of node that answers requests, or several."""

    NAMESERVER = auto()
    BROKER = auto()
    CONTAINER = auto()
    """A process with several brokers."""
    CONTROLLER = auto()
    CLIENT = auto()
    """A producer or consumer, over a connection that it has opened; guests answer more than emulated clients."""
    KUBERNETES = auto()
    """The API server of the StatefulSet design, which also scales."""
    SCALER = auto()
    """It notifies pods of the number of replicas."""
    POD = auto()
    """The health check of a consumer in a StatefulSet."""
    LEASE_SERVICE = auto()
    ADDRESS_SERVER = auto()
    """It has the list of nameservers."""
    PROXY = auto()
    """It stands between clients and brokers."""


class Movement(StrEnum):
    """How messages move with a request that succeeds."""

    SEND = "a producer sends messages"
    RETURN = "a consumer sends a message back"
    REPLY = "a consumer replies to the message of a producer, which waits for that"
    RECEIVE = "a consumer takes messages"
    LOOK = "a consumer looks at messages, or asks whether there are any, and takes none"
    SETTLE = "messages are acknowledged, a transaction is checked or ends, a timed message is recalled"


class AclNeed(StrEnum):
    """What ACL 1.0 requires of the account that sends a request, which is little: pops and locks need nothing."""

    NOTHING = "an account"
    ADMIN = "the account of an admin"
    SEND = "PUB of the topic, or SUB if that is a retry topic"
    PUB_TOPIC = "PUB of the topic"
    SUB_TOPIC = "SUB of the topic"
    SUB_GROUP = "SUB of the group"
    SUB_BOTH = "SUB of the topic and of the group"
    SUB_ALL = "SUB of the group and the topics of each consumer in a heartbeat"


class AnswerDepth(StrEnum):
    """How much of what RocketMQ does stands behind an answer here."""

    WHOLE = "whole"
    """All that the behaviour of a cluster shows."""
    IN_PART = "in part"
    """Some values of the answer are those of a cluster in which the rest never happens."""
    CONSTANT = "constant"
    """It is the same, whatever has happened."""
    WITHOUT_EFFECT = "without effect"
    """It is refused as RocketMQ refuses it, else accepted, and changes the behaviour of no node."""


def _topic_field(header: type) -> str:
    return next((wire_name(header, field) for field in attrs.fields(header) if field.name == "topic"), "")


def _group_fields(header: type) -> tuple[str, ...]:
    names = {field.name: wire_name(header, field) for field in attrs.fields(header)}
    return tuple(names[name] for name in _GROUPS if name in names)


@frozen
class Exchange:
    """A request and its answer.

    Of the four classes, None stands for no body, and `bytes` for a raw one.
    """

    request_header: type = EmptyHeader
    request_body: type | None = None
    response_header: type = EmptyHeader
    response_body: type | None = None
    answered_by: NodeRole = attrs.field(kw_only=True)
    """The kinds of nodes that answer it, or act on it if it is oneway."""
    admin: AdminRequest | OtherReason = attrs.field(kw_only=True)
    """What an administrator changes with it, or why it is no act of an administrator."""
    depth: AnswerDepth = attrs.field(default=AnswerDepth.WHOLE, kw_only=True)
    """How much stands behind the answer."""
    acl: AclNeed = attrs.field(default=AclNeed.NOTHING, kw_only=True)
    """What ACL 1.0 requires of its sender."""
    movement: Movement | None = attrs.field(default=None, kw_only=True)
    """How messages move with it; None: none do, it is overhead."""
    is_heartbeat: bool = attrs.field(default=False, kw_only=True)
    """Whether a server counts its sender as alive."""
    is_wide: bool = attrs.field(default=False, kw_only=True)
    """Whether it concerns all members of a group, or a whole table, and so takes long if these are large."""
    answers_lines: bool = attrs.field(default=False, kw_only=True)
    """Whether the raw body of its answer has lines of `name=value`."""
    since_5_0: bool = attrs.field(default=False, kw_only=True)
    """Whether nameservers of 4.x leave it without an answer."""
    topic_field: str = attrs.field(
        init=False, default=attrs.Factory(lambda self: _topic_field(self.request_header), takes_self=True)
    )
    """The field of its header with the topic; one letter in send version 2; empty: none."""
    group_fields: tuple[str, ...] = attrs.field(
        init=False, default=attrs.Factory(lambda self: _group_fields(self.request_header), takes_self=True)
    )
    """The fields of its header with the group of a consumer, else of a producer."""
