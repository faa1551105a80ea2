"""What a request does to which resources, and its user.

Mirrors:
    `org.apache.rocketmq.auth.authorization.builder.DefaultAuthorizationContextBuilder` and
    `org.apache.rocketmq.auth.authentication.builder.DefaultAuthenticationContextBuilder`, for requests of remoting.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from nodes.broker.tables.auth.errors import AuthorizationError
from nodes.broker.tables.auth.resources import Resource
from nodes.protocol.acl_signature import ACCESS_KEY, SIGNATURE, signed_content
from nodes.protocol.auth import REQUEST_ACTIONS, Action, RequestAction, ResourceType
from nodes.protocol.bodies import LockBatchRequestBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.errors import ProtocolError
from nodes.protocol.model import FILTER_TYPES, RETRY_TOPIC_PREFIX, HeartbeatData
from nodes.protocol.registry import decode_body
from nodes.values import frozen

_UNREADABLE = "parse authorization context error."


@frozen
class AuthRequest:
    """A request as far as its permission depends on it."""

    channel_id: str
    source_ip: str
    code: int
    fields: Mapping[str, str]
    body: bytes | None = None
    version: int = 0

    @property
    def username(self) -> str | None:
        """The user that the sender claims to be; None: it claims to be none."""
        return self.fields.get(ACCESS_KEY)

    @property
    def signature(self) -> str | None:
        """The signature, if there is one."""
        return self.fields.get(SIGNATURE)

    def content(self) -> bytes:
        """What the signature is of."""
        return signed_content(self.fields, self.body, self.version)


@frozen
class AuthContext:
    """One resource of a request, and the actions of which one must be allowed."""

    resource: Resource
    actions: tuple[Action, ...]


_Contexts = Iterable[AuthContext]
_SUB = (Action.SUB,)
_PUB = (Action.PUB,)
_SUB_GET = (Action.SUB, Action.GET)
_SUB_UPDATE = (Action.SUB, Action.UPDATE)


def contexts_of(request: AuthRequest, cluster_name: str) -> tuple[AuthContext, ...]:
    """What a request needs; nothing: every user may send it. A request without header needs nothing.

    Raises:
        AuthorizationError: it cannot be read.
    """
    if not request.fields:
        return ()
    try:
        build = _BUILDERS.get(request.code)
        if build is not None:
            return tuple(build(request))
        action = REQUEST_ACTIONS.get(request.code)
        return () if action is None else tuple(_by_annotation(request, action, cluster_name))
    except ProtocolError as error:
        raise AuthorizationError(_UNREADABLE) from error


def _is_retry(topic: str | None) -> bool:
    return topic is not None and topic.startswith(RETRY_TOPIC_PREFIX)


def _group(name: str | None, actions: tuple[Action, ...]) -> AuthContext:
    return AuthContext(Resource.of_group(name), actions)


def _topic(name: str | None, actions: tuple[Action, ...]) -> AuthContext:
    return AuthContext(Resource.of_topic(name), actions)


def _route(request: AuthRequest) -> Iterator[AuthContext]:
    topic = request.fields.get("topic")
    if _is_retry(topic):
        yield _group(topic, _SUB_GET)
    else:
        yield _topic(topic, (Action.PUB, Action.SUB, Action.GET))


def _send(topic_field: str, group_field: str) -> Callable[[AuthRequest], _Contexts]:
    def contexts(request: AuthRequest) -> Iterator[AuthContext]:
        topic, group = request.fields.get(topic_field), request.fields.get(group_field)
        if _is_retry(topic):
            yield _group(group if (group or "").strip() else topic, _SUB)
        else:
            yield _topic(topic, _PUB)

    return contexts


def _publish(request: AuthRequest) -> Iterator[AuthContext]:
    yield _topic(request.fields.get("topic"), _PUB)


def _end_transaction(request: AuthRequest) -> Iterator[AuthContext]:
    if (request.fields.get("topic") or "").strip():
        yield from _publish(request)


def _send_back(request: AuthRequest) -> Iterator[AuthContext]:
    yield _group(request.fields.get("group"), _SUB)


def _query_message(request: AuthRequest) -> Iterator[AuthContext]:
    yield _topic(request.fields.get("topic"), _SUB_GET)


def _consume(actions: tuple[Action, ...]) -> Callable[[AuthRequest], _Contexts]:
    def contexts(request: AuthRequest) -> Iterator[AuthContext]:
        topic = request.fields.get("topic")
        if not _is_retry(topic):
            yield _topic(topic, actions)
        yield _group(request.fields.get("consumerGroup"), actions)

    return contexts


def _consumer_ids(request: AuthRequest) -> Iterator[AuthContext]:
    yield _group(request.fields.get("consumerGroup"), _SUB_GET)


def _unregister(request: AuthRequest) -> Iterator[AuthContext]:
    group = request.fields.get("consumerGroup")
    if (group or "").strip():
        yield _group(group, _SUB)


def _heartbeat(request: AuthRequest) -> Iterator[AuthContext]:
    for consumer in decode_body(HeartbeatData, request.body).consumer_data_set:
        yield from _subscribed(consumer.group_name, (item.topic for item in consumer.subscription_data_set))


def _lock(request: AuthRequest) -> Iterator[AuthContext]:
    body = decode_body(LockBatchRequestBody, request.body)
    yield from _subscribed(body.consumer_group, (queue.topic for queue in body.mq_set))


def _subscribed(group: str, topics: Iterable[str]) -> Iterator[AuthContext]:
    yield _group(group, _SUB)
    for topic in topics:
        if not _is_retry(topic):
            yield _topic(topic, _SUB)


_BUILDERS: Mapping[int, Callable[[AuthRequest], _Contexts]] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: _route,
    RequestCode.SEND_MESSAGE: _send("topic", "group"),
    RequestCode.SEND_MESSAGE_V2: _send("b", "a"),
    RequestCode.SEND_BATCH_MESSAGE: _send("b", "a"),
    RequestCode.RECALL_MESSAGE: _publish,
    RequestCode.END_TRANSACTION: _end_transaction,
    RequestCode.CONSUMER_SEND_MSG_BACK: _send_back,
    RequestCode.PULL_MESSAGE: _consume(_SUB),
    RequestCode.QUERY_MESSAGE: _query_message,
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.UNREGISTER_CLIENT: _unregister,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _consumer_ids,
    RequestCode.QUERY_CONSUMER_OFFSET: _consume(_SUB_GET),
    RequestCode.UPDATE_CONSUMER_OFFSET: _consume(_SUB_UPDATE),
    RequestCode.LOCK_BATCH_MQ: _lock,
    RequestCode.UNLOCK_BATCH_MQ: _lock,
}
"""Request code -> what is read from a request, for those that RocketMQ reads by their code."""


def _by_annotation(request: AuthRequest, action: RequestAction, cluster_name: str) -> Iterator[AuthContext]:
    if (
        request.code == RequestCode.UPDATE_AND_CREATE_TOPIC
        and request.fields.get("topicFilterType") not in FILTER_TYPES
    ):
        raise ProtocolError("topicFilterType is none of RocketMQ's")
    found = False
    for field in action.fields:
        value = request.fields.get(field.name)
        if value is None:
            continue
        for name in [item for item in value.split(field.splitter) if item] if field.splitter else [value]:
            found = True
            if field.type is ResourceType.TOPIC and _is_retry(name):
                yield _group(name, action.actions)
            else:
                yield AuthContext(Resource(field.type, name), action.actions)
    if action.on_cluster and not found:
        yield AuthContext(Resource(ResourceType.CLUSTER, cluster_name), action.actions)
