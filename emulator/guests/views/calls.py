"""What the calls of RocketMQ 5 clients on one connection say about them: each call names its client."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

from emulator.guests.views.client import GuestClient
from nodes.cause import NO_CAUSE, cause
from nodes.client5.client import proxy_route_in_brief
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.protocol.registry import decode_body_cached, decode_header
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import MessageQueue, Settings
from nodes.protocol.v2.enums import Code

T = TypeVar("T")
UNANSWERED_MAX = 1_000
"""Requests of a connection that wait for an answer; beyond that the oldest are forgotten."""
Join = Callable[[str, bool], GuestClient | None]
"""Returns the client of this id; if it is new, only where the second argument says so."""


@attrs.frozen
class _ProxyRoute:
    """A route in the answer of a proxy."""

    queues: tuple[MessageQueue, ...]
    cause: int
    """Seq of the answer."""


@attrs.frozen
class _UnansweredCall:
    """A call that waits for its answer."""

    client_id: str
    settings: Settings | None = None
    """Of a Telemetry call."""
    topic: str = ""
    """Of a QueryRoute call."""


class WatchedCalls:
    """Watches the calls of one connection to a proxy.

    Settings that the proxy has accepted introduce a client. Its real client asks for routes before that; they wait.

    Args:
        address: of the proxy, `ip:port`.
        join: finds or makes a client.
    """

    def __init__(self, address: str, join: Join) -> None:
        self._address = address
        self._join = join
        self.waiting: dict[int, _UnansweredCall] = {}
        """Mapping opaque -> call without an answer."""
        self._early: dict[str, dict[str, _ProxyRoute]] = {}
        """Mapping client id -> topic -> the newest route, until the client is known."""
        self.request_handlers: Mapping[int, Callable[[Command], int]] = {
            RequestCode.V2_TELEMETRY: self._telemetry,
            RequestCode.V2_HEARTBEAT: self._heartbeat,
            RequestCode.V2_QUERY_ROUTE: self._query_route,
            RequestCode.V2_RECEIVE_MESSAGE: self._receive_message,
            RequestCode.V2_NOTIFY_CLIENT_TERMINATION: self._notify_client_termination,
        }
        """Mapping code -> handler of a call; returns NO_CAUSE."""
        self.frame_handlers: Mapping[int, Callable[[Command], None]] = {
            RequestCode.V2_TELEMETRY: self._settings,
            RequestCode.V2_QUERY_ROUTE: self._route,
        }

    # --- calls --------------------------------------------------------------------

    def _telemetry(self, command: Command) -> int:
        settings = decode_body_cached(service.TelemetryCommand, command.body).settings
        if settings is not None:
            keep_unanswered(self.waiting, command.opaque, _UnansweredCall(_client_id(command), settings))
        return NO_CAUSE

    def _query_route(self, command: Command) -> int:
        topic = decode_body_cached(service.QueryRouteRequest, command.body).topic.name
        keep_unanswered(self.waiting, command.opaque, _UnansweredCall(_client_id(command), topic=topic))
        return NO_CAUSE

    def _heartbeat(self, command: Command) -> int:
        self._join(_client_id(command), False)
        return NO_CAUSE

    def _receive_message(self, command: Command) -> int:
        client = self._join(_client_id(command), False)
        if client is not None:
            request = decode_body_cached(service.ReceiveMessageRequest, command.body)
            queue = request.message_queue
            client.receive(request.group.name, queue.topic.name, queue.broker.name)
        return NO_CAUSE

    def _notify_client_termination(self, command: Command) -> int:
        client = self._join(_client_id(command), False)
        if client is not None:
            client.terminate()
        return NO_CAUSE

    # --- answers ------------------------------------------------------------------

    def _settings(self, command: Command) -> None:
        call = self._answered(command)
        if call is None or call.settings is None:
            return
        if decode_body_cached(service.TelemetryCommand, command.body).settings is None:
            return
        client = self._join(call.client_id, True)
        if client is not None:
            client.report(call.settings)
            for topic, route in self._early.pop(call.client_id, {}).items():
                self._believe(client, topic, route)

    def _route(self, command: Command) -> None:
        call = self._answered(command)
        if call is None:
            return
        answer = decode_body_cached(service.QueryRouteResponse, command.body)
        if answer.status.code is not Code.OK:
            return
        route, client = _ProxyRoute(answer.message_queues, cause.get()), self._join(call.client_id, False)
        if client is not None:
            self._believe(client, call.topic, route)
        elif len(self._early) < UNANSWERED_MAX or call.client_id in self._early:
            self._early.setdefault(call.client_id, {})[call.topic] = route

    def _answered(self, command: Command) -> _UnansweredCall | None:
        """The call that a frame answers successfully; None: the frame is none, or a refusal."""
        if not command.is_response:
            return None
        call = self.waiting.pop(command.opaque, None)
        return call if command.code == ResponseCode.SUCCESS else None

    def _believe(self, client: GuestClient, topic: str, route: _ProxyRoute) -> None:
        client.on_proxy_route(topic, proxy_route_in_brief(route.queues), self._address, route.cause)


def keep_unanswered(table: dict[int, T], opaque: int, subject: T) -> None:
    """Remember what a request is about until it is answered."""
    if len(table) >= UNANSWERED_MAX:
        del table[next(iter(table))]
    table[opaque] = subject


def _client_id(command: Command) -> str:
    return decode_header(CallMetadataHeader, command.ext_fields).client_id or ""
