"""Two emulated proxies, as the questions of `conformance.proxy_questions` call them."""

from typing import Any

import attrs
import trio

from nodes.protocol.codes import RequestCode
from nodes.rpc.errors import RemotingConnectError, RemotingSendRequestError
from support.proxy_guest import BORN_MS, GrpcFailure, ProxyGuest

PROXIES = ("proxy-1", "proxy-2")
UNAVAILABLE = 14


@attrs.frozen
class OurProxies:
    """Calls to them; implements `ProxyCalls`."""

    guest: ProxyGuest

    async def call(
        self, code: RequestCode, request: Any, proxy: int, client_id: str, language: str, version: str, timeout_ms: int
    ) -> Any:
        """Call a method; a proxy that is not there is UNAVAILABLE, as clients of gRPC say it."""
        metadata: dict[str, Any] = {"client_id": client_id, "language": language, "version": version}
        try:
            return await self.guest.call(code, request, PROXIES[proxy], remaining_ms=timeout_ms, **metadata)
        except (RemotingConnectError, RemotingSendRequestError) as error:
            return GrpcFailure(UNAVAILABLE, str(error))

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let emulated time pass."""
        await trio.sleep(duration_ms / 1_000)

    def now_ms(self) -> int:
        """The wall clock of the cluster."""
        return BORN_MS + int(self.guest.stage.now_ms)
