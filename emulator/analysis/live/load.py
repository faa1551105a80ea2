"""The load of a run that is under way, second by second: lag, requests, sends that failed, messages.

The definitions are those of `lag` and `traffic`; only the moment of the question is another one. Rows of nodes come
one by one, frames in batches that are up to a second of wall time late.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from emulator.analysis.measures.lag import LagTotals
from emulator.analysis.measures.traffic import FAILED_SENDS, StormRequest, exchange_of, send_of, series_of
from emulator.history.presence import Presence
from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import RowFeed
from emulator.history.rows.reader import frame_counts
from emulator.history.rows.row_classes import maker
from emulator.trace.batches import Row
from emulator.trace.schema import COUNTS, MESSAGES, RPC, TraceTable
from nodes.beliefs import MessageEvent
from nodes.units import NS_PER_S

STORED = "messages stored"
"""Name of a series."""
LATE_S = 2
"""So many seconds after a second the frames of it are known."""
_EVENT, _T_NS = MESSAGES.index("event"), MESSAGES.index("t_ns")


@attrs.frozen
class SecondOfLoad:
    """What was counted in one second."""

    second: int
    """From the begin of the run."""
    counts: Mapping[str, int]
    """Mapping series -> how many; series without any are left out."""
    lag: Mapping[tuple[str, str], int]
    """Mapping (group, topic) -> the most messages that waited; without those for which none did."""
    busiest: StormRequest | None
    """What was asked most often without messages."""
    maximum: int
    """How often that was asked."""


class LiveLoad:
    """Counts the load of each second; what was taken is forgotten.

    Args:
        broker_names: mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name.
    """

    def __init__(self, broker_names: Mapping[str, str]) -> None:
        presence = Presence(broker_names)
        self._progress = GroupProgress(presence)
        self._lag = LagTotals(self._progress)
        self._feed = RowFeed((presence, self._progress, self._lag))
        self._makers = {table: maker(table) for table in self._feed.tables}
        self._counts: dict[int, Counter[str]] = {}
        self._overhead: dict[int, Counter[StormRequest]] = {}
        self._next = 0
        """The first second that was not taken."""

    def note(self, table: TraceTable, row: Row) -> None:
        """Read the next row of a table of nodes; rows of all tables come in order."""
        if table is MESSAGES and row[_EVENT] == MessageEvent.STORED:
            self._count(int(row[_T_NS]) // NS_PER_S, STORED, 1)
        if table in self._makers:
            self._reach(int(row[_T_NS]))
            for _ in self._feed.read((self._makers[table](row),)):
                pass  # it was settled above

    def take_frames(self, table: TraceTable, rows: Sequence[Row]) -> None:
        """Read a batch of frames, or of their counts; rows of other tables are left out."""
        for frame_count in frame_counts(table, rows) if table in (RPC, COUNTS) else ():
            exchange, sent = exchange_of(frame_count), send_of(frame_count)
            if exchange is not None:
                self._count(frame_count.second, series_of(exchange), frame_count.frames)
                if exchange.overhead and frame_count.second >= self._next:
                    self._overhead.setdefault(frame_count.second, Counter())[exchange] += frame_count.frames
            if sent is not None and sent.failed:
                self._count(frame_count.second, FAILED_SENDS, frame_count.frames)

    def take(self, now_ns: int) -> list[SecondOfLoad]:
        """The seconds that are over, and of which the frames are known; each is reported once."""
        self._reach(now_ns)
        end = max(self._next, now_ns // NS_PER_S - LATE_S)
        found = [self._second(second) for second in range(self._next, end)]
        self._next = end
        return found

    def _reach(self, t_ns: int) -> None:
        for _ in self._feed.reach(t_ns):
            self._progress.forget()  # stalls are not asked for

    def _count(self, second: int, series: str, number: int) -> None:
        if second >= self._next:
            self._counts.setdefault(second, Counter())[series] += number

    def _second(self, second: int) -> SecondOfLoad:
        counts = self._counts.pop(second, Counter())
        overhead = self._overhead.pop(second, None)
        ((busiest, maximum),) = overhead.most_common(1) if overhead else ((None, 0),)
        lag = {(group, topic): waiting for group, topic, waiting in self._lag.take(second) if waiting}
        return SecondOfLoad(second, counts, lag, busiest, maximum)
