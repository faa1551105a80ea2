"""A channel of gRPC: calls to the first of several addresses that answers, with pauses between attempts to connect.

Mirrors:
    `io.grpc.ManagedChannel` with the load balancer `pick_first`, and gRPC's connection backoff;
    `org.apache.rocketmq.client.java.rpc.IpNameResolverFactory`.
"""

from collections.abc import Callable

import trio

from nodes.beliefs import Belief, BeliefKind
from nodes.config import RemotingClientConfig
from nodes.host import Channel, Host
from nodes.protocol.acl_signature import SessionCredentials, authorization_of, date_time_of
from nodes.protocol.answer_codes import STATUS_CODES
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_proxy import CallMetadataHeader, GrpcErrorHeader
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header, encode_header
from nodes.protocol.v2.service import encode_message
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError, RemotingTimeoutError
from nodes.units import NS_PER_MS

UNAVAILABLE, DEADLINE_EXCEEDED = 14, 4
_BACKOFF_MS, _BACKOFF_MAX_MS = 1_000, 120_000
_MULTIPLIER, _JITTER = 1.6, 0.2
_PER_MILLE = 1_000


class CallFailedError(Exception):
    """A call got no answer, or one that is a status of gRPC."""

    def __init__(self, grpc_status: int, description: str) -> None:
        super().__init__(description)
        self.grpc_status = grpc_status


class GrpcChannel:
    """Calls of one client to its proxies.

    Args:
        addresses: `ip:port` of the proxies; they are tried in an order that is drawn once, so clients spread over them.
        number: of the channel among those of its client; the first one draws alike whatever the addresses are.
        client_id: of the client.
        credentials: with which calls are signed; None: they are not.
        on_command: handles commands that the proxy sends.
        on_closed: called when a connection has ended.

    Emits:
        PROXY whenever it connects with another proxy, and when it reaches none.
    """

    def __init__(
        self,
        host: Host,
        addresses: tuple[str, ...],
        number: int,
        client_id: str,
        credentials: SessionCredentials | None,
        on_command: Callable[[Channel, Command], None],
        on_closed: Callable[[str], None],
    ) -> None:
        self._host = host
        self._endpoints = ";".join(addresses)
        self._addresses = list(addresses)
        host.rng(f"grpc addresses {number}").shuffle(self._addresses)
        self._client_id = client_id
        self._credentials = credentials
        config = RemotingClientConfig(client_close_socket_if_timeout=False)
        self._rpc = RpcClient(host, config, on_request=on_command, on_channel_closed=on_closed)
        self._draw = host.rng(f"grpc backoff {number}").randrange
        self._connecting = trio.Lock()
        self._failures = 0
        self._not_before_ns = 0
        """No attempt to connect is made before."""
        self.address: str | None = None
        """The proxy of the last connection; None: there was none."""
        self._believed: str | None = ""

    async def call(self, code: RequestCode, request: object, timeout_ms: int) -> object:
        """Call a method of `MessagingService`; returns the value of its answer.

        Raises:
            CallFailedError: there is no connection, no answer in time, or the answer is a status of gRPC.
        """
        address = self.address
        if address is None or self._rpc.channel(address) is None:
            address = await self._connected()
        header = CallMetadataHeader(self._client_id, "JAVA", "5.0.8", timeout_ms, *self._signature())
        try:
            body = encode_message(request)
            answer = await self._rpc.call(address, int(code), encode_header(header), body, timeout_ms=timeout_ms)
        except RemotingTimeoutError:
            text = f"deadline exceeded after {timeout_ms} ms"
            raise CallFailedError(DEADLINE_EXCEEDED, text) from None
        except RemotingError as error:
            raise CallFailedError(UNAVAILABLE, str(error)) from error
        if answer.code == ResponseCode.GRPC_ERROR:
            status = decode_header(GrpcErrorHeader, answer.ext_fields).grpc_status
            raise CallFailedError(status, answer.remark or "")
        if answer.code != ResponseCode.SUCCESS and answer.code not in STATUS_CODES:
            raise CallFailedError(UNAVAILABLE, answer.remark or "")
        kind = EXCHANGES[code].response_body
        assert kind is not None
        return decode_body(kind, answer.body)

    def close(self) -> None:
        """Close the connections."""
        self._rpc.close_all()

    def _signature(self) -> tuple[str, str] | tuple[()]:
        """`authorization` and the instant that it signs; nothing without credentials."""
        if self._credentials is None:
            return ()
        date_time = date_time_of(self._host.clock.now_ms())
        return authorization_of(self._credentials, date_time), date_time

    async def _connected(self) -> str:
        """Connect with a proxy, unless another call has done so meanwhile.

        Raises:
            CallFailedError: no proxy can be reached, or the pause after the last attempt is not over.
        """
        async with self._connecting:
            if self.address is not None and self._rpc.channel(self.address) is not None:
                return self.address
            if self._host.clock.monotonic_ns() < self._not_before_ns:
                raise CallFailedError(UNAVAILABLE, "io exception")
            for address in self._addresses:
                if await self._rpc.reach(address):
                    self.address = address
                    self._failures = 0
                    self._believe(address)
                    return address
            self._believe(None)
            self._back_off()
            raise CallFailedError(UNAVAILABLE, "io exception")

    def _believe(self, proxy: str | None) -> None:
        if self._believed != proxy:
            self._believed = proxy
            self._host.record(Belief(BeliefKind.PROXY, self._endpoints, proxy))

    def _back_off(self) -> None:
        delay_ms = min(_BACKOFF_MS * _MULTIPLIER**self._failures, _BACKOFF_MAX_MS)
        drawn = self._draw(2 * _PER_MILLE + 1) / _PER_MILLE - 1
        delay_ms = int(delay_ms * (1 + _JITTER * drawn))
        self._failures += 1
        self._not_before_ns = self._host.clock.monotonic_ns() + delay_ms * NS_PER_MS
