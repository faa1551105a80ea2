"""The store of a lock client that counts record versions: conditional writes, and no clock."""

import json

import attrs
import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.host import Channel, Host
from nodes.lease_service.lease_service import LOCK_PORT
from nodes.lease_service.lock_holders import LockHolders
from nodes.lease_service.tables.items import ItemTable, LockItem
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_locks import ItemHeader, ItemKeyHeader, PutItemRequestHeader
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.typed import success

_FILE = "items.json"


class ItemStore:
    """A table of DynamoDB, as far as a lock client uses it; it survives its process.

    Emits:
        LEASE whenever an item has another owner, or is released.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        content = host.disk.read(_FILE)
        stored = {} if content is None else json.loads(content)
        self._table = ItemTable({key: LockItem(*item) for key, item in stored.items()})
        self._holders = LockHolders(host)
        self._server = RpcServer(host)
        self._server.serve(self.handlers())
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Serve until a shutdown is requested."""
        for key, item in self._table.items.items():
            self._believe(key, item)
        self._host.listen(LOCK_PORT, self._server)
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    def handlers(self) -> Handlers:
        """The two requests."""
        return {
            RequestCode.GET_ITEM: self._get,
            RequestCode.PUT_ITEM: self._put,
        }

    def _get(self, _channel: Channel, request: Command) -> Command:
        key = decode_header(ItemKeyHeader, request.ext_fields).key
        found = self._table.items.get(key)
        if found is None:
            return request.answer(ResponseCode.QUERY_NOT_FOUND, f"there is no item {key}")
        return success(request, ItemHeader(found.owner, found.record_version, found.lease_duration_ms, found.token))

    def _put(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(PutItemRequestHeader, request.ext_fields)
        item = LockItem(header.owner, header.record_version, header.lease_duration_ms, header.token)
        if not self._table.put(header.key, item, header.expected_version):
            return request.answer(ResponseCode.NO_PERMISSION, "The conditional request failed")
        self._store()
        self._believe(header.key, item)
        return success(request)

    def _believe(self, key: str, item: LockItem) -> None:
        if item.owner:
            self._holders.believe(key, item.owner, item.token)
        else:
            self._holders.believe_free(key)

    def _store(self) -> None:
        self._host.disk.write(_FILE, self._encode)

    def _encode(self) -> bytes:
        return json.dumps({key: list(attrs.astuple(item)) for key, item in self._table.items.items()}).encode()
