"""A lock service process: leases on request, kept on its disk."""

import json

import trio

from nodes.beliefs import Belief, BeliefKind, Json, Lifecycle, LifecycleEvent
from nodes.host import Channel, Host
from nodes.lease_service.tables.leases import Lease, LeaseTable
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_statefulset import (
    AcquireLeaseRequestHeader,
    LeaseHeader,
    ReleaseLeaseRequestHeader,
    RenewLeaseRequestHeader,
)
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.typed import success

LEASE_PORT = 2_379
_FILE = "leases.json"


class LeaseService:
    """Grants leases and decides by its own wall clock when they end: a jump of that clock ends them early or late.

    No one compares fencing tokens: brokers accept a commit from any sender.

    Emits:
        LEASE whenever a lease has another holder, or is released; not when one expires.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._table = _retained(host.disk.read(_FILE))
        self._believed: dict[str, Json] = {}
        self._server = RpcServer(host)
        self._server.serve(self.handlers())
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Serve until a shutdown is requested."""
        for key in self._table.leases:
            self._believe(key)
        self._host.listen(LEASE_PORT, self._server)
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
            self._changed(header.key)
        return success(request)

    def _answer(self, request: Command, key: str, lease: Lease | None) -> Command:
        if lease is None:
            held = self._table.leases.get(key)
            names = "nobody" if held is None else held.holder
            return request.answer(ResponseCode.NO_PERMISSION, f"the last holder of {key} is {names}")
        self._changed(key)
        return success(request, LeaseHeader(lease.token, lease.expires_ms))

    def _changed(self, key: str) -> None:
        self._host.disk.write(_FILE, self._encode)
        self._believe(key)

    def _encode(self) -> bytes:
        leases = {key: [lease.holder, lease.token, lease.expires_ms] for key, lease in self._table.leases.items()}
        return json.dumps({"last_token": self._table.last_token, "leases": leases}).encode()

    def _believe(self, key: str) -> None:
        lease = self._table.leases.get(key)
        value: Json = None if lease is None else {"holder": lease.holder, "token": lease.token}
        if self._believed.get(key) != value:
            self._believed[key] = value
            self._host.record(Belief(BeliefKind.LEASE, key, value))


def _retained(content: bytes | None) -> LeaseTable:
    if content is None:
        return LeaseTable()
    retained = json.loads(content)
    return LeaseTable({key: Lease(*item) for key, item in retained["leases"].items()}, retained["last_token"])
