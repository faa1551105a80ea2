"""The choice of the nameserver: the same while its channel is open, else the next one, tried once; the list of all."""

import attrs

from nodes.beliefs import Belief, BeliefKind
from nodes.config.nameserver import ADDRESS_SERVER_PORT, WS_DOMAIN_NAME, nameserver_addresses
from nodes.host import Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_address_server import NameserverListHeader
from nodes.protocol.registry import decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingConnectError, RemotingError
from nodes.rpc.typed import invoke, invoke_oneway

_FIRST_INDEX_BOUND = 999
_LIST_TIMEOUT_MS = 3_000


class Nameservers:
    """The configured nameservers, and the one that this node uses.

    The order is shuffled once and the start is random, so nodes with the same
    configuration use different nameservers.

    Args:
        addresses: of the nameservers; empty: none is known yet.
        leaves_removed: whether `update` leaves the nameserver in use if the new list does not have it.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyRemotingClient#getAndCreateNameserverChannelAsync`,
        `#updateNameServerAddressList`.

    Emits:
        NAMESERVER whenever it chooses another one.
    """

    def __init__(
        self, host: Host, client: RpcClient, addresses: tuple[str, ...], *, leaves_removed: bool = True
    ) -> None:
        self._host = host
        self._client = client
        self.configured = addresses
        """In the configured order; registrations go to all of them."""
        chance = host.rng("nameservers")
        shuffled = list(addresses)
        chance.shuffle(shuffled)
        self._shuffled = tuple(shuffled)
        self._index = chance.randrange(_FIRST_INDEX_BOUND)
        self._updates = 0
        self._leaves_removed = leaves_removed
        self.chosen: str | None = None
        """The nameserver in use; None before the first request."""

    def update(self, addresses: tuple[str, ...]) -> None:
        """Use other nameservers from now on."""
        self.configured = addresses
        if sorted(addresses) == sorted(self._shuffled):
            return
        self._updates += 1
        shuffled = list(addresses)
        self._host.rng(f"nameservers {self._updates}").shuffle(shuffled)
        self._shuffled = tuple(shuffled)
        if self._leaves_removed and self.chosen is not None and self.chosen not in addresses:
            self._client.close(self.chosen)
            self.chosen = None

    async def call(
        self,
        code: RequestCode,
        header: "attrs.AttrsInstance | None" = None,
        body: "attrs.AttrsInstance | bytes | None" = None,
        *,
        timeout_ms: int,
    ) -> Command:
        """Send a request to the nameserver in use.

        A dead nameserver fails the call; the next call uses the next one.

        Raises:
            RemotingError: no answer.
        """
        return await invoke(self._client, self.choose(), code, header, body, timeout_ms=timeout_ms)

    def oneway(self, code: RequestCode, header: "attrs.AttrsInstance | None" = None) -> None:
        """Send a oneway request to the nameserver in use.

        Raises:
            RemotingError: none is configured.
        """
        invoke_oneway(self._client, self.choose(), code, header)

    def choose(self) -> str:
        """The nameserver to ask now: the one in use as long as its connection is open, else the next one.

        Raises:
            RemotingConnectError: none is configured.
        """
        if self.chosen is not None and self._client.channel(self.chosen) is not None:
            return self.chosen
        if not self._shuffled:
            msg = "no nameserver is configured"
            raise RemotingConnectError(msg)
        self._index += 1
        chosen = self._shuffled[self._index % len(self._shuffled)]
        if chosen != self.chosen:
            self.chosen = chosen
            self._host.record(Belief(BeliefKind.NAMESERVER, "pick-one", chosen))
        return chosen


class TopAddressing:
    """Fetches the list of nameservers; it is news if its text differs from that of the last one.

    Each fetch has a connection of its own. If the address server does not answer, or its text is blank, the node goes
    on with the list that it has.

    Mirrors:
        `org.apache.rocketmq.common.namesrv.DefaultTopAddressing`, and `fetchNameServerAddr` of
        `org.apache.rocketmq.client.impl.MQClientAPIImpl` and `org.apache.rocketmq.broker.out.BrokerOuterAPI`.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._rpc = RpcClient(host)
        self._address = f"{WS_DOMAIN_NAME}:{ADDRESS_SERVER_PORT}"
        self._text = ""
        """The last list, as the address server has it."""

    async def fetch(self) -> tuple[str, ...]:
        """Ask once; returns the nameservers that the node is to use from now on, empty if nothing changes."""
        try:
            answer = await invoke(
                self._rpc, self._address, RequestCode.GET_NAMESERVER_LIST, timeout_ms=_LIST_TIMEOUT_MS
            )
        except RemotingError as error:
            self._host.log.warning("no list of nameservers", error=str(error))
            return ()
        finally:
            self._rpc.close(self._address)
        if answer.code != ResponseCode.SUCCESS:
            return ()
        text = decode_header(NameserverListHeader, answer.ext_fields).addresses
        addresses = nameserver_addresses(text)
        if text == self._text or not addresses:
            return ()
        self._text = text
        return addresses
