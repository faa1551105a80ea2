"""Pictures of allocations before and after a change of members, as in proposals for a strategy."""

from collections.abc import Iterator, Mapping
from itertools import cycle

import attrs

from emulator.analysis.rendering.palette import OWNER_COLOURS
from emulator.notebook.html import ALARM, VerbOutput, block, chip, table, text
from nodes.protocol.java import java_sorted
from nodes.protocol.model import MessageQueue

Allocation = Mapping[MessageQueue, str]
"""Queue -> its member."""
_MOVED = "*"
_BEFORE, _AFTER = "before", "after"


@attrs.frozen
class AllocationChange:
    """What a strategy makes of the queues of a topic when members come or go."""

    strategy: str
    """A name, for people."""
    before: Allocation
    after: Allocation

    def members(self) -> tuple[str, ...]:
        """All that are members before or after, in order."""
        return tuple(java_sorted(dict.fromkeys((*self.before.values(), *self.after.values()))))

    def moved_without_need(self) -> tuple[MessageQueue, ...]:
        """The queues that have another member, although the one before is still there."""
        remaining = dict.fromkeys(self.after.values())
        return tuple(
            queue
            for queue, member in self.before.items()
            if member in remaining and self.after.get(queue, member) != member
        )


def allocation_pictures(*changes: AllocationChange) -> VerbOutput:
    """The members with their queues, before and after, for each strategy.

    A queue keeps the colour of the member that had it before. One that moved although that member stayed is marked.
    """
    lines = tuple(line for change in changes for line in _lines(change))
    note = f"{_MOVED} moved, although its member stayed"
    return VerbOutput((*lines, note), block(*map(_html, changes), text(note, "opacity:.6")))


def _lines(change: AllocationChange) -> Iterator[str]:
    yield change.strategy
    marked = dict.fromkeys(change.moved_without_need())
    width = max(map(len, change.members()), default=0)
    for when, allocation in ((_BEFORE, change.before), (_AFTER, change.after)):
        for member in _members_of(allocation):
            queues = " ".join(_name(queue, marked if when == _AFTER else {}) for queue in _queues(allocation, member))
            yield f"  {when:<6}  {member:<{width}}  {queues}"


def _html(change: AllocationChange) -> str:
    colours = dict(zip(change.members(), cycle(OWNER_COLOURS), strict=False))
    marked = dict.fromkeys(change.moved_without_need())

    def cell(allocation: Allocation, member: str, moved: Mapping[MessageQueue, None]) -> str:
        if member not in allocation.values():
            return text("none", "opacity:.6")
        return "".join(
            chip(_name(queue, moved), colours[change.before.get(queue, member)], f"{queue}: {member}")
            for queue in _queues(allocation, member)
        )

    rows = [
        (text(member), cell(change.before, member, {}), cell(change.after, member, marked))
        for member in change.members()
    ]
    moved = f"{len(marked)} moved without need"
    title = text(change.strategy, "font-weight:600") + text(f"  {moved}", f"color:{ALARM}" if marked else "opacity:.6")
    return block(title, table(("", _BEFORE, _AFTER), rows))


def _members_of(allocation: Allocation) -> list[str]:
    return java_sorted(dict.fromkeys(allocation.values()))


def _queues(allocation: Allocation, member: str) -> list[MessageQueue]:
    return sorted(queue for queue, owner in allocation.items() if owner == member)


def _name(queue: MessageQueue, marked: Mapping[MessageQueue, None]) -> str:
    return f"{_MOVED if queue in marked else ''}Q{queue.queue_id}"
