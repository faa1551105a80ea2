"""Lock services whose leases end by themselves: one service, a blob store, and the nodes of Redlock."""

import json

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.config.client import LockServiceKind
from nodes.host import Channel, Host
from nodes.lease_service.lock_holders import LockHolders
from nodes.lease_service.tables.leases import BlobLeaseTable, Lease, LeaseTable
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_locks import (
    AcquireLeaseRequestHeader,
    LeaseHeader,
    ReleaseLeaseRequestHeader,
    RenewLeaseRequestHeader,
)
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.typed import success

LOCK_PORT = 2_379
_FILE = "leases.json"


class LeaseService:
    """Grants leases and decides by its own wall clock when they end: a jump of that clock ends them early or late.

    Args:
        kind: LEASE and BLOB store their leases on disk; a node of REDLOCK has them in memory, as Redis without an
            append-only file, and forgets them when its process ends.

    Emits:
        LEASE whenever a lease has another holder, or is released; not when one expires.
    """

    def __init__(self, host: Host, kind: LockServiceKind) -> None:
        self._host = host
        self._is_durable = kind is not LockServiceKind.REDLOCK
        table = BlobLeaseTable if kind is LockServiceKind.BLOB else LeaseTable
        self._table = _stored(table, host.disk.read(_FILE))
        self._holders = LockHolders(host)
        self._server = RpcServer(host)
        self._server.serve(self.handlers())
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Serve until a shutdown is requested."""
        for key, lease in self._table.leases.items():
            self._holders.believe(key, lease.holder, lease.token)
        self._host.listen(LOCK_PORT, self._server)
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    def handlers(self) -> Handlers:
        """The three requests."""
        return {
            RequestCode.ACQUIRE_LEASE: self._acquire,
            RequestCode.RENEW_LEASE: self._renew,
            RequestCode.RELEASE_LEASE: self._release,
        }

    def _acquire(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(AcquireLeaseRequestHeader, request.ext_fields)
        now_ms = self._host.clock.now_ms()
        return self._answer(
            request, header.key, self._table.acquire(header.key, header.holder, header.duration_ms, now_ms)
        )

    def _renew(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(RenewLeaseRequestHeader, request.ext_fields)
        now_ms = self._host.clock.now_ms()
        return self._answer(
            request, header.key, self._table.renew(header.key, header.token, header.duration_ms, now_ms)
        )

    def _release(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(ReleaseLeaseRequestHeader, request.ext_fields)
        if self._table.release(header.key, header.token):
            self._store()
            self._holders.believe_free(header.key)
        return success(request)

    def _answer(self, request: Command, key: str, lease: Lease | None) -> Command:
        if lease is None:
            held = self._table.leases.get(key)
            names = "nobody" if held is None else held.holder
            return request.answer(ResponseCode.NO_PERMISSION, f"the last holder of {key} is {names}")
        self._store()
        self._holders.believe(key, lease.holder, lease.token)
        return success(request, LeaseHeader(lease.token, lease.expires_ms))

    def _store(self) -> None:
        if self._is_durable:
            self._host.disk.write(_FILE, self._encode)

    def _encode(self) -> bytes:
        leases = {key: [lease.holder, lease.token, lease.expires_ms] for key, lease in self._table.leases.items()}
        return json.dumps({"last_token": self._table.last_token, "leases": leases}).encode()


def _stored(table: type[LeaseTable], content: bytes | None) -> LeaseTable:
    if content is None:
        return table()
    stored = json.loads(content)
    return table({key: Lease(*item) for key, item in stored["leases"].items()}, stored["last_token"])
