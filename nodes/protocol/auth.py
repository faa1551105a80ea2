"""ACL 2.0: the names of subjects, resources, actions and decisions, and what each request does to which resource.

Mirrors:
    `org.apache.rocketmq.common.action.Action`, `org.apache.rocketmq.common.resource.*`, the enums of
    `org.apache.rocketmq.auth`, and the annotations `RocketMQAction` and `RocketMQResource` of the request headers,
    which `RequestHeaderRegistry` collects.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from nodes.protocol.codes import RequestCode
from nodes.values import frozen

_Names = TypeVar("_Names", bound=StrEnum)


class Action(StrEnum):
    """What a request does to a resource."""

    UNKNOWN = "Unknown"
    ALL = "All"
    """Of a policy: every action."""
    ANY = "Any"
    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class ResourceType(StrEnum):
    """The kind of a resource."""

    UNKNOWN = "Unknown"
    ANY = "Any"
    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


class ResourcePattern(StrEnum):
    """How the name of a resource in a policy is compared."""

    ANY = "ANY"
    LITERAL = "LITERAL"
    PREFIXED = "PREFIXED"


class Decision(StrEnum):
    """What an entry of a policy decides."""

    ALLOW = "Allow"
    DENY = "Deny"


class PolicyType(StrEnum):
    """Entries of the default policy count only if none of the custom policy matches."""

    CUSTOM = "Custom"
    DEFAULT = "Default"


class UserType(StrEnum):
    """A super user may do everything."""

    SUPER = "Super"
    NORMAL = "Normal"


class UserStatus(StrEnum):
    """Whether requests of a user can be authentic."""

    ENABLE = "enable"
    DISABLE = "disable"


class SubjectType(StrEnum):
    """The kind of a subject: a user, there is no other."""

    USER = "User"


def by_name(kind: type[_Names], name: str | None) -> _Names | None:
    """The member of that name, in any case; None: there is none."""
    return next((member for member in kind if name is not None and member.lower() == name.lower()), None)


@frozen
class ResourceField:
    """A field of a header that names a resource."""

    name: str
    type: ResourceType
    splitter: str = ""
    """Between several names; empty: it has one."""


@frozen
class RequestAction:
    """What a request does to the resources that its header names."""

    actions: tuple[Action, ...]
    fields: tuple[ResourceField, ...] = ()
    on_cluster: bool = False
    """Whether it concerns the cluster of the broker if no field names a resource; else it then needs nothing."""


def _of(action: Action, *fields: ResourceField, on_cluster: bool = False) -> RequestAction:
    return RequestAction((action,), fields, on_cluster)


def _group(name: str) -> ResourceField:
    return ResourceField(name, ResourceType.GROUP)


_TOPIC = ResourceField("topic", ResourceType.TOPIC)
_CONSUMER_GROUP = _group("consumerGroup")
_CLUSTER_NAME = ResourceField("clusterName", ResourceType.CLUSTER)
_GET_TOPIC = _of(Action.GET, _TOPIC)
_GET_GROUP = _of(Action.GET, _group("group"))
_SUB_BOTH = _of(Action.SUB, _CONSUMER_GROUP, _TOPIC)
_UPDATE_BOTH = _of(Action.UPDATE, _group("group"), _TOPIC)
_GET_CLUSTER = _of(Action.GET, on_cluster=True)
_UPDATE_CLUSTER = _of(Action.UPDATE, on_cluster=True)
_UPDATE_NAMED_CLUSTER = _of(Action.UPDATE, _CLUSTER_NAME, on_cluster=True)
_GET_NAMED_CLUSTER = _of(Action.GET, _CLUSTER_NAME, on_cluster=True)

REQUEST_ACTIONS: Mapping[int, RequestAction] = MappingProxyType(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC: _of(Action.CREATE, _TOPIC),
        RequestCode.DELETE_TOPIC_IN_BROKER: _of(Action.DELETE, _TOPIC),
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _GET_TOPIC,
        RequestCode.GET_MAX_OFFSET: _GET_TOPIC,
        RequestCode.GET_MIN_OFFSET: _GET_TOPIC,
        RequestCode.GET_EARLIEST_MSG_STORETIME: _GET_TOPIC,
        RequestCode.VIEW_MESSAGE_BY_ID: _GET_TOPIC,
        RequestCode.GET_TOPIC_STATS_INFO: _GET_TOPIC,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: _GET_TOPIC,
        RequestCode.GET_TOPIC_CONFIG: _GET_TOPIC,
        RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _GET_TOPIC,
        RequestCode.RESUME_CHECK_HALF_MESSAGE: _of(Action.UPDATE, _TOPIC),
        RequestCode.CHECK_TRANSACTION_STATE: _of(Action.PUB, _TOPIC),
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: _of(Action.SUB, _CONSUMER_GROUP),
        RequestCode.GET_CONSUMER_CONNECTION_LIST: _of(Action.GET, _CONSUMER_GROUP),
        RequestCode.GET_CONSUMER_RUNNING_INFO: _of(Action.GET, _CONSUMER_GROUP),
        RequestCode.DELETE_SUBSCRIPTIONGROUP: _of(Action.DELETE, _group("groupName")),
        RequestCode.QUERY_TOPICS_BY_CONSUMER: _GET_GROUP,
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: _GET_GROUP,
        RequestCode.GET_CONSUME_STATS: _of(
            Action.GET, _CONSUMER_GROUP, _TOPIC, ResourceField("topicList", ResourceType.TOPIC, ";")
        ),
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: _UPDATE_BOTH,
        RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: _UPDATE_BOTH,
        RequestCode.CLONE_GROUP_OFFSET: _of(Action.UPDATE, _group("destGroup"), _TOPIC),
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _of(Action.GET, _TOPIC, _group("group")),
        RequestCode.QUERY_CONSUME_TIME_SPAN: _of(Action.GET, _TOPIC, _group("group")),
        RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: _of(Action.GET, _group("group"), _TOPIC),
        RequestCode.QUERY_CORRECTION_OFFSET: _of(
            Action.GET, ResourceField("filterGroups", ResourceType.GROUP, ","), _group("compareGroup"), _TOPIC
        ),
        RequestCode.QUERY_CONSUME_QUEUE: _of(Action.GET, _TOPIC, _CONSUMER_GROUP),
        RequestCode.POLLING_INFO: _of(Action.GET, _CONSUMER_GROUP, _TOPIC),
        RequestCode.CONSUME_MESSAGE_DIRECTLY: _SUB_BOTH,
        RequestCode.POP_MESSAGE: _SUB_BOTH,
        RequestCode.ACK_MESSAGE: _SUB_BOTH,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME: _SUB_BOTH,
        RequestCode.NOTIFICATION: _SUB_BOTH,
        RequestCode.PEEK_MESSAGE: _of(Action.SUB, _TOPIC, _CONSUMER_GROUP),
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: _of(Action.SUB, _group("producerGroup"), _TOPIC),
        RequestCode.GET_PRODUCER_CONNECTION_LIST: _GET_CLUSTER,
        RequestCode.GET_ALL_PRODUCER_INFO: _GET_CLUSTER,
        RequestCode.GET_KV_CONFIG: _GET_CLUSTER,
        RequestCode.GET_KVLIST_BY_NAMESPACE: _GET_CLUSTER,
        RequestCode.VIEW_BROKER_STATS_DATA: _GET_CLUSTER,
        RequestCode.GET_BROKER_CONSUME_STATS: _GET_CLUSTER,
        RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON: _GET_CLUSTER,
        RequestCode.CONTROLLER_GET_REPLICA_INFO: _GET_CLUSTER,
        RequestCode.AUTH_GET_USER: _GET_CLUSTER,
        RequestCode.AUTH_LIST_USER: _GET_CLUSTER,
        RequestCode.AUTH_GET_ACL: _GET_CLUSTER,
        RequestCode.AUTH_LIST_ACL: _GET_CLUSTER,
        RequestCode.PUT_KV_CONFIG: _UPDATE_CLUSTER,
        RequestCode.DELETE_KV_CONFIG: _UPDATE_CLUSTER,
        RequestCode.WIPE_WRITE_PERM_OF_BROKER: _UPDATE_CLUSTER,
        RequestCode.ADD_WRITE_PERM_OF_BROKER: _UPDATE_CLUSTER,
        RequestCode.REGISTER_TOPIC_IN_NAMESRV: _UPDATE_CLUSTER,
        RequestCode.ADD_BROKER: _UPDATE_CLUSTER,
        RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: _UPDATE_CLUSTER,
        RequestCode.EXCHANGE_BROKER_HA_INFO: _UPDATE_CLUSTER,
        RequestCode.RESET_MASTER_FLUSH_OFFSET: _UPDATE_CLUSTER,
        RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: _UPDATE_CLUSTER,
        RequestCode.NOTIFY_BROKER_ROLE_CHANGED: _UPDATE_CLUSTER,
        RequestCode.AUTH_CREATE_USER: _UPDATE_CLUSTER,
        RequestCode.AUTH_UPDATE_USER: _UPDATE_CLUSTER,
        RequestCode.AUTH_DELETE_USER: _UPDATE_CLUSTER,
        RequestCode.AUTH_CREATE_ACL: _UPDATE_CLUSTER,
        RequestCode.AUTH_UPDATE_ACL: _UPDATE_CLUSTER,
        RequestCode.AUTH_DELETE_ACL: _UPDATE_CLUSTER,
        RequestCode.REGISTER_BROKER: _UPDATE_NAMED_CLUSTER,
        RequestCode.UNREGISTER_BROKER: _UPDATE_NAMED_CLUSTER,
        RequestCode.DELETE_TOPIC_IN_NAMESRV: _UPDATE_NAMED_CLUSTER,
        RequestCode.BROKER_HEARTBEAT: _UPDATE_NAMED_CLUSTER,
        RequestCode.CONTROLLER_ELECT_MASTER: _UPDATE_NAMED_CLUSTER,
        RequestCode.CONTROLLER_REGISTER_BROKER: _UPDATE_NAMED_CLUSTER,
        RequestCode.CLEAN_BROKER_DATA: _UPDATE_NAMED_CLUSTER,
        RequestCode.CONTROLLER_APPLY_BROKER_ID: _UPDATE_NAMED_CLUSTER,
        RequestCode.QUERY_DATA_VERSION: _GET_NAMED_CLUSTER,
        RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: _GET_NAMED_CLUSTER,
        RequestCode.GET_BROKER_MEMBER_GROUP: _of(Action.GET, _CLUSTER_NAME),
        RequestCode.REMOVE_BROKER: _of(
            Action.UPDATE, ResourceField("brokerClusterName", ResourceType.CLUSTER), on_cluster=True
        ),
    }
)
"""Request code -> what it does, for those whose headers have annotations; `contexts` handles others by their code.

What is missing in both needs only a user: such are changes of options, of consumer groups and of the request mode.
"""
