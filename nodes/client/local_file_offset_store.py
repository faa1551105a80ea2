"""The offsets of a broadcasting consumer: in memory, and in a file of its own machine."""

import json
import re
from collections.abc import Iterable, Mapping

from nodes.client.instance import ClientInstance
from nodes.client.offset_table import OffsetTable
from nodes.protocol.model import MessageQueue

_ENTRY = re.compile(r"(\{[^{}]*\})\s*:\s*(-?\d+)")


class LocalFileOffsetStore:
    """Reads and writes the whole file each time; implements `nodes.client.offset_store.OffsetStore`.

    The file is named after client id and group: whoever has the same ones on the same machine shares it.

    Mirrors:
        `org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore`.
    """

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._disk = instance.host.disk
        self.path = f".rocketmq_offsets/{instance.client_id}/{group}/offsets.json"
        self.memory = OffsetTable()

    def load(self) -> None:
        """Take over what an earlier process has left."""
        for queue, offset in self._read().items():
            self.memory.update(queue, offset, increase_only=False)

    async def read_from_store(self, queue: MessageQueue) -> int | None:
        """The offset in the file, which memory holds from now on unless it is frozen; None where there is none."""
        offset = self._read().get(queue)
        if offset is not None:
            self.memory.update(queue, offset, increase_only=False)
        return offset

    def persist(self, queue: MessageQueue) -> None:
        """Write what memory holds for one queue beside what the file holds of others."""
        if queue in self.memory:
            self._write({**self._read(), queue: self.memory.read(queue)})

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Write what memory holds of some queues; others stay in memory, and in the file as they are."""
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
    """The content of the file: no standard JSON, for its keys are objects.

    Args:
        offsets: queue -> offset; written in the order of the queues, RocketMQ's is that of their hashes.
    """
    entries = ",".join(f"{_key(queue)}:{offsets[queue]}" for queue in sorted(offsets))
    return f'{{\n\t"offsetTable":{{{entries}\n\t}}\n}}'.encode()


def decode_offsets(content: bytes) -> dict[MessageQueue, int]:
    """The offsets in a file: queue -> offset; a text that is none has none."""
    found: dict[MessageQueue, int] = {}
    for key, offset in _ENTRY.findall(content.decode()):
        queue = json.loads(key)
        found[MessageQueue(queue["topic"], queue["brokerName"], queue["queueId"])] = int(offset)
    return found


def _key(queue: MessageQueue) -> str:
    fields = {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}
    lines = ",\n".join(f"\t\t\t{json.dumps(name)}:{json.dumps(value)}" for name, value in fields.items())
    return f"{{\n{lines}\n\t\t}}"
