"""What orderly pops have handed out: a queue gives nothing more until all of it is acknowledged or visible again.

Nothing of it reaches other brokers: one that takes over hands a queue out at once.

Mirrors:
    `org.apache.rocketmq.broker.offset.ConsumerOrderInfoManager`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from nodes.protocol.extra_info import queue_id_order_count_info, queue_offset_order_count_info
from nodes.protocol.json_text import from_json, to_json
from nodes.values import frozen

CLEAN_SPAN_FROM_LAST_MS = 24 * 3600 * 1000
ILLEGAL_OFFSET = -1
NOTHING_TO_COMMIT = -2
_SEPARATOR = "@"


@frozen
class OrderInfo:
    """One batch of one queue."""

    pop_time_ms: int
    invisible_time_ms: int
    offsets: tuple[int, ...]
    last_consume_ms: int
    commit_offset_bit: int = 0
    """A bit for each message that is acknowledged, in the order of the batch."""
    attempt_id: str | None = None
    """Names the request; the same one again is a repetition."""
    next_visible_ms: Mapping[int, int] | None = None
    """Offset -> when the message may be popped again, if not after the invisible time."""
    consumed_counts: Mapping[int, int] | None = None
    """Offset -> how often it was popped before, if at all."""

    def is_not_ack(self, index: int) -> bool:
        """Whether the message at a place of the batch is not acknowledged."""
        return self.commit_offset_bit >> index & 1 == 0

    def need_block(self, attempt_id: str | None, now_ms: int) -> bool:
        """Whether a message is neither acknowledged nor visible, unless the same request asks again."""
        if self.attempt_id is not None and self.attempt_id == attempt_id:
            return False
        return any(now_ms < self._visible_ms(offset) for offset in self._unacked())

    def lock_free_ms(self, now_ms: int) -> int | None:
        """Until when the first message that is invisible keeps the queue; now if none does, None: no one knows."""
        for offset in self._unacked():
            if self.invisible_time_ms <= 0:
                return None
            if now_ms < self._visible_ms(offset):
                return self._visible_ms(offset)
        return now_ms

    def next_offset(self) -> int:
        """The first offset that is not acknowledged, or the one behind the batch."""
        return next(iter(self._unacked()), self.offsets[-1] + 1)

    def _unacked(self) -> tuple[int, ...]:
        return tuple(offset for index, offset in enumerate(self.offsets) if self.is_not_ack(index))

    def _visible_ms(self, offset: int) -> int:
        return (self.next_visible_ms or {}).get(offset, self.pop_time_ms + self.invisible_time_ms)


class ConsumerOrderInfoManager:
    """The batches of one broker."""

    def __init__(self) -> None:
        self._table: dict[str, dict[int, OrderInfo]] = {}

    @property
    def table(self) -> Mapping[str, Mapping[int, OrderInfo]]:
        """`topic@group` -> queue id -> batch."""
        return self._table

    def info(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        """The batch of a queue."""
        return self._table.get(_key(topic, group), {}).get(queue_id)

    def update(
        self,
        attempt_id: str | None,
        topic: str,
        group: str,
        queue_id: int,
        *,
        pop_time_ms: int,
        invisible_time_ms: int,
        offsets: Sequence[int],
        now_ms: int,
    ) -> tuple[str, ...]:
        """Note a batch; it replaces the one before.

        Returns:
            Entries of `orderCountInfo`: how often each message was popped before, if it was, by offset; at last the
            smallest of these counts.
        """
        before = self.info(topic, group, queue_id)
        batch = tuple(offsets)
        counts = None if before is None else _counts(before, attempt_id, batch)
        made = OrderInfo(pop_time_ms, invisible_time_ms, batch, now_ms, 0, attempt_id, None, counts)
        self._table.setdefault(_key(topic, group), {})[queue_id] = made
        counted = sorted((counts or {}).items())
        minimum = min((count for _, count in counted), default=0) if len(counted) == len(batch) else 0
        listed = (queue_offset_order_count_info(topic, queue_id, offset, count) for offset, count in counted)
        return (*listed, queue_id_order_count_info(topic, queue_id, minimum))

    def check_block(
        self, attempt_id: str | None, topic: str, group: str, queue_id: int, *, invisible_time_ms: int, now_ms: int
    ) -> bool:
        """Whether a queue gives nothing now.

        Args:
            invisible_time_ms: of the request; from now on that of the batch, too, if it has none.
        """
        queues = self._table.setdefault(_key(topic, group), {})
        found = queues.get(queue_id)
        if found is None or (found.attempt_id is not None and found.attempt_id == attempt_id):
            return False
        if found.invisible_time_ms <= 0:
            found = queues[queue_id] = attrs.evolve(found, invisible_time_ms=invisible_time_ms)
        return found.need_block(attempt_id, now_ms)

    def clear_block(self, topic: str, group: str, queue_id: int) -> None:
        """Forget the batch of a queue."""
        self._table.get(_key(topic, group), {}).pop(queue_id, None)

    def commit_and_next(self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time_ms: int) -> int:
        """Acknowledge a message.

        Returns:
            The offset to commit; -1: the batch has no such message; -2: the batch is another one.
        """
        found = self.info(topic, group, queue_id)
        if found is None:
            return queue_offset + 1
        if pop_time_ms != found.pop_time_ms:
            return NOTHING_TO_COMMIT
        if queue_offset not in found.offsets:
            return ILLEGAL_OFFSET
        # A batch has 32 messages at most; behind 64, Java begins with the first bit again.
        bit = 1 << found.offsets.index(queue_offset) % 64
        acked = attrs.evolve(found, commit_offset_bit=found.commit_offset_bit | bit)
        self._table[_key(topic, group)][queue_id] = acked
        return acked.next_offset()

    def update_next_visible_time(
        self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time_ms: int, next_visible_ms: int
    ) -> None:
        """Say when a message may be popped again; nothing happens if the batch is another one."""
        found = self.info(topic, group, queue_id)
        if found is not None and found.pop_time_ms == pop_time_ms:
            visible = {**(found.next_visible_ms or {}), queue_offset: next_visible_ms}
            self._table[_key(topic, group)][queue_id] = attrs.evolve(found, next_visible_ms=visible)

    def auto_clean(
        self, read_queue_nums: Callable[[str], int | None], group_exists: Callable[[str], bool], now_ms: int
    ) -> None:
        """Forget topics, groups and queues that do not exist, and queues that no one popped for a day.

        Args:
            read_queue_nums: queues of a topic, None if there is no such topic.
        """
        for key in list(self._table):
            named = key.split(_SEPARATOR)
            if len(named) != 2:
                continue
            queue_count = read_queue_nums(named[0])
            if queue_count is None or not group_exists(named[1]) or not self._table[key]:
                del self._table[key]
                continue
            self._table[key] = {
                queue_id: found
                for queue_id, found in self._table[key].items()
                if queue_id < queue_count and now_ms - found.last_consume_ms <= CLEAN_SPAN_FROM_LAST_MS
            }

    def encode(self) -> str:
        """The file `consumerOrderInfo.json`; `auto_clean` goes before."""
        table = {
            key: {queue: _fields(found) for queue, found in sorted(queues.items())}
            for key, queues in self._table.items()
        }
        return to_json({"table": table})

    def decode(self, text: str) -> None:
        """Read the file.

        Raises:
            ValueError: it is no JSON.
        """
        table = from_json(text)["table"]
        self._table = {
            key: {int(queue_id): _order_info(found) for queue_id, found in queues.items()}
            for key, queues in table.items()
        }


def _counts(before: OrderInfo, attempt_id: str | None, offsets: tuple[int, ...]) -> Mapping[int, int]:
    counted = before.consumed_counts or {}
    if before.attempt_id is not None and before.attempt_id == attempt_id:
        return counted
    return {offset: counted.get(offset, 0) + 1 for offset in offsets if offset in before.offsets}


def _fields(found: OrderInfo) -> dict[str, Any]:
    first, *others = found.offsets
    fields = {
        "a": found.attempt_id,
        "cm": found.commit_offset_bit,
        "i": found.invisible_time_ms,
        "l": found.last_consume_ms,
        "o": [first, *(offset - first for offset in others)],
        "oc": found.consumed_counts,
        "ot": found.next_visible_ms,
        "popTime": found.pop_time_ms,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _order_info(read: Mapping[str, Any]) -> OrderInfo:
    first, *others = read["o"]
    return OrderInfo(
        pop_time_ms=read["popTime"],
        invisible_time_ms=read["i"],
        offsets=(first, *(first + distance for distance in others)),
        last_consume_ms=read["l"],
        commit_offset_bit=read["cm"],
        attempt_id=read.get("a"),
        next_visible_ms=_by_offset(read.get("ot")),
        consumed_counts=_by_offset(read.get("oc")),
    )


def _by_offset(read: Mapping[str, int] | None) -> Mapping[int, int] | None:
    return None if read is None else {int(offset): value for offset, value in read.items()}


def _key(topic: str, group: str) -> str:
    return f"{topic}{_SEPARATOR}{group}"
