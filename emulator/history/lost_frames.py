"""Lost frames: which frames between two nodes did not arrive, when, and which fault took them."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, ClassVar

import attrs

from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import LostFrame
from emulator.trace.schema import RPC, TraceTable

_SENT_NS = attrgetter("sent_ns")
RESPONSE, DROPPED = "response", "dropped"


@attrs.define(eq=False)
class _Link:
    frames: list[LostFrame] = attrs.Factory(list)
    is_sorted: bool = True


class LostFrames(Watcher):
    """Collects frames that did not arrive, by the two nodes between which they were.

    Args:
        node_of: the node of an address.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, node_of: Callable[[str], str]) -> None:
        self._node_of = node_of
        self._pairs: dict[tuple[str, str], _Link] = {}

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads the frames that did not arrive."""
        return {RPC: self._read}

    def between(self, src: str, dst: str, start_ns: int, end_ns: int) -> Iterator[LostFrame]:
        """Frames from one node to another that were sent in a time, in order; of calls that timed out, their requests.

        Args:
            src: who sent.
            dst: for whom they were.
            start_ns: the first instant.
            end_ns: the last one.
        """
        pair = self._pairs.get((src, dst))
        if pair is None:
            return
        if not pair.is_sorted:
            pair.frames.sort(key=_SENT_NS)
            pair.is_sorted = True
        frames = pair.frames
        first = bisect_left(frames, start_ns, key=_SENT_NS)
        yield from frames[first : bisect_right(frames, end_ns, key=_SENT_NS)]

    def _read(self, row: LostFrame) -> None:
        pair = self._pairs.setdefault((row.src, self._node_of(row.dst)), _Link())
        pair.is_sorted = pair.is_sorted and (not pair.frames or pair.frames[-1].sent_ns <= row.sent_ns)
        pair.frames.append(row)
