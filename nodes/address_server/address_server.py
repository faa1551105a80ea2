"""An address server process: the list of nameservers on request, stored on its disk."""

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.config.nameserver import ADDRESS_SERVER_PORT
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_address_server import NameserverListHeader
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.typed import success

_FILE = "nsaddr"


class AddressServer:
    """Serves one text: addresses of nameservers, separated by `;`. It knows nothing of the nameservers themselves.

    RocketMQ's nodes read it with HTTP GET from a web server; here a request stands for that.

    Args:
        addresses: its text before an administrator has changed it.
    """

    def __init__(self, host: Host, addresses: str) -> None:
        self._host = host
        stored = host.disk.read(_FILE)
        self._addresses = addresses if stored is None else stored.decode()
        self._server = RpcServer(host)
        self._server.serve(self.handlers())
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Serve until a shutdown is requested."""
        self._host.listen(ADDRESS_SERVER_PORT, self._server)
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    def handlers(self) -> Handlers:
        """The two requests."""
        return {RequestCode.GET_NAMESERVER_LIST: self._get, RequestCode.PUT_NAMESERVER_LIST: self._put}

    def _get(self, _channel: Channel, request: Command) -> Command:
        return success(request, NameserverListHeader(self._addresses))

    def _put(self, _channel: Channel, request: Command) -> Command:
        self._addresses = decode_header(NameserverListHeader, request.ext_fields).addresses
        self._host.disk.write(_FILE, self._addresses.encode())
        return success(request)
