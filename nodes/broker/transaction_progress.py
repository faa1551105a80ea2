"""How far a check of half messages has come: what ended them, and what of that is dealt with."""

import attrs

from nodes.broker.message_store import GetMessageStatus, MessageStore
from nodes.broker.transaction_messages import OP_TOPIC, ended_offsets
from nodes.protocol.model import Message

_OP_MSG_PULL_NUMS = 32
NO_NEW_MESSAGE = (GetMessageStatus.NO_MESSAGE_IN_QUEUE, GetMessageStatus.OFFSET_OVERFLOW_ONE)
"""What a pull at the end of a queue says."""


@attrs.define
class EndedHalfMessages:
    """The ends that were read so far.

    Args:
        store: where they are.
        op_offset: of the first op message that is not dealt with.
        half_offset: of the first half message that is not dealt with; those before it do not matter any more.

    Mirrors:
        `TransactionalMessageServiceImpl#fillOpRemoveMap`, `#calculateOpOffset`.
    """

    store: MessageStore
    op_offset: int
    half_offset: int
    found: tuple[Message, ...] = ()
    """Op messages of the last read; none: there were no more."""
    _next_begin_offset: int = attrs.field(init=False)
    _ended_by: dict[int, int] = attrs.field(init=False, factory=dict)
    """Half offset -> op offset."""
    _open: dict[int, dict[int, None]] = attrs.field(init=False, factory=dict)
    """Op offset -> half offsets that were not come to yet."""
    _done: list[int] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._next_begin_offset = self.op_offset

    def read_more(self) -> int | None:
        """Read on; returns the offset to correct the progress to, where the one that was noted cannot be."""
        result = self.store.get_message(OP_TOPIC, 0, self._next_begin_offset, _OP_MSG_PULL_NUMS)
        self._next_begin_offset = result.next_begin_offset
        self.found = result.messages
        for op in result.messages:
            self._take_in(op)
        if result.status is GetMessageStatus.FOUND or result.status in NO_NEW_MESSAGE:
            return None
        return result.next_begin_offset

    def take(self, half_offset: int) -> bool:
        """Whether a half message has ended; it is dealt with then."""
        op_offset = self._ended_by.pop(half_offset, None)
        if op_offset is None:
            return False
        waiting = self._open[op_offset]
        del waiting[half_offset]
        if not waiting:
            del self._open[op_offset]
            self._done.append(op_offset)
        return True

    @property
    def new_op_offset(self) -> int:
        """Of the first op message that is not dealt with now."""
        offset = self.op_offset
        for done in sorted(self._done):
            if done != offset:
                break
            offset += 1
        return offset

    def _take_in(self, op: Message) -> None:
        named = [offset for offset in ended_offsets(op) if offset >= self.half_offset]
        for offset in named:
            self._ended_by[offset] = op.queue_offset
        if named:
            self._open[op.queue_offset] = dict.fromkeys(named)
        else:
            self._done.append(op.queue_offset)
