"""The stream between a client of RocketMQ 5 and endpoints: settings go to a proxy, commands come back.

Mirrors:
    `org.apache.rocketmq.client.java.impl.ClientSessionImpl`.
"""

from collections.abc import Callable

from nodes.client5.grpc_channel import DEADLINE_EXCEEDED, CallFailedError, GrpcChannel
from nodes.config.client5 import Client5Config
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2.definition import Settings
from nodes.protocol.v2.service import TelemetryCommand
from nodes.units import NS_PER_MS

_PAUSE_MS = 1_000
"""How long a client waits until it opens a broken stream again."""
_FIRST_SETTINGS_MS = 3_000
"""In addition to a request's time-out, until the first merged settings must have come."""


class TelemetrySession:
    """A stream; it is opened with the first settings.

    Args:
        channel: to the endpoints.
        config: options of the client.
        settings: returns what the client reports.
        on_settings: called with the settings that the proxy has merged.
        is_deprecated: returns whether no route names the endpoints any more.
        on_end: called when the stream has broken and is not opened again.
    """

    def __init__(
        self,
        host: Host,
        channel: GrpcChannel,
        config: Client5Config,
        settings: Callable[[], Settings],
        on_settings: Callable[[Settings], None],
        is_deprecated: Callable[[], bool],
        on_end: Callable[[], None],
    ) -> None:
        self._host = host
        self._channel = channel
        self._request_timeout_ms = config.request_timeout
        self._is_renewed = config.renews_stream
        self._settings = settings
        self._on_settings = on_settings
        self._is_deprecated = is_deprecated
        self._on_end = on_end
        self._is_initialized = False
        self._failure: CallFailedError | None = None
        """Why the first merged settings have not come; no later ones make up for that."""
        self._waits_to_renew = False
        self._released = False

    async def sync_settings(self) -> None:
        """Report settings; the first time, wait for the merged ones.

        Raises:
            CallFailedError: the first ones have not come, now or at an earlier call.
        """
        if self._failure is not None:
            raise self._failure
        if self._is_initialized:
            self.report_settings()
            return
        try:
            await self._report_first(self._request_timeout_ms + _FIRST_SETTINGS_MS)
        except CallFailedError as error:
            self._failure = error
            self._on_failure(error)
            raise
        self._is_initialized = True

    def report_settings(self) -> None:
        """Report settings without waiting."""
        self._host.start_soon(self._report_or_log, name="syncSettings")

    def renew_later(self) -> None:
        """The stream has broken: open it again after a pause, as long as that takes and a route names the endpoints."""
        if self._released:
            return
        if not self._is_renewed:
            if self._failure is not None:
                self._end()
        elif not self._waits_to_renew:
            self._waits_to_renew = True
            self._host.call_later_ms(_PAUSE_MS, self._renew)

    def release(self) -> None:
        """End; it is not opened again."""
        self._released = True

    def _renew(self) -> None:
        self._waits_to_renew = False
        if self._released:
            return
        if self._is_deprecated():
            self._end()
        else:
            self.report_settings()

    def _end(self) -> None:
        self._released = True
        self._on_end()

    async def _report_first(self, timeout_ms: int) -> None:
        """A client that starts does not look at the status of a refusal: it waits until the time is over."""
        end_ns = self._host.clock.monotonic_ns() + timeout_ms * NS_PER_MS
        if not await self._report(timeout_ms):
            await self._host.sleep_ms(max(0, end_ns - self._host.clock.monotonic_ns()) / NS_PER_MS)
            raise CallFailedError(DEADLINE_EXCEEDED, f"no settings came in {timeout_ms} ms")

    async def _report_or_log(self) -> None:
        try:
            if not await self._report(self._request_timeout_ms):
                self.renew_later()
        except CallFailedError as error:
            self._host.log.warning("settings were not reported", error=str(error))
            self._on_failure(error)

    def _on_failure(self, error: CallFailedError) -> None:
        """The stream has broken, unless the proxy is only silent."""
        if error.grpc_status != DEADLINE_EXCEEDED:
            self.renew_later()

    async def _report(self, timeout_ms: int) -> bool:
        """Report settings, and take the merged ones; returns whether there are any: without them the stream ends."""
        command = TelemetryCommand(settings=self._settings())
        answer = await self._channel.call(RequestCode.V2_TELEMETRY, command, timeout_ms)
        assert isinstance(answer, TelemetryCommand)
        if answer.settings is None:
            message = "" if answer.status is None else answer.status.message
            self._host.log.warning("settings were refused", error=message)
            return False
        self._on_settings(answer.settings)
        return True
