"""The thread pools of brokers, nameservers and controllers, and which requests each of them handles."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from nodes.protocol.codes import RequestCode
from nodes.values import frozen


@frozen
class PoolSize:
    """Threads of a pool, and most requests that wait for one."""

    threads: int
    queue_capacity: int


class PoolName(StrEnum):
    """The thread pools of a broker, named as their options begin."""

    SEND = "sendMessage"
    PULL = "pullMessage"
    LITE_PULL = "litePullMessage"
    ACK = "ackMessage"
    REPLY = "processReplyMessage"
    QUERY = "queryMessage"
    ADMIN = "adminBroker"
    """Of every request that no other pool has."""
    CLIENT_MANAGE = "clientManage"
    HEARTBEAT = "heartbeat"
    CONSUMER_MANAGE = "consumerManage"
    LOAD_BALANCE = "loadBalanceProcessor"
    END_TRANSACTION = "endTransaction"


_C = RequestCode
_CODES: Mapping[PoolName, tuple[RequestCode, ...]] = {
    PoolName.SEND: (
        *(_C.SEND_MESSAGE, _C.SEND_MESSAGE_V2, _C.SEND_BATCH_MESSAGE),
        *(_C.CONSUMER_SEND_MSG_BACK, _C.RECALL_MESSAGE),
    ),
    PoolName.PULL: (_C.PULL_MESSAGE, _C.PEEK_MESSAGE, _C.POP_MESSAGE, _C.NOTIFICATION, _C.POLLING_INFO),
    PoolName.LITE_PULL: (_C.LITE_PULL_MESSAGE,),
    PoolName.ACK: (_C.ACK_MESSAGE, _C.BATCH_ACK_MESSAGE, _C.CHANGE_MESSAGE_INVISIBLETIME),
    PoolName.REPLY: (_C.SEND_REPLY_MESSAGE, _C.SEND_REPLY_MESSAGE_V2),
    PoolName.QUERY: (_C.QUERY_MESSAGE, _C.VIEW_MESSAGE_BY_ID),
    PoolName.CLIENT_MANAGE: (_C.UNREGISTER_CLIENT, _C.CHECK_CLIENT_CONFIG),
    PoolName.HEARTBEAT: (_C.HEART_BEAT,),
    PoolName.CONSUMER_MANAGE: (_C.GET_CONSUMER_LIST_BY_GROUP, _C.UPDATE_CONSUMER_OFFSET, _C.QUERY_CONSUMER_OFFSET),
    PoolName.LOAD_BALANCE: (_C.QUERY_ASSIGNMENT, _C.SET_MESSAGE_REQUEST_MODE),
    PoolName.END_TRANSACTION: (_C.END_TRANSACTION,),
}
POOL_OF_REQUEST: Mapping[int, PoolName] = MappingProxyType(
    {int(code): name for name, codes in _CODES.items() for code in codes}
)
"""Request code -> its thread pool; a code that is missing belongs to `PoolName.ADMIN`.

Mirrors:
    `org.apache.rocketmq.broker.BrokerController#registerProcessor`.
"""


class NameserverPool(StrEnum):
    """The thread pools of a nameserver, named as their options begin."""

    CLIENT_REQUEST = "clientRequest"
    """Of requests for the route of a topic."""
    DEFAULT = "default"
    """Of all other requests, such as registrations."""


class ControllerPool(StrEnum):
    """The thread pool of a controller, named as its options begin."""

    CONTROLLER = "controller"


class ProxyPool(StrEnum):
    """The thread pools of a proxy, named as their options begin."""

    ROUTE = "grpcRoute"
    """Of QueryRoute and QueryAssignment."""
    PRODUCER = "grpcProducer"
    """Of SendMessage, RecallMessage and ForwardMessageToDeadLetterQueue."""
    CONSUMER = "grpcConsumer"
    """Of ReceiveMessage, AckMessage and ChangeInvisibleDuration."""
    CLIENT_MANAGER = "grpcClientManager"
    """Of Heartbeat, NotifyClientTermination and Telemetry."""
    TRANSACTION = "grpcTransaction"
    """Of EndTransaction."""
    REMOTING_SEND = "remotingSendMessage"
    """At the remoting port, of sends, recalls and ends of transactions."""
    REMOTING_PULL = "remotingPullMessage"
    REMOTING_UPDATE_OFFSET = "remotingUpdateOffset"
    """At the remoting port, of commits of offsets, of acknowledgements, and of connections of consumers."""
    REMOTING_HEARTBEAT = "remotingHeartbeat"
    REMOTING_TOPIC_ROUTE = "remotingTopicRoute"
    REMOTING_DEFAULT = "remotingDefault"
    """At the remoting port, of all other requests that it answers."""


def nameserver_pool(code: int) -> NameserverPool:
    """The thread pool of a nameserver that handles a request.

    Mirrors:
        `org.apache.rocketmq.namesrv.NamesrvController#registerProcessor`.
    """
    return NameserverPool.CLIENT_REQUEST if code == _C.GET_ROUTEINFO_BY_TOPIC else NameserverPool.DEFAULT


_OF_CONTROLLER = frozenset(
    (
        *(_C.CONTROLLER_ALTER_SYNC_STATE_SET, _C.CONTROLLER_ELECT_MASTER, _C.CONTROLLER_REGISTER_BROKER),
        *(_C.CONTROLLER_GET_REPLICA_INFO, _C.CONTROLLER_GET_METADATA_INFO, _C.CONTROLLER_GET_SYNC_STATE_DATA),
        *(_C.BROKER_HEARTBEAT, _C.UPDATE_CONTROLLER_CONFIG, _C.GET_CONTROLLER_CONFIG, _C.CLEAN_BROKER_DATA),
        *(_C.CONTROLLER_GET_NEXT_BROKER_ID, _C.CONTROLLER_APPLY_BROKER_ID),
    )
)


def controller_pool(code: int) -> ControllerPool | None:
    """The thread pool of a controller that handles a request; None: of the DLedger, which has threads of its own.

    Mirrors:
        `org.apache.rocketmq.controller.ControllerManager#registerProcessor`.
    """
    return ControllerPool.CONTROLLER if code in _OF_CONTROLLER else None


_OF_CALLS: Mapping[int, ProxyPool] = {
    **dict.fromkeys((_C.V2_QUERY_ROUTE, _C.V2_QUERY_ASSIGNMENT), ProxyPool.ROUTE),
    **dict.fromkeys(
        (_C.V2_SEND_MESSAGE, _C.V2_RECALL_MESSAGE, _C.V2_FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE), ProxyPool.PRODUCER
    ),
    **dict.fromkeys((_C.V2_RECEIVE_MESSAGE, _C.V2_ACK_MESSAGE, _C.V2_CHANGE_INVISIBLE_DURATION), ProxyPool.CONSUMER),
    **dict.fromkeys((_C.V2_HEARTBEAT, _C.V2_NOTIFY_CLIENT_TERMINATION, _C.V2_TELEMETRY), ProxyPool.CLIENT_MANAGER),
    _C.V2_END_TRANSACTION: ProxyPool.TRANSACTION,
}
_OF_REMOTING: Mapping[int, ProxyPool] = {
    **dict.fromkeys(
        (
            *(_C.SEND_MESSAGE, _C.SEND_MESSAGE_V2, _C.SEND_BATCH_MESSAGE),
            *(_C.CONSUMER_SEND_MSG_BACK, _C.END_TRANSACTION, _C.RECALL_MESSAGE),
        ),
        ProxyPool.REMOTING_SEND,
    ),
    **dict.fromkeys((_C.PULL_MESSAGE, _C.LITE_PULL_MESSAGE, _C.POP_MESSAGE), ProxyPool.REMOTING_PULL),
    **dict.fromkeys(
        (
            *(_C.UPDATE_CONSUMER_OFFSET, _C.ACK_MESSAGE),
            *(_C.CHANGE_MESSAGE_INVISIBLETIME, _C.GET_CONSUMER_CONNECTION_LIST),
        ),
        ProxyPool.REMOTING_UPDATE_OFFSET,
    ),
    _C.HEART_BEAT: ProxyPool.REMOTING_HEARTBEAT,
    _C.GET_ROUTEINFO_BY_TOPIC: ProxyPool.REMOTING_TOPIC_ROUTE,
    **dict.fromkeys(
        (
            *(_C.UNREGISTER_CLIENT, _C.CHECK_CLIENT_CONFIG, _C.GET_CONSUMER_LIST_BY_GROUP),
            *(_C.GET_MAX_OFFSET, _C.GET_MIN_OFFSET, _C.QUERY_CONSUMER_OFFSET, _C.SEARCH_OFFSET_BY_TIMESTAMP),
            *(_C.LOCK_BATCH_MQ, _C.UNLOCK_BATCH_MQ),
        ),
        ProxyPool.REMOTING_DEFAULT,
    ),
}


def call_pool(code: int) -> ProxyPool | None:
    """The thread pool of a proxy that handles a call of gRPC; None: there is no such call.

    Mirrors:
        `org.apache.rocketmq.proxy.grpc.v2.GrpcMessagingApplication`.
    """
    return _OF_CALLS.get(code)


def remoting_pool(code: int) -> ProxyPool | None:
    """The thread pool of the remoting port of a proxy that handles a request; None: the port knows no such request.

    Mirrors:
        `org.apache.rocketmq.proxy.remoting.RemotingProtocolServer#registerRemotingServer`.
    """
    return _OF_REMOTING.get(code)


def proxy_pool(code: int) -> ProxyPool | None:
    """The thread pool of a proxy that handles a call or a request; None: a proxy gets no such request."""
    return call_pool(code) or remoting_pool(code)


def broker_pool(code: int) -> PoolName:
    """The thread pool of a broker that handles a request."""
    return POOL_OF_REQUEST.get(code, PoolName.ADMIN)
