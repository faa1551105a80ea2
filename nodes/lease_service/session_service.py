"""An ensemble of ZooKeeper in one process: sessions, and the ephemeral nodes that stand for locks."""

import json

import attrs
import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.host import Channel, Host
from nodes.lease_service.lease_service import LOCK_PORT
from nodes.lease_service.lock_holders import LockHolders
from nodes.lease_service.tables.sessions import EphemeralNode, SessionTable
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_locks import (
    NodeHeader,
    NodeRequestHeader,
    OpenSessionRequestHeader,
    SessionHeader,
    SessionIdHeader,
)
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.typed import success
from nodes.threads import ScheduledThread
from nodes.units import NS_PER_MS

TICK_TIME_MS = 2_000
_FILE = "sessions.json"


class SessionService:
    """The leader of an ensemble; its followers are not emulated, so its death is that of the ensemble.

    Time is that of a clock that never jumps. Sessions and nodes survive the process, and get their whole time-out again
    when it starts, as after an election. While the process is suspended no session expires, and all get time to be
    heard again, because the ticks of the tracker come late, too.

    Emits:
        LEASE whenever a node is created, or is gone.

    Mirrors:
        `org.apache.zookeeper.server.quorum.LeaderZooKeeperServer`.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._table = self._stored(host.disk.read(_FILE))
        self._holders = LockHolders(host)
        self._server = RpcServer(host)
        self._server.serve(self.handlers())
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Serve until a shutdown is requested."""
        for path, node in self._table.nodes.items():
            self._holders.believe(path, self._table.sessions[node.session_id].holder, node.czxid)
        self._host.listen(LOCK_PORT, self._server)
        tracker = ScheduledThread(self._host, "SessionTracker")
        tracker.with_fixed_delay("expire", self._expire, TICK_TIME_MS, TICK_TIME_MS)
        tracker.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    def handlers(self) -> Handlers:
        """The five requests."""
        return {
            RequestCode.OPEN_SESSION: self._open,
            RequestCode.PING_SESSION: self._ping,
            RequestCode.CREATE_NODE: self._create,
            RequestCode.DELETE_NODE: self._delete,
            RequestCode.CLOSE_SESSION: self._close,
        }

    async def _expire(self) -> None:
        for session_id in self._table.expired(self._now_ms()):
            self._host.log.warning("a session has expired", session=session_id)
            self._end(session_id)

    def _open(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(OpenSessionRequestHeader, request.ext_fields)
        session_id = self._table.open(header.holder, header.timeout_ms, self._now_ms())
        self._store()
        return success(request, SessionHeader(session_id, self._table.sessions[session_id].timeout_ms))

    def _ping(self, _channel: Channel, request: Command) -> Command:
        session_id = decode_header(SessionIdHeader, request.ext_fields).session_id
        return success(request) if self._table.touch(session_id, self._now_ms()) else _expired(request, session_id)

    def _create(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(NodeRequestHeader, request.ext_fields)
        if not self._table.touch(header.session_id, self._now_ms()):
            return _expired(request, header.session_id)
        node = self._table.create(header.session_id, header.path)
        if node is None:
            return request.answer(ResponseCode.NO_PERMISSION, f"node exists: {header.path}")
        self._store()
        self._holders.believe(header.path, self._table.sessions[header.session_id].holder, node.czxid)
        return success(request, NodeHeader(node.czxid))

    def _delete(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(NodeRequestHeader, request.ext_fields)
        if self._table.delete(header.session_id, header.path):
            self._store()
            self._holders.believe_free(header.path)
        return success(request)

    def _close(self, _channel: Channel, request: Command) -> Command:
        self._end(decode_header(SessionIdHeader, request.ext_fields).session_id)
        return success(request)

    def _end(self, session_id: int) -> None:
        for path in self._table.close(session_id):
            self._holders.believe_free(path)
        self._store()

    def _store(self) -> None:
        self._host.disk.write(_FILE, self._encode)

    def _encode(self) -> bytes:
        table = self._table
        sessions = {number: [session.holder, session.timeout_ms] for number, session in table.sessions.items()}
        nodes = {path: list(attrs.astuple(node)) for path, node in table.nodes.items()}
        return json.dumps({"last_zxid": table.last_zxid, "sessions": sessions, "nodes": nodes}).encode()

    def _stored(self, content: bytes | None) -> SessionTable:
        if content is None:
            return SessionTable(TICK_TIME_MS, self._now_ms())
        stored = json.loads(content)
        sessions = {int(number): (holder, timeout_ms) for number, (holder, timeout_ms) in stored["sessions"].items()}
        nodes = {path: EphemeralNode(*item) for path, item in stored["nodes"].items()}
        return SessionTable(TICK_TIME_MS, self._now_ms(), sessions, nodes, stored["last_zxid"])

    def _now_ms(self) -> int:
        return self._host.clock.monotonic_ns() // NS_PER_MS


def _expired(request: Command, session_id: int) -> Command:
    return request.answer(ResponseCode.QUERY_NOT_FOUND, f"session {session_id} has expired")
