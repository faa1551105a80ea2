"""What all clients of RocketMQ 5 do: routes, settings, heartbeats.

Mirrors:
    `org.apache.rocketmq.client.java.impl.ClientImpl`, `ClientManagerImpl`, `ClientSessionImpl`.
"""

from collections.abc import Callable
from typing import TypeVar

from nodes.beliefs import Belief, BeliefKind, Lifecycle, LifecycleEvent
from nodes.client5.grpc_channel import DEADLINE_EXCEEDED, CallFailedError, GrpcChannel
from nodes.config.client5 import Client5Config
from nodes.host import Channel, Host
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import decode_body
from nodes.protocol.v2.definition import Address, Endpoints, MessageQueue, Resource, Settings, Status
from nodes.protocol.v2.enums import AddressScheme, ClientType, Code, MessageType
from nodes.protocol.v2.service import (
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    QueryRouteRequest,
    QueryRouteResponse,
    TelemetryCommand,
)
from nodes.threads import ScheduledThread
from nodes.units import NS_PER_MS

_ROUTE_FIRST_MS, _ROUTE_PERIOD_MS = 10_000, 30_000
_HEARTBEAT_FIRST_MS, _HEARTBEAT_PERIOD_MS = 1_000, 10_000
_SETTINGS_FIRST_MS, _SETTINGS_PERIOD_MS = 1_000, 300_000
_STREAM_PAUSE_MS = 1_000
"""How long a client waits until it opens a broken stream again."""
_START_ATTEMPTS = 3
_SETTINGS_TIMEOUT_MS = 3_000
"""In addition to a request's time-out, at the start."""
_Response = TypeVar("_Response")


class StatusError(Exception):
    """A proxy answers with another code than OK."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"[{status.code.value}] {status.message}")
        self.status = status


class Client5:
    """A client, which knows the proxies of its access point and nothing of nameservers and brokers.

    Args:
        endpoints: `ip:port` of the proxies.
        config: its options.
        group: of a consumer; None: it is a producer.
        settings: returns what it reports.
        on_command: handles commands other than settings.
        on_settings: called with the settings that the proxy has merged.

    Emits:
        PROXY_ROUTE whenever it takes another route over.
    """

    def __init__(
        self,
        host: Host,
        endpoints: tuple[str, ...],
        config: Client5Config,
        group: str | None,
        client_type: ClientType,
        settings: Callable[[], Settings],
        on_command: Callable[[TelemetryCommand], None],
        on_settings: Callable[[Settings], None],
    ) -> None:
        self.host = host
        self.client_id = f"{host.name}@{host.pid}@0@{host.clock.monotonic_ns():x}"
        self.endpoints = _endpoints(endpoints)
        self.request_timeout_ms = config.request_timeout
        self._renews_stream = config.renews_stream
        self._group = None if group is None else Resource(group)
        self._type = client_type
        self._settings = settings
        self._on_command = on_command
        self._on_settings = on_settings
        tried = endpoints if config.tries_all_endpoints else endpoints[:1]
        credentials = SessionCredentials(config.access_key, config.secret_key) if config.access_key else None
        self.channel = GrpcChannel(host, tried, self.client_id, credentials, self._command, self._on_closed)
        self.routes: dict[str, tuple[MessageQueue, ...]] = {}
        """Topic -> queues; a refresh that fails leaves the old ones."""
        self._topics: dict[str, None] = {}
        self._threads = [ScheduledThread(host, f"ClientScheduler-{number}") for number in range(3)]
        self._ends = False
        self._is_completed = False
        """Whether the proxy has ended the stream, and it will be opened again."""

    async def call(
        self, code: RequestCode, request: object, kind: type[_Response], timeout_ms: int | None = None
    ) -> _Response:
        """Call a method; returns its answer, whatever its status.

        Raises:
            CallFailedError: there was none.
        """
        answer = await self.channel.call(code, request, timeout_ms or self.request_timeout_ms)
        assert isinstance(answer, kind)
        return answer

    # --- life ------------------------------------------------------------------------

    async def start(self, topics: tuple[str, ...]) -> bool:
        """Fetch routes, report settings, and start the periodic work; returns whether that worked."""
        self._topics = dict.fromkeys(topics)
        try:
            for topic in topics:
                await self._first_route(topic)
            await self._first_settings()
        except (CallFailedError, StatusError) as error:
            self.host.record(Lifecycle(LifecycleEvent.STOPPING, f"start failed: {error}"))
            return False
        routes, heartbeats, settings = self._threads
        routes.with_fixed_delay("updateRouteCache", self._update_routes, _ROUTE_FIRST_MS, _ROUTE_PERIOD_MS)
        heartbeats.with_fixed_delay("heartbeat", self._heartbeat, _HEARTBEAT_FIRST_MS, _HEARTBEAT_PERIOD_MS)
        settings.with_fixed_delay("syncSettings", self._sync_settings_again, _SETTINGS_FIRST_MS, _SETTINGS_PERIOD_MS)
        for thread in self._threads:
            thread.start()
        return True

    async def shutdown(self) -> None:
        """Report the end, and close the connections."""
        self._ends = True
        for thread in self._threads:
            thread.stop()
        request = NotifyClientTerminationRequest(self._group)
        try:
            await self.channel.call(RequestCode.V2_NOTIFY_CLIENT_TERMINATION, request, self.request_timeout_ms)
        except CallFailedError as error:
            self.host.log.warning("termination was not reported", error=str(error))
        self.channel.close()

    # --- routes ----------------------------------------------------------------------

    async def _first_route(self, topic: str) -> None:
        for attempt in range(_START_ATTEMPTS):
            try:
                await self.fetch_route(topic)
            except (CallFailedError, StatusError):
                if attempt + 1 == _START_ATTEMPTS:
                    raise
            else:
                return

    async def fetch_route(self, topic: str) -> None:
        """Take over the route of a topic.

        Raises:
            CallFailedError: there was no answer.
            StatusError: the proxy has none, or does not know its type.
        """
        request = QueryRouteRequest(Resource(topic), self.endpoints)
        answer = await self.call(RequestCode.V2_QUERY_ROUTE, request, QueryRouteResponse)
        if answer.status.code is not Code.OK:
            raise StatusError(answer.status)
        if any(MessageType.MESSAGE_TYPE_UNSPECIFIED in queue.accept_message_types for queue in answer.message_queues):
            raise StatusError(Status(Code.OK, "Message type is not specified"))
        if self.routes.get(topic) != answer.message_queues:
            self.routes[topic] = answer.message_queues
            brief = _in_brief(answer.message_queues)
            self.host.record(Belief(BeliefKind.PROXY_ROUTE, topic, brief, self.channel.address or ""))

    async def _update_routes(self) -> None:
        for topic in self._topics:
            try:
                await self.fetch_route(topic)
            except (CallFailedError, StatusError) as error:
                self.host.log.warning("route was not updated", topic=topic, error=str(error))

    # --- heartbeats and settings -------------------------------------------------------

    async def _heartbeat(self) -> None:
        """Send a heartbeat; a proxy that does not know the client waits for its next settings."""
        request = HeartbeatRequest(self._group, self._type)
        try:
            answer = await self.call(RequestCode.V2_HEARTBEAT, request, HeartbeatResponse)
        except CallFailedError as error:
            self.host.log.warning("heartbeat failed", error=str(error))
            return
        if answer.status.code is not Code.OK:
            self.host.log.warning("heartbeat refused", error=answer.status.message)

    async def _first_settings(self) -> None:
        """Report settings for the first time.

        Raises:
            CallFailedError: there was no answer in time, or none with settings: a client that starts does not look at
                the status of one that is denied, and waits for settings until its time is over.
        """
        timeout_ms = self.request_timeout_ms + _SETTINGS_TIMEOUT_MS
        end_ns = self.host.clock.monotonic_ns() + timeout_ms * NS_PER_MS
        if not await self._sync_settings(timeout_ms):
            await self.host.sleep_ms(max(0, end_ns - self.host.clock.monotonic_ns()) / NS_PER_MS)
            raise CallFailedError(DEADLINE_EXCEEDED, f"no settings came in {timeout_ms} ms")

    async def _sync_settings(self, timeout_ms: int) -> bool:
        """Report settings, and take the merged ones; returns whether there are any.

        Raises:
            CallFailedError: there was no answer, or the stream has ended with a status of gRPC.
        """
        command = TelemetryCommand(settings=self._settings())
        answer = await self.call(RequestCode.V2_TELEMETRY, command, TelemetryCommand, timeout_ms)
        if answer.settings is None:
            message = "" if answer.status is None else answer.status.message
            self.host.log.warning("settings were refused", error=message)
            return False
        self._on_settings(answer.settings)
        return True

    async def _sync_settings_again(self) -> None:
        try:
            if not await self._sync_settings(self.request_timeout_ms):
                self._on_completed()
        except CallFailedError as error:
            self.host.log.warning("settings were not reported", error=str(error))

    def _on_completed(self) -> None:
        """The proxy has ended the stream: open it again after a pause, unless that is about to happen."""
        if self._renews_stream and not self._is_completed:
            self._is_completed = True
            self.host.call_later_ms(_STREAM_PAUSE_MS, self._renew_stream)

    def _on_closed(self, _address: str) -> None:
        """The stream has broken: open it again after a pause, as long as that takes."""
        if self._renews_stream and not self._ends:
            self.host.call_later_ms(_STREAM_PAUSE_MS, self._renew_stream)

    def _renew_stream(self) -> None:
        if not self._ends:
            self.host.start_soon(self._renewing, name="ClientSession")

    async def _renewing(self) -> None:
        self._is_completed = False
        try:
            if not await self._sync_settings(self.request_timeout_ms):
                self._on_completed()
        except CallFailedError:
            self.host.call_later_ms(_STREAM_PAUSE_MS, self._renew_stream)

    def _command(self, _channel: Channel, command: Command) -> None:
        if command.code == RequestCode.V2_TELEMETRY:
            self._on_command(decode_body(TelemetryCommand, command.body))


def _endpoints(addresses: tuple[str, ...]) -> Endpoints:
    pairs = (address.rsplit(":", 1) for address in addresses)
    return Endpoints(AddressScheme.IPv4, tuple(Address(host, int(port)) for host, port in pairs))


def _in_brief(queues: tuple[MessageQueue, ...]) -> object:
    """Broker name -> {"ids": [broker id, ...], "queues": number of entries}."""
    found: dict[str, dict[str, list[int]]] = {}
    for queue in queues:
        known = found.setdefault(queue.broker.name, {"ids": [], "queues": [0]})
        known["queues"][0] += 1
        if queue.broker.id not in known["ids"]:
            known["ids"].append(queue.broker.id)
    return {name: {"ids": sorted(brief["ids"]), "queues": brief["queues"][0]} for name, brief in sorted(found.items())}
