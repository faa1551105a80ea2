"""The requests by which administrators change a cluster: what each of them changes, and where it names that.

Every request code that a nameserver, a broker, a controller or a container of brokers handles is in one of two
tables: `ADMIN_REQUESTS`, or `OTHER_REQUESTS` with the reason why it is no act of an administrator.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import msgpack

from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import EXCHANGES
from nodes.secret import shown_field
from nodes.values import frozen

_TEXT_CHARS_MAX = 200
_ENTRIES_MAX = 20


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


def _is_answered(request: Command) -> bool:
    """Consumers commit oneway; RocketMQ's tools wait for the answer."""
    return not request.is_oneway


def _designates(request: Command) -> bool:
    """A broker that asks for an election designates no master."""
    return request.ext_fields.get("designateElect") == "true"


def _sets_readable(request: Command) -> bool:
    """Without the field, the request only queries."""
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


class OtherReason(StrEnum):
    """Why a request is no act of an administrator."""

    READS = "it only reads"
    CLIENTS = "clients send it about themselves and their messages"
    NODES = "nameservers, brokers and controllers send it to each other"
    CONSUMES = "it has one client consume one message, and changes nothing at a node"


_C, _TO = RequestCode, Changed
_TOPIC = (_TO.TOPIC, _TO.QUEUES, _TO.PERMISSION)
_GROUP = (_TO.GROUP, _TO.PERMISSION)

ADMIN_REQUESTS: Mapping[int, AdminRequest] = MappingProxyType(
    {
        # Brokers
        _C.UPDATE_AND_CREATE_TOPIC: AdminRequest(_TOPIC, topic="topic"),
        _C.UPDATE_AND_CREATE_TOPIC_LIST: AdminRequest(_TOPIC, topic="topicName", entries="topicConfigList"),
        _C.DELETE_TOPIC_IN_BROKER: AdminRequest((_TO.TOPIC, _TO.QUEUES, _TO.OFFSETS, _TO.DATA), topic="topic"),
        _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: AdminRequest(_GROUP, group="groupName"),
        _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: AdminRequest(_GROUP, group="groupName", entries="groupConfigList"),
        _C.DELETE_SUBSCRIPTIONGROUP: AdminRequest((_TO.GROUP, _TO.OFFSETS), group="groupName"),
        _C.UPDATE_AND_GET_GROUP_FORBIDDEN: AdminRequest(
            (_TO.PERMISSION,), topic="topic", group="group", is_change=_sets_readable
        ),
        _C.INVOKE_BROKER_TO_RESET_OFFSET: AdminRequest((_TO.OFFSETS,), topic="topic", group="group"),
        _C.CLONE_GROUP_OFFSET: AdminRequest((_TO.OFFSETS,), topic="topic", group="destGroup"),
        _C.UPDATE_CONSUMER_OFFSET: AdminRequest(
            (_TO.OFFSETS,), topic="topic", group="consumerGroup", is_change=_is_answered
        ),
        _C.SET_MESSAGE_REQUEST_MODE: AdminRequest((_TO.MODE,), topic="topic", group="consumerGroup"),
        _C.SET_REBALANCE_MODE: AdminRequest((_TO.MODE,), group="consumerGroup"),
        _C.UPDATE_BROKER_CONFIG: AdminRequest((_TO.CONFIG, _TO.PERMISSION)),
        _C.CLEAN_EXPIRED_CONSUMEQUEUE: AdminRequest((_TO.DATA,)),
        _C.CLEAN_UNUSED_TOPIC: AdminRequest((_TO.DATA,)),
        _C.DELETE_EXPIRED_COMMITLOG: AdminRequest((_TO.DATA,)),
        _C.RESUME_CHECK_HALF_MESSAGE: AdminRequest((_TO.DATA,), topic="topic"),
        # Nameservers
        _C.PUT_KV_CONFIG: AdminRequest((_TO.CONFIG,)),
        _C.DELETE_KV_CONFIG: AdminRequest((_TO.CONFIG,)),
        _C.WIPE_WRITE_PERM_OF_BROKER: AdminRequest((_TO.PERMISSION,), broker_name="brokerName"),
        _C.ADD_WRITE_PERM_OF_BROKER: AdminRequest((_TO.PERMISSION,), broker_name="brokerName"),
        _C.DELETE_TOPIC_IN_NAMESRV: AdminRequest((_TO.TOPIC, _TO.QUEUES), topic="topic"),
        # Brokers of RocketMQ send it with the option enableSingleTopicRegister, those of the emulator never.
        _C.REGISTER_TOPIC_IN_NAMESRV: AdminRequest(_TOPIC, topic="topic"),
        _C.UPDATE_NAMESRV_CONFIG: AdminRequest((_TO.CONFIG,)),
        # Controllers
        _C.CONTROLLER_ELECT_MASTER: AdminRequest((_TO.MASTER,), broker_name="brokerName", is_change=_designates),
        _C.CLEAN_BROKER_DATA: AdminRequest((_TO.MEMBERSHIP,), broker_name="brokerName"),
        _C.UPDATE_CONTROLLER_CONFIG: AdminRequest((_TO.CONFIG,)),
        # Containers of brokers
        _C.ADD_BROKER: AdminRequest((_TO.MEMBERSHIP,)),
        _C.REMOVE_BROKER: AdminRequest((_TO.MEMBERSHIP,), broker_name="brokerName"),
    }
)
"""Request code -> what it changes."""

_READS = (
    *(_C.QUERY_MESSAGE, _C.QUERY_CONSUMER_OFFSET, _C.GET_ALL_TOPIC_CONFIG, _C.GET_BROKER_CONFIG),
    *(_C.GET_BROKER_RUNTIME_INFO, _C.SEARCH_OFFSET_BY_TIMESTAMP, _C.GET_MAX_OFFSET, _C.GET_MIN_OFFSET),
    *(_C.GET_EARLIEST_MSG_STORETIME, _C.VIEW_MESSAGE_BY_ID, _C.GET_CONSUMER_LIST_BY_GROUP),
    *(_C.GET_ALL_CONSUMER_OFFSET, _C.GET_ALL_DELAY_OFFSET, _C.GET_TIMER_CHECK_POINT, _C.GET_TIMER_METRICS),
    *(_C.GET_KV_CONFIG, _C.GET_ROUTEINFO_BY_TOPIC, _C.GET_BROKER_CLUSTER_INFO),
    *(_C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, _C.GET_TOPIC_STATS_INFO, _C.GET_CONSUMER_CONNECTION_LIST),
    *(_C.GET_PRODUCER_CONNECTION_LIST, _C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, _C.GET_CONSUME_STATS),
    *(_C.GET_KVLIST_BY_NAMESPACE, _C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, _C.GET_TOPICS_BY_CLUSTER),
    *(_C.QUERY_TOPIC_CONSUME_BY_WHO, _C.QUERY_CONSUME_TIME_SPAN, _C.GET_SYSTEM_TOPIC_LIST_FROM_NS),
    *(_C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, _C.GET_CONSUMER_RUNNING_INFO, _C.QUERY_CORRECTION_OFFSET),
    *(_C.GET_UNIT_TOPIC_LIST, _C.GET_HAS_UNIT_SUB_TOPIC_LIST, _C.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST),
    *(_C.VIEW_BROKER_STATS_DATA, _C.GET_BROKER_CONSUME_STATS, _C.GET_NAMESRV_CONFIG, _C.QUERY_CONSUME_QUEUE),
    *(_C.GET_ALL_PRODUCER_INFO, _C.QUERY_TOPICS_BY_CONSUMER, _C.QUERY_SUBSCRIPTION_BY_CONSUMER),
    *(_C.GET_TOPIC_CONFIG, _C.GET_SUBSCRIPTIONGROUP_CONFIG, _C.GET_ALL_MESSAGE_REQUEST_MODE),
    *(_C.GET_BROKER_MEMBER_GROUP, _C.GET_BROKER_HA_STATUS, _C.GET_BROKER_EPOCH_CACHE),
    *(_C.CONTROLLER_GET_REPLICA_INFO, _C.CONTROLLER_GET_METADATA_INFO, _C.CONTROLLER_GET_SYNC_STATE_DATA),
    *(_C.GET_CONTROLLER_CONFIG, _C.CHECK_CLIENT_CONFIG, _C.PEEK_MESSAGE, _C.NOTIFICATION, _C.POLLING_INFO),
)
_OF_CLIENTS = (
    *(_C.SEND_MESSAGE, _C.SEND_MESSAGE_V2, _C.SEND_BATCH_MESSAGE, _C.SEND_REPLY_MESSAGE, _C.SEND_REPLY_MESSAGE_V2),
    *(_C.PULL_MESSAGE, _C.LITE_PULL_MESSAGE, _C.HEART_BEAT, _C.UNREGISTER_CLIENT, _C.CONSUMER_SEND_MSG_BACK),
    *(_C.END_TRANSACTION, _C.LOCK_BATCH_MQ, _C.UNLOCK_BATCH_MQ, _C.RECALL_MESSAGE, _C.QUERY_ASSIGNMENT),
    *(_C.POP_MESSAGE, _C.ACK_MESSAGE, _C.BATCH_ACK_MESSAGE, _C.CHANGE_MESSAGE_INVISIBLETIME, _C.CANCEL_CONSUMER),
)
_OF_NODES = (
    *(_C.REGISTER_BROKER, _C.UNREGISTER_BROKER, _C.QUERY_DATA_VERSION, _C.BROKER_HEARTBEAT),
    *(_C.NOTIFY_MIN_BROKER_ID_CHANGE, _C.EXCHANGE_BROKER_HA_INFO, _C.NOTIFY_BROKER_ROLE_CHANGED),
    *(_C.CONTROLLER_ALTER_SYNC_STATE_SET, _C.CONTROLLER_REGISTER_BROKER, _C.CONTROLLER_GET_NEXT_BROKER_ID),
    *(_C.CONTROLLER_APPLY_BROKER_ID, _C.DLEDGER_VOTE, _C.DLEDGER_PUSH),
)

OTHER_REQUESTS: Mapping[int, OtherReason] = MappingProxyType(
    {
        **dict.fromkeys(_READS, OtherReason.READS),
        **dict.fromkeys(_OF_CLIENTS, OtherReason.CLIENTS),
        **dict.fromkeys(_OF_NODES, OtherReason.NODES),
        _C.CONSUME_MESSAGE_DIRECTLY: OtherReason.CONSUMES,
    }
)
"""Request code -> why it is no act of an administrator."""


@frozen
class NamedChange:
    """One thing that a request changes."""

    topic: str
    group: str
    broker_name: str
    detail: Mapping[str, Any]
    """The other fields of the request, long values shortened."""


def changes_of(request: Command) -> Iterator[NamedChange]:
    """What a request changes: one entry, or one for each entry of the list in its body.

    Args:
        request: of a code in `ADMIN_REQUESTS`; a node has read it already.
    """
    kind = ADMIN_REQUESTS[request.code]
    body = _plain_body(request)
    listed: Iterable[Mapping[Any, Any]] = body.pop(kind.entries, None) or () if kind.entries else ({},)
    for entry in listed:
        fields = {**request.ext_fields, **body, **entry}
        topic, group, broker_name = (str(fields.pop(name, None) or "") for name in kind.names)
        yield NamedChange(topic, group, broker_name, _short_fields(fields))


def _plain_body(request: Command) -> dict[str, Any]:
    """The fields of the body; those of a configuration are its lines."""
    kind = EXCHANGES[RequestCode(request.code)].request_body
    if kind is None or request.body is None:
        return {}
    if kind is bytes:
        lines = bytes(request.body).decode(errors="replace").splitlines()
        pairs = (line.partition("=") for line in lines if "=" in line)
        return {name.strip(): value.strip() for name, _, value in pairs}
    return dict(msgpack.unpackb(bytes(request.body)))


def _short_fields(fields: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): shown_field(str(name), _short(value)) for name, value in fields.items() if value is not None}


def _short(value: Any) -> Any:
    """A value as JSON without floats, of bounded length."""
    if isinstance(value, Mapping) and len(value) <= _ENTRIES_MAX:
        return _short_fields(value)
    if isinstance(value, list) and len(value) <= _ENTRIES_MAX:
        return [_short(item) for item in value]
    if isinstance(value, Mapping | list):
        return f"{len(value)} entries"
    if value is None or isinstance(value, bool | int):
        return value
    text = str(value)
    return text if len(text) <= _TEXT_CHARS_MAX else text[: _TEXT_CHARS_MAX - 1] + "…"
