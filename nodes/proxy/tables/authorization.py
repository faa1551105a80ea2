"""What a call does to which topics and groups.

Mirrors:
    `org.apache.rocketmq.auth.authorization.builder.DefaultAuthorizationContextBuilder`, for calls of gRPC.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from nodes.broker.tables.auth.contexts import AuthContext
from nodes.broker.tables.auth.errors import AuthorizationError
from nodes.broker.tables.auth.resources import Resource
from nodes.protocol.auth import Action
from nodes.protocol.v2 import definition, service
from nodes.protocol.v2.enums import ClientType
from nodes.proxy.tables.errors import JavaExceptionError

_PUB, _SUB = (Action.PUB,), (Action.SUB,)
_CONSUMERS = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER, ClientType.PULL_CONSUMER)


def contexts_of_call(request: Any) -> tuple[AuthContext, ...]:
    """What a call needs, in the order in which it is checked; nothing: every user may make it.

    Raises:
        AuthorizationError: a name is missing.
        JavaExceptionError: settings are neither of a producer nor of a consumer.
    """
    build = _BUILDERS.get(type(request))
    return () if build is None else tuple(build(request))


def name_of_call(request: Any) -> str:
    """The name of a request's message, as white lists have it."""
    return f"apache.rocketmq.v2.{type(request).__name__}"


def _route(request: service.QueryRouteRequest) -> Iterator[AuthContext]:
    yield _topic(request.topic, (*_PUB, *_SUB))


def _send(request: service.SendMessageRequest) -> Iterator[AuthContext]:
    if not request.messages:
        raise AuthorizationError("message is null.")
    yield _topic(request.messages[0].topic, _PUB)


def _publish(request: service.RecallMessageRequest | service.EndTransactionRequest) -> Iterator[AuthContext]:
    yield _topic(request.topic, _PUB)


def _heartbeat(request: service.HeartbeatRequest) -> Iterator[AuthContext]:
    # The client type is that of the request, whatever the settings of the client are.
    if request.client_type in _CONSUMERS:
        yield _group(request.group)


def _terminate(request: service.NotifyClientTerminationRequest) -> Iterator[AuthContext]:
    if request.group is not None and request.group.name.strip():
        yield _group(request.group)


def _receive(request: service.ReceiveMessageRequest) -> Iterator[AuthContext]:
    if request.message_queue == definition.MessageQueue():
        raise AuthorizationError("messageQueue is null.")
    yield _group(request.group)
    yield _topic(request.message_queue.topic, _SUB)


def _change(request: service.ChangeInvisibleDurationRequest) -> Iterator[AuthContext]:
    yield _group(request.group)


def _consume(
    request: service.QueryAssignmentRequest
    | service.AckMessageRequest
    | service.ForwardMessageToDeadLetterQueueRequest,
) -> Iterator[AuthContext]:
    yield _group(request.group)
    yield _topic(request.topic, _SUB)


def _telemetry(command: service.TelemetryCommand) -> Iterator[AuthContext]:
    settings = command.settings
    if settings is None:
        return
    publishing, subscription = settings.publishing, settings.subscription
    if publishing is None and subscription is None:
        text = "settings command doesn't have publishing or subscription."
        raise JavaExceptionError("AclException", text)
    for topic in () if publishing is None else publishing.topics:
        yield _topic(topic, _PUB)
    if subscription is not None:
        yield _group(subscription.group)
        for entry in subscription.subscriptions:
            yield _topic(entry.topic, _SUB)


def _topic(topic: definition.Resource | None, actions: tuple[Action, ...]) -> AuthContext:
    if topic is None or not topic.name.strip():
        raise AuthorizationError("topic is null.")
    return AuthContext(Resource.of_topic(topic.name), actions)


def _group(group: definition.Resource | None) -> AuthContext:
    if group is None or not group.name.strip():
        raise AuthorizationError("group is null.")
    return AuthContext(Resource.of_group(group.name), _SUB)


_BUILDERS: Mapping[type, Callable[[Any], Iterable[AuthContext]]] = {
    service.QueryRouteRequest: _route,
    service.QueryAssignmentRequest: _consume,
    service.HeartbeatRequest: _heartbeat,
    service.NotifyClientTerminationRequest: _terminate,
    service.TelemetryCommand: _telemetry,
    service.SendMessageRequest: _send,
    service.RecallMessageRequest: _publish,
    service.EndTransactionRequest: _publish,
    service.ReceiveMessageRequest: _receive,
    service.AckMessageRequest: _consume,
    service.ChangeInvisibleDurationRequest: _change,
    service.ForwardMessageToDeadLetterQueueRequest: _consume,
}
"""Request -> what it needs."""
