"""A database whose advisory locks belong to connections."""

import json

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.config.remoting import RemotingServerConfig
from nodes.host import Channel, ConnectError, ConnectRefusedError, Host
from nodes.lease_service.lease_service import LOCK_PORT
from nodes.lease_service.lock_holders import LockHolders
from nodes.lease_service.tables.advisory_locks import AdvisoryLockTable
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_locks import AdvisoryLockHeader, AdvisoryLockRequestHeader
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.typed import success
from nodes.units import MS_PER_S, NS_PER_MS

KEEPALIVE_INTERVAL_MS = 75_000
KEEPALIVE_COUNT = 9
_NEVER_S = 1_000_000_000
_PROBE_TIMEOUT_MS = 1_000
_SEQUENCE_FILE = "sequence.json"
_CLOSED_PORT = 1
"""No process listens there, so a kernel that lives refuses at once."""


class AdvisoryLocks:
    """A server of PostgreSQL, as far as advisory locks go.

    A connection ends when its client closes it, when the client's process dies, whose kernel closes it, or when the
    kernel of its machine does not answer keepalives, which takes more than two hours with the defaults. The locks are
    in memory; the sequence of tokens is not.

    Args:
        keepalives_idle_s: `tcp_keepalives_idle`.

    Emits:
        LEASE whenever a lock has another holder, or is released.
    """

    def __init__(self, host: Host, keepalives_idle_s: int) -> None:
        self._host = host
        self._idle_ms = keepalives_idle_s * MS_PER_S
        content = host.disk.read(_SEQUENCE_FILE)
        self._table = AdvisoryLockTable(0 if content is None else json.loads(content))
        self._holders = LockHolders(host)
        config = RemotingServerConfig(server_channel_max_idle_time_seconds=_NEVER_S)
        self._server = RpcServer(host, config, on_channel_closed=self._on_closed)
        self._server.serve(self.handlers())
        self._watched: dict[Channel, None] = {}
        """Connections whose clients are asked when they are silent."""
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Serve until a shutdown is requested."""
        self._host.listen(LOCK_PORT, self._server)
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    def handlers(self) -> Handlers:
        """The three statements."""
        return {
            RequestCode.TRY_ADVISORY_LOCK: self._try_lock,
            RequestCode.ADVISORY_UNLOCK: self._unlock,
            RequestCode.SELECT_1: self._select,
        }

    def _try_lock(self, channel: Channel, request: Command) -> Command:
        header = decode_header(AdvisoryLockRequestHeader, request.ext_fields)
        if channel not in self._watched:
            self._watched[channel] = None
            self._host.start_soon(self._keep_alive, channel, name="keepalive")
        lock = self._table.try_lock(header.key, channel.id, header.holder)
        if lock is None:
            return request.answer(ResponseCode.NO_PERMISSION, f"another connection has the lock {header.key}")
        self._host.disk.write(_SEQUENCE_FILE, json.dumps(self._table.last_token).encode())
        self._holders.believe(header.key, lock.holder, lock.token)
        return success(request, AdvisoryLockHeader(lock.token))

    def _unlock(self, channel: Channel, request: Command) -> Command:
        header = decode_header(AdvisoryLockRequestHeader, request.ext_fields)
        if self._table.unlock(header.key, channel.id):
            self._holders.believe_free(header.key)
        return success(request)

    def _select(self, _channel: Channel, request: Command) -> Command:
        return success(request)

    def _on_closed(self, channel: Channel) -> None:
        self._watched.pop(channel, None)
        for key in self._table.end_connection(channel.id):
            self._holders.believe_free(key)

    async def _keep_alive(self, channel: Channel) -> None:
        """Ask the kernel of a silent client whether the connection is still there."""
        unanswered = 0
        while channel in self._watched:
            silent_ms = (self._host.clock.monotonic_ns() - channel.last_used_ns) // NS_PER_MS
            if silent_ms < self._idle_ms:
                unanswered = 0
                await self._host.sleep_ms(self._idle_ms - silent_ms)
                continue
            self._host.begin_cause("keepalive")
            unanswered = 0 if await self._kernel_answers(channel) else unanswered + 1
            await self._host.sleep_ms(KEEPALIVE_INTERVAL_MS if unanswered else self._idle_ms)
            if unanswered == KEEPALIVE_COUNT and channel in self._watched:
                self._host.log.warning("could not receive data from client: Connection timed out", id=channel.id)
                channel.close()
                self._on_closed(channel)

    async def _kernel_answers(self, channel: Channel) -> bool:
        ip = channel.remote_address.rpartition(":")[0]
        try:
            (await self._host.connect(f"{ip}:{_CLOSED_PORT}", self._server, _PROBE_TIMEOUT_MS)).close()
        except ConnectRefusedError:
            return True
        except ConnectError:
            return False
        return True
