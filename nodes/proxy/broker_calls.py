"""Calls of a proxy to nameservers and brokers: several remoting clients, one at random for each call.

Mirrors:
    `org.apache.rocketmq.client.impl.mqclient.MQClientAPIFactory`, `MQClientAPIExt`, and the table of calls that wait
    in `org.apache.rocketmq.remoting.netty.NettyRemotingAbstract`.
"""

from collections.abc import Callable, Mapping

import attrs

from nodes.config import RemotingClientConfig
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.v2.enums import Code
from nodes.proxy.tables.errors import CallError, JavaExceptionError, client_exception_text
from nodes.rpc.client import RpcClient, Sign
from nodes.rpc.errors import RemotingConnectError, RemotingError, RemotingTimeoutError
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.typed import invoke, invoke_oneway
from nodes.units import NS_PER_MS

DEFAULT_TIMEOUT_MS = 2_000
"""Of requests to brokers that clients wait for (`MessagingProcessor#DEFAULT_TIMEOUT_MILLS`)."""
METADATA_TIMEOUT_MS = 3_000
"""Of requests about routes, topics and groups, and of messages to other proxies."""
_SCAN_PERIOD_MS = 1_100
_GRACE_MS = 1_000
"""How much longer than its time-out a call waits at least: its table is scanned each second,
which takes 1.1 s on a `HashedWheelTimer` with ticks of 100 ms."""
_CODES: Mapping[int, Code] = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: Code.NOT_IMPLEMENTED,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: Code.CONSUMER_GROUP_NOT_FOUND,
}


def code_of(response_code: int) -> Code:
    """The code of a status for the code of a broker's answer (`ResponseBuilder#buildCode`)."""
    return _CODES.get(response_code, Code.INTERNAL_SERVER_ERROR)


def broker_error(answer: Command) -> CallError:
    """The error of an answer that RocketMQ takes for an exception (`MQBrokerException`)."""
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return CallError(Code.TOPIC_NOT_FOUND, client_exception_text(answer.code, answer.remark))
    return CallError(code_of(answer.code), answer.remark or code_of(answer.code).name)


@attrs.frozen
class _Client:
    rpc: RpcClient
    nameservers: Nameservers


class MQClientAPIFactory:
    """Remoting clients, each with its own connections and its own nameserver.

    Args:
        nameservers: the addresses of all.
        clients_num: how many there are.
        on_request: handles requests of brokers; None: they are ignored.
        sign: signs requests; None: they are not signed.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        nameservers: tuple[str, ...],
        clients_num: int,
        on_request: Callable[[Channel, Command], None] | None = None,
        *,
        sign: Sign | None,
    ) -> None:
        self._host = host
        self._draw = host.rng(f"{name} clients").randrange
        self._begin_ns = host.clock.monotonic_ns()
        # Calls are asynchronous in RocketMQ: one that takes too long leaves its connection open.
        config = RemotingClientConfig(client_close_socket_if_timeout=False)
        clients = [RpcClient(host, config, on_request=on_request, sign=sign) for _ in range(clients_num)]
        self._clients = tuple(_Client(rpc, Nameservers(host, rpc, nameservers)) for rpc in clients)

    async def invoke(
        self,
        address: str | None,
        code: RequestCode,
        header: "attrs.AttrsInstance | None" = None,
        body: "attrs.AttrsInstance | bytes | None" = None,
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> Command:
        """Send a request to a broker and wait for the answer, whatever its code.

        Args:
            address: None: the nameserver in use gets the request, as from RocketMQ's remoting client.

        Raises:
            CallError: there was no answer; a time-out is noticed a second later, or two.
        """
        client = self._client()
        try:
            target = address or client.nameservers.choose()
            return await invoke(client.rpc, target, code, header, body, timeout_ms=self._until_scan_ms(timeout_ms))
        except RemotingError as error:
            raise _no_answer(error, address, timeout_ms) from error

    async def ask_nameserver(self, code: RequestCode, header: "attrs.AttrsInstance") -> Command:
        """Send a request to the nameserver in use and wait for the answer, whatever its code.

        Raises:
            CallError: there was no answer.
        """
        client = self._client()
        try:
            return await client.nameservers.call(code, header, timeout_ms=METADATA_TIMEOUT_MS)
        except RemotingError as error:
            raise _no_answer(error, None, METADATA_TIMEOUT_MS) from error

    async def forward(self, address: str | None, request: Command, *, timeout_ms: int) -> Command:
        """Send a client's request to a broker as it is, and wait for the answer, whatever its code.

        Args:
            address: as of `invoke`.

        Raises:
            CallError: as of `invoke`.
        """
        client = self._client()
        try:
            target = address or client.nameservers.choose()
            until_ms = self._until_scan_ms(timeout_ms)
            return await client.rpc.call(target, request.code, request.ext_fields, request.body, timeout_ms=until_ms)
        except RemotingError as error:
            raise _no_answer(error, address, timeout_ms) from error

    def forward_oneway(self, address: str | None, request: Command) -> None:
        """Send a client's oneway request to a broker as it is.

        Raises:
            CallError: there is no nameserver to take the place of a broker without address.
        """
        client = self._client()
        try:
            client.rpc.oneway(address or client.nameservers.choose(), request.code, request.ext_fields, request.body)
        except RemotingError as error:
            raise _no_answer(error, address, DEFAULT_TIMEOUT_MS) from error

    def oneway(
        self,
        address: str | None,
        code: RequestCode,
        header: "attrs.AttrsInstance | None" = None,
        body: "attrs.AttrsInstance | bytes | None" = None,
    ) -> None:
        """Send a oneway request; without an address to the nameserver in use."""
        client = self._client()
        try:
            invoke_oneway(client.rpc, address or client.nameservers.choose(), code, header, body)
        except RemotingError as error:
            raise _no_answer(error, address, DEFAULT_TIMEOUT_MS) from error

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.rpc.close_all()

    def _client(self) -> _Client:
        return self._clients[self._draw(len(self._clients))]

    def _until_scan_ms(self, timeout_ms: int) -> int:
        """The time until the first scan that finds a call of now too old."""
        age_ms = (self._host.clock.monotonic_ns() - self._begin_ns) // NS_PER_MS
        due_ms = age_ms + timeout_ms + _GRACE_MS
        return -(-due_ms // _SCAN_PERIOD_MS) * _SCAN_PERIOD_MS - age_ms


def _no_answer(error: RemotingError, address: str | None, timeout_ms: int) -> CallError:
    target = "null" if address is None else address
    if isinstance(error, RemotingTimeoutError):
        return CallError(Code.PROXY_TIMEOUT, f"wait response on the channel <{target}> timeout, {timeout_ms}(ms)")
    if isinstance(error, RemotingConnectError):
        return JavaExceptionError("RemotingConnectException", f"connect to {target} failed")
    return JavaExceptionError("RemotingSendRequestException", f"send request to <{target}> failed")
