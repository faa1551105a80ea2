"""Stores of consumer offsets: in memory, and at brokers or in a file of the client."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from nodes.client.exclusivity.queue_exclusivity import QueueExclusivity
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.tables.offset_table import OffsetTable
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.errors import RemotingConnectError, RemotingError
from nodes.rpc.typed import invoke, invoke_oneway, succeeded

_QUERY_TIMEOUT_MS = 5_000


class OffsetStore(Protocol):
    """Stores the offsets of a group.

    Mirrors:
        `org.apache.rocketmq.client.consumer.store.OffsetStore`.
    """

    memory: OffsetTable

    async def read_from_store(self, queue: MessageQueue) -> int | None:
        """Read the stored offset into memory, unless the one there is frozen; None if there is none.

        Raises:
            RemotingError, BrokerError: it could not be read.
        """

    def persist(self, queue: MessageQueue) -> None:
        """Persist the offset of one queue."""

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Persist the offsets of the queues in the process queue table."""


class RemoteBrokerOffsetStore:
    """Reads from and commits to brokers; a commit is oneway and never confirmed.

    Mirrors:
        `org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore`.
    """

    def __init__(self, instance: ClientInstance, group: str, exclusivity: QueueExclusivity | None = None) -> None:
        self._instance = instance
        self._group = group
        self._exclusivity = exclusivity
        self.memory = OffsetTable()

    async def read_from_store(self, queue: MessageQueue) -> int | None:
        """Read the broker's offset of the group into memory, unless the one there is frozen.

        So the next commit repeats the broker's own offset, even if nothing was consumed.

        Returns:
            The offset; None if the broker has none.

        Raises:
            RemotingError: no answer.
            BrokerError: another error than "not found".
        """
        address = await self._address_for_query(queue)
        header = headers.QueryConsumerOffsetRequestHeader(
            self._group, queue.topic, queue.queue_id, bname=queue.broker_name
        )
        answer = await invoke(
            self._instance.rpc, address, RequestCode.QUERY_CONSUMER_OFFSET, header, timeout_ms=_QUERY_TIMEOUT_MS
        )
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        offset = _offset(answer)
        self.memory.update(queue, offset, increase_only=False)
        return offset

    def persist(self, queue: MessageQueue) -> None:
        """Commit the offset of one queue."""
        if queue in self.memory:
            self._commit(queue, self.memory.read(queue))

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Commit the offsets of the queues in the process queue table; other offsets are removed uncommitted."""
        for queue, offset in self.memory.take_for_persist_all(queues):
            self._commit(queue, offset)

    def _commit(self, queue: MessageQueue, offset: int) -> None:
        if not self._send_commit(queue, offset):
            self._instance.host.start_soon(self._commit_by_new_route, queue, offset, name="updateConsumeOffsetToBroker")

    async def _commit_by_new_route(self, queue: MessageQueue, offset: int) -> None:
        # RocketMQ's thread waits for the route; ours continues with the next queue.
        try:
            await self._instance.update_topic_route(queue.topic)
        except RemotingError as error:
            self._instance.host.log.warning("updateConsumeOffsetToBroker failed", queue=str(queue), error=str(error))
            return
        self._send_commit(queue, offset)

    def _send_commit(self, queue: MessageQueue, offset: int) -> bool:
        """Send a commit; False if the broker's address is unknown."""
        routes = self._instance.routes
        found = routes.find_broker_address_in_subscribe(routes.broker_name_of(queue), MASTER_ID)
        if found is None:
            return False
        token = None if self._exclusivity is None else self._exclusivity.fencing_token(queue)
        header = headers.UpdateConsumerOffsetRequestHeader(
            self._group, queue.topic, queue.queue_id, offset, queue.broker_name, fencing_token=token
        )
        invoke_oneway(self._instance.rpc, found.address, RequestCode.UPDATE_CONSUMER_OFFSET, header)
        return True

    async def _address_for_query(self, queue: MessageQueue) -> str:
        routes = self._instance.routes
        name = routes.broker_name_of(queue)
        found = routes.find_broker_address_in_subscribe(name, MASTER_ID, only_this_broker=True)
        if found is None:
            await self._instance.update_topic_route(queue.topic)
            found = routes.find_broker_address_in_subscribe(routes.broker_name_of(queue), MASTER_ID)
        if found is None:
            raise RemotingConnectError(f"no broker {queue.broker_name} is known")
        return found.address


def _offset(answer: Command) -> int:
    return decode_header(headers.OffsetResponseHeader, succeeded(answer).ext_fields).offset


_ENTRY = re.compile(r"(\{[^{}]*\})\s*:\s*(-?\d+)")


class LocalFileOffsetStore:
    """Reads and writes the whole file each time; implements `nodes.client.offsets.offset_store.OffsetStore`.

    The file is named after client id and group: consumers with the same ones on the same machine share it.

    Mirrors:
        `org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore`.
    """

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._disk = instance.host.disk
        self.path = f".rocketmq_offsets/{instance.client_id}/{group}/offsets.json"
        self.memory = OffsetTable()

    def load(self) -> None:
        """Read the file of an earlier process."""
        for queue, offset in self._read().items():
            self.memory.update(queue, offset, increase_only=False)

    async def read_from_store(self, queue: MessageQueue) -> int | None:
        """Read the offset in the file into memory, unless the one there is frozen; None if there is none."""
        offset = self._read().get(queue)
        if offset is not None:
            self.memory.update(queue, offset, increase_only=False)
        return offset

    def persist(self, queue: MessageQueue) -> None:
        """Write the offset of one queue; others in the file stay as they are."""
        if queue in self.memory:
            self._write({**self._read(), queue: self.memory.read(queue)})

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Write the offsets of some queues; others stay as they are, in memory and in the file."""
        owned = dict.fromkeys(queues)
        if owned:
            known = {queue: offset for queue, offset in self.memory.offsets.items() if queue in owned}
            self._write({**self._read(), **known})

    def _read(self) -> dict[MessageQueue, int]:
        content = self._disk.read(self.path)
        return {} if content is None else decode_offsets(content)

    def _write(self, offsets: Mapping[MessageQueue, int]) -> None:
        self._disk.write(self.path, encode_offsets(offsets))


def encode_offsets(offsets: Mapping[MessageQueue, int]) -> bytes:
    """The content of the file: not standard JSON, because its keys are objects.

    Args:
        offsets: queue -> offset; written in the order of the queues (in RocketMQ: of their hashes).
    """
    entries = ",".join(f"{_key(queue)}:{offsets[queue]}" for queue in sorted(offsets))
    return f'{{\n\t"offsetTable":{{{entries}\n\t}}\n}}'.encode()


def decode_offsets(content: bytes) -> dict[MessageQueue, int]:
    """The offsets in a file: queue -> offset; empty for a malformed file."""
    found: dict[MessageQueue, int] = {}
    for key, offset in _ENTRY.findall(content.decode()):
        queue = json.loads(key)
        found[MessageQueue(queue["topic"], queue["brokerName"], queue["queueId"])] = int(offset)
    return found


def _key(queue: MessageQueue) -> str:
    fields = {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}
    lines = ",\n".join(f"\t\t\t{json.dumps(name)}:{json.dumps(value)}" for name, value in fields.items())
    return f"{{\n{lines}\n\t\t}}"
