"""What all clients of RocketMQ 5 do: routes, settings, heartbeats.

Mirrors:
    `org.apache.rocketmq.client.java.impl.ClientImpl`, `ClientManagerImpl`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import trio

from nodes.beliefs import Belief, BeliefKind, Json, Lifecycle
from nodes.client5.grpc_channel import CallFailedError, GrpcChannel
from nodes.client5.sessions import TelemetrySession
from nodes.client5.tables.endpoints import addresses_of, endpoints_of, route_endpoints
from nodes.config.client5 import Client5Config
from nodes.host import Channel, Host
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import decode_body
from nodes.protocol.v2.definition import Endpoints, MessageQueue, Resource, Settings, Status
from nodes.protocol.v2.enums import ClientType, Code, MessageType
from nodes.protocol.v2.service import (
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    QueryRouteRequest,
    QueryRouteResponse,
    TelemetryCommand,
)
from nodes.threads import ScheduledThread

_ROUTE_FIRST_MS, _ROUTE_PERIOD_MS = 10_000, 30_000
_HEARTBEAT_FIRST_MS, _HEARTBEAT_PERIOD_MS = 1_000, 10_000
_SETTINGS_FIRST_MS, _SETTINGS_PERIOD_MS = 1_000, 300_000
_START_ATTEMPTS = 3
_Response = TypeVar("_Response")
ChooseQueues = Callable[[Iterable[MessageQueue]], tuple[MessageQueue, ...]]


class StatusError(Exception):
    """A proxy answers with another code than OK, or with what a client cannot use."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"[{status.code.value}] {status.message}")
        self.status = status


class Client5:
    """A client: it asks its access point for routes, and calls the endpoints that they name for everything else.

    Args:
        access_point: `ip:port` of the proxies that it is started with.
        config: its options.
        group: of a consumer; None: it is a producer.
        settings: returns what it reports.
        on_command: handles commands other than settings, with the endpoints that they come from.
        on_settings: called with the settings that a proxy has merged.
        choose: returns the queues of a route that it uses; a route without any is refused. None: it uses none.

    Emits:
        PROXY_ROUTE whenever it takes another route over.
    """

    def __init__(
        self,
        host: Host,
        access_point: tuple[str, ...],
        config: Client5Config,
        group: str | None,
        client_type: ClientType,
        settings: Callable[[], Settings],
        on_command: Callable[[Endpoints, TelemetryCommand], None],
        on_settings: Callable[[Settings], None],
        choose: ChooseQueues | None = None,
    ) -> None:
        self.host = host
        self.client_id = f"{host.name}@{host.pid}@0@{host.clock.monotonic_ns():x}"
        self.access_point = endpoints_of(access_point)
        self.request_timeout_ms = config.request_timeout
        self._credentials = SessionCredentials(config.access_key, config.secret_key) if config.access_key else None
        self._config = config
        self._group = None if group is None else Resource(group)
        self._type = client_type
        self._settings = settings
        self._on_command = on_command
        self._on_settings = on_settings
        self._choose = choose
        self.routes: dict[str, tuple[MessageQueue, ...]] = {}
        """Topic -> queues; a refresh that fails leaves the old ones."""
        self.queues: dict[str, tuple[MessageQueue, ...]] = {}
        """Topic -> the queues that it uses, of the last route that has some."""
        self.isolated: dict[Endpoints, None] = {}
        """Endpoints of sends that have failed, until one of their heartbeats succeeds."""
        self._channels: dict[Endpoints, GrpcChannel] = {}
        self._sessions: dict[Endpoints, TelemetrySession] = {}
        self._threads = [ScheduledThread(host, f"ClientScheduler-{number}") for number in range(3)]

    # --- calls -----------------------------------------------------------------------

    async def call(
        self,
        endpoints: Endpoints,
        code: RequestCode,
        request: object,
        kind: type[_Response],
        timeout_ms: int | None = None,
    ) -> _Response:
        """Call a method of a proxy; returns its answer, whatever its status.

        Raises:
            CallFailedError: there was none.
        """
        answer = await self._channel(endpoints).call(code, request, timeout_ms or self.request_timeout_ms)
        assert isinstance(answer, kind)
        return answer

    def address(self, endpoints: Endpoints) -> str:
        """`ip:port` of the proxy that the last connection to endpoints was made to; empty: there was none."""
        return self._channel(endpoints).address or ""

    def _channel(self, endpoints: Endpoints) -> GrpcChannel:
        """The channel to endpoints; that of the access point serves the routes that name it, too."""
        channel = self._channels.get(endpoints)
        if channel is None:
            addresses = addresses_of(endpoints)
            channel = self._channels[endpoints] = GrpcChannel(
                self.host,
                addresses if self._config.tries_all_endpoints else addresses[:1],
                len(self._channels),
                self.client_id,
                self._credentials,
                partial(self._command, endpoints),
                partial(self._on_closed, endpoints),
            )
        return channel

    def _route_endpoints(self) -> tuple[Endpoints, ...]:
        return route_endpoints(self.routes.values())

    # --- life ------------------------------------------------------------------------

    async def start(self, topics: tuple[str, ...]) -> bool:
        """Fetch routes, report settings, and start the periodic work; returns whether that worked."""
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                for topic in topics:
                    await self._fetch_route(topic)
                break
            except (CallFailedError, StatusError) as error:
                if attempt == _START_ATTEMPTS:
                    self.host.record(Lifecycle.start_failed(error))
                    return False
        routes, heartbeats, settings = self._threads
        routes.with_fixed_delay("updateRouteCache", self._update_routes, _ROUTE_FIRST_MS, _ROUTE_PERIOD_MS)
        heartbeats.with_fixed_delay("heartbeat", self._send_heartbeats, _HEARTBEAT_FIRST_MS, _HEARTBEAT_PERIOD_MS)
        settings.with_fixed_delay("syncSettings", self._sync_settings, _SETTINGS_FIRST_MS, _SETTINGS_PERIOD_MS)
        for thread in self._threads:
            thread.start()
        return True

    async def shutdown(self) -> None:
        """Report the end to the endpoints of all routes, and close the connections."""
        for session in self._sessions.values():
            session.release()
        for thread in self._threads:
            thread.stop()
        async with trio.open_nursery() as nursery:
            for endpoints in self._route_endpoints():
                nursery.start_soon(self._notify_termination, endpoints)
        for channel in self._channels.values():
            channel.close()

    async def _notify_termination(self, endpoints: Endpoints) -> None:
        request = NotifyClientTerminationRequest(self._group)
        try:
            await self.call(endpoints, RequestCode.V2_NOTIFY_CLIENT_TERMINATION, request, object)
        except CallFailedError as error:
            self._warn("termination was not reported", endpoints, error=str(error))

    # --- routes ----------------------------------------------------------------------

    async def _fetch_route(self, topic: str) -> None:
        """Ask the access point for a route, and take it over once its endpoints know the settings.

        Raises:
            CallFailedError: there was no answer, or no settings came from endpoints that are new.
            StatusError: the proxy has no route or does not know its type, or no queue can be used.
        """
        request = QueryRouteRequest(Resource(topic), self.access_point)
        answer = await self.call(self.access_point, RequestCode.V2_QUERY_ROUTE, request, QueryRouteResponse)
        if answer.status.code is not Code.OK:
            raise StatusError(answer.status)
        queues = answer.message_queues
        if any(MessageType.MESSAGE_TYPE_UNSPECIFIED in queue.accept_message_types for queue in queues):
            raise StatusError(Status(Code.OK, "Message type is not specified"))
        known = self._route_endpoints()
        for endpoints in route_endpoints((queues,)):
            if endpoints not in known:
                await self._session(endpoints).sync_settings()
        if self.routes.get(topic) != queues:
            self.routes[topic] = queues
            source = self.address(self.access_point)
            self.host.record(Belief(BeliefKind.PROXY_ROUTE, topic, proxy_route_in_brief(queues), source))
        if self._choose is not None:
            chosen = self._choose(queues)
            if not chosen:
                raise StatusError(Status(Code.OK, "No usable message queue found"))
            self.queues[topic] = chosen

    async def _update_routes(self) -> None:
        for topic in self.routes:
            self.host.start_soon(self._update_route, topic, name="updateRouteCache")

    async def _update_route(self, topic: str) -> None:
        try:
            await self._fetch_route(topic)
        except (CallFailedError, StatusError) as error:
            self.host.log.warning("route was not updated", topic=topic, error=str(error))

    # --- heartbeats --------------------------------------------------------------------

    async def _send_heartbeats(self) -> None:
        for endpoints in self._route_endpoints():
            self.host.start_soon(self._heartbeat, endpoints, name="heartbeat")

    async def _heartbeat(self, endpoints: Endpoints) -> None:
        """Send a heartbeat; a proxy that does not know the client waits for its next settings."""
        request = HeartbeatRequest(self._group, self._type)
        try:
            answer = await self.call(endpoints, RequestCode.V2_HEARTBEAT, request, HeartbeatResponse)
        except CallFailedError as error:
            self._warn("heartbeat failed", endpoints, error=str(error))
            return
        if answer.status.code is not Code.OK:
            self._warn("heartbeat refused", endpoints, error=answer.status.message)
            return
        self.isolated.pop(endpoints, None)

    # --- settings and commands -----------------------------------------------------------

    def _session(self, endpoints: Endpoints) -> TelemetrySession:
        session = self._sessions.get(endpoints)
        if session is None:
            session = self._sessions[endpoints] = TelemetrySession(
                self.host,
                self._channel(endpoints),
                self._config,
                self._settings,
                self._on_settings,
                lambda: endpoints not in self._route_endpoints(),
                lambda: self._forget_session(endpoints),
            )
        return session

    def _forget_session(self, endpoints: Endpoints) -> None:
        del self._sessions[endpoints]

    async def _sync_settings(self) -> None:
        for endpoints in self._route_endpoints():
            self._session(endpoints).report_settings()

    def _on_closed(self, endpoints: Endpoints, _address: str) -> None:
        session = self._sessions.get(endpoints)
        if session is not None:
            session.renew_later()

    def _command(self, endpoints: Endpoints, _channel: Channel, command: Command) -> None:
        if command.code == RequestCode.V2_TELEMETRY:
            self._on_command(endpoints, decode_body(TelemetryCommand, command.body))

    def _warn(self, event: str, endpoints: Endpoints, error: str) -> None:
        self.host.log.warning(event, endpoints=" ".join(addresses_of(endpoints)), error=error)


def proxy_route_in_brief(queues: tuple[MessageQueue, ...]) -> Json:
    """The value of PROXY_ROUTE.

    Returns:
        Broker name -> {"endpoints": [address, ...], "ids": [broker id, ...], "queues": number of entries}.
    """
    found: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        found.setdefault(queue.broker.name, []).append(queue)
    return {
        name: {
            "endpoints": list(addresses_of(entries[0].broker.endpoints)),
            "ids": sorted(dict.fromkeys(entry.broker.id for entry in entries)),
            "queues": len(entries),
        }
        for name, entries in sorted(found.items())
    }
