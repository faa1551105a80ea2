"""The question to the address server: which nameservers there are."""

from nodes.config.nameserver import ADDRESS_SERVER_PORT, WS_DOMAIN_NAME, nameserver_addresses
from nodes.host import Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_address_server import NameserverListHeader
from nodes.protocol.registry import decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import invoke

_TIMEOUT_MS = 3_000


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
            answer = await invoke(self._rpc, self._address, RequestCode.GET_NAMESERVER_LIST, timeout_ms=_TIMEOUT_MS)
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
