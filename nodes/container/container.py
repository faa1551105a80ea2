"""A container process: its brokers, the requests that add and remove them, and the order of start and stop."""

from collections.abc import Callable

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.broker.broker import Broker
from nodes.broker.shared import Master, Shared
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config.container import ContainerConfig
from nodes.config.text import to_lines
from nodes.config_requests import update_config
from nodes.container.tables.broker_file import BrokerFile, RefusedBrokerError, read_broker_file
from nodes.container.tables.brokers import AlreadyAddedError, BrokerOfContainer, ContainerBrokers
from nodes.host import Channel, Host, InnerHost
from nodes.live_config import LiveConfig, with_stored_changes
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_admin import GetBrokerConfigResponseHeader
from nodes.protocol.headers_container import AddBrokerRequestHeader, RemoveBrokerRequestHeader
from nodes.protocol.json_text import to_json
from nodes.protocol.names import VIP_PORT_DISTANCE
from nodes.protocol.registry import decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.server import Handlers, InTask, RpcServer
from nodes.rpc.typed import success
from nodes.values import frozen

BLACK_LIST = ("brokerConfigPaths", "rocketmqHome", "configBlackList", "brokerConfigPath", "listenPort")
"""RocketMQ's own list with what its option `configBlackList` adds, and the port, which is bound already."""
MakeBroker = Callable[[Host, BrokerFile, Shared], Broker]


@frozen
class _Inner:
    """A broker of the container."""

    file: BrokerFile
    host: InnerHost
    broker: Broker


class BrokerContainer:
    """One process with several brokers; implements `nodes.broker.shared.Shared` for them.

    All of them use one client: one connection to each nameserver and to each peer. Each has its own ports, files and
    tables. Requests to the container itself wait for each other, since one thread serves them.

    Args:
        paths: files of the brokers that start with the process, in order.
        make: makes a broker as its file says.

    Mirrors:
        `org.apache.rocketmq.container.BrokerContainer`, `BrokerContainerProcessor`, `BrokerContainerStartup`.
    """

    def __init__(
        self,
        host: Host,
        config: ContainerConfig,
        *,
        nameservers: tuple[str, ...],
        paths: tuple[str, ...],
        make: MakeBroker,
    ) -> None:
        self._host = host
        self._config = config = with_stored_changes(host.disk, config)
        self._paths = paths
        self._make = make
        self.client = RpcClient(host, config)
        self.nameservers = Nameservers(host, self.client, nameservers)
        self._brokers: ContainerBrokers[_Inner] = ContainerBrokers()
        self._live_config = LiveConfig(host, config, self._apply, BLACK_LIST)
        self._thread = trio.Lock()
        """Held while a request is served."""
        self._server = RpcServer(host, config, answers_unknown=False)
        self._server.serve(self._handlers())
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Serve, start the brokers one after the other, wait for the stop; one that is refused ends the process."""
        for port in self._ports():
            self._host.listen(port, self._server)
        try:
            for path in self._paths:
                await self._add(path)
        except RefusedBrokerError as error:
            self._host.log.warning("the container ends: a broker cannot be added", error=str(error))
        else:
            self._host.record(Lifecycle(LifecycleEvent.READY))
            await self._stopping.wait()
        await self._shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    def peek_master(self) -> Master | None:
        """The first master, whatever its group, isolated or not."""
        inner = self._brokers.peek_master()
        return None if inner is None else inner.broker.master

    def store_of(self, broker_name: str) -> MessageStore | None:
        """The store of a broker of this name, which is read without a request: a master's if there is one."""
        found = self._brokers.find_by_name(broker_name)
        return None if found is None else found[1].broker.context.store

    def _ports(self) -> tuple[int, ...]:
        port = self._config.listen_port
        return (port, port - VIP_PORT_DISTANCE)

    def _handlers(self) -> Handlers:
        return {
            RequestCode.ADD_BROKER: InTask(self._add_broker),
            RequestCode.REMOVE_BROKER: InTask(self._remove_broker),
            RequestCode.GET_BROKER_CONFIG: InTask(self._get_config),
            RequestCode.UPDATE_BROKER_CONFIG: InTask(self._update_config),
        }

    # --- brokers ----------------------------------------------------------------

    async def _add(self, path: str) -> None:
        """Add the broker of a file and start it.

        Raises:
            RefusedBrokerError: it cannot be added; nothing has changed.
        """
        content = self._host.disk.read(path)
        if content is None:
            raise RefusedBrokerError("addBroker properties empty")
        file = read_broker_file(content.decode(errors="replace"), self._host.name)
        if not file.fits:
            raise RefusedBrokerError("add broker return null")
        self._require_free_ports(file)
        try:
            self._brokers.require_new(file.identity)
            host = self._host.inner(path)
        except AlreadyAddedError as error:
            raise RefusedBrokerError(str(error)) from None
        except KeyError:
            raise RefusedBrokerError(f"{path} describes no broker of this machine") from None
        broker = self._make(host, file, self)
        self._brokers.put(file.identity, _Inner(file, host, broker))
        await host.start(broker)

    def _require_free_ports(self, file: BrokerFile) -> None:
        """Refuse a broker whose ports another one has; RocketMQ reports that the port is in use, too."""
        others = [inner.file for identity, inner in self._brokers.in_order_of_shutdown() if identity != file.identity]
        taken = [*self._ports(), *(port for other in others for port in other.ports())]
        for port in file.ports():
            if port in taken:
                raise RefusedBrokerError(f"start broker failed, port {port} is already in use")

    async def _remove(self, identity: BrokerOfContainer) -> bool:
        """Shut a broker down and remove it; returns whether there was one."""
        inner = self._brokers.remove(identity)
        if inner is None:
            return False
        inner.broker.request_shutdown()
        await inner.host.wait_ended()
        return True

    async def _shutdown(self) -> None:
        """Slaves, then masters, each fully; then the container itself."""
        for identity, _ in self._brokers.in_order_of_shutdown():
            await self._remove(identity)
        for port in self._ports():
            self._host.close_listener(port)
        self.client.close_all()

    # --- requests ---------------------------------------------------------------

    async def _add_broker(self, _channel: Channel, request: Command) -> Command:
        async with self._thread:
            path = decode_header(AddBrokerRequestHeader, request.ext_fields).config_path
            if not path:
                return request.answer(ResponseCode.SYSTEM_ERROR, "addBroker config path is empty")
            try:
                await self._add(path)
            except RefusedBrokerError as error:
                return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
            return success(request)

    async def _remove_broker(self, _channel: Channel, request: Command) -> Command:
        async with self._thread:
            header = decode_header(RemoveBrokerRequestHeader, request.ext_fields)
            identity = BrokerOfContainer(header.broker_cluster_name, header.broker_name, header.broker_id)
            if await self._remove(identity):
                return success(request)
            return request.answer(ResponseCode.BROKER_NOT_EXIST, "Broker not exist")

    async def _get_config(self, _channel: Channel, request: Command) -> Command:
        async with self._thread:
            version = GetBrokerConfigResponseHeader(to_json(self._live_config.data_version))
            identity = {"brokerContainerIP": self._host.ip, "brokerConfigPaths": ":".join(self._paths)}
            return success(request, version, to_lines(self._live_config.values() | identity).encode())

    async def _update_config(self, _channel: Channel, request: Command) -> Command:
        async with self._thread:
            return update_config(self._live_config, request)

    def _apply(self, config: ContainerConfig) -> None:
        self._config = config
