"""Request storms of a run that is under way, in the rows as they are written; the definition is that of `traffic`."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

import attrs

from emulator.analysis.measures.traffic import WINDOW_S, HeldQueues, StormRequest, exchange_of
from emulator.history.rows.reader import frame_counts
from emulator.history.rows.row_classes import maker
from emulator.trace.batches import Row
from emulator.trace.schema import COUNTS, OWNERSHIP, RPC, TraceTable

_QUIET_S = 3
"""A storm has ended when so many seconds were below its limit."""
_held_queue = maker(OWNERSHIP)


@attrs.frozen
class StormChange:
    """A storm began, or is over."""

    second: int
    """When that was noticed, or the first second without the storm."""
    exchange: StormRequest
    text: str
    ended: bool = False

    @property
    def line(self) -> str:
        """The change as a line for people."""
        pair = f"{self.exchange.client} -> {self.exchange.server}"
        return f"{self.second:10.3f}  request storm: {pair}: {self.text}"


@attrs.define
class _Recent:
    """One exchange in the last seconds."""

    seconds: deque[list[int]] = attrs.Factory(deque)
    """[second, exchanges] each."""
    inside: int = 0
    """Sum of them."""
    storms: bool = False
    severe_s: int = -1
    """The last second above the limit."""

    def add(self, second: int, exchanges: int) -> None:
        """So many more; rows of a second may come in several batches."""
        if self.seconds and self.seconds[-1][0] == second:
            self.seconds[-1][1] += exchanges
        else:
            self.seconds.append([second, exchanges])
        self.inside += exchanges

    def forget(self, now_s: int) -> None:
        """Forget what lies before the window."""
        while self.seconds and self.seconds[0][0] <= now_s - WINDOW_S:
            self.inside -= self.seconds.popleft()[1]

    def end(self) -> None:
        """The storm is over; its requests do not count for the next one."""
        self.storms = False
        self.seconds.clear()
        self.inside = 0


class LiveStorms:
    """Reports when a storm begins, and when it is over."""

    def __init__(self) -> None:
        self._held = HeldQueues()
        self._recent: dict[TraceTable, dict[StormRequest, _Recent]] = {RPC: {}, COUNTS: {}}
        """By table: the counts of a second come later than its rows, and no exchange is in both."""

    def take(self, table: TraceTable, rows: Sequence[Row]) -> Iterator[StormChange]:
        """Read the next rows of a table, which reach `recorder.BatchListener`."""
        if table is OWNERSHIP:
            for row in rows:
                self._held.note(_held_queue(row))
        elif table in self._recent:
            of_table = self._recent[table]
            for second, counts in groupby(frame_counts(table, rows), key=attrgetter("second")):
                # Only what is asked in this second can begin a storm, and only a storm can end.
                looked_at = {exchange: None for exchange, recent in of_table.items() if recent.storms}
                for count in counts:
                    exchange = exchange_of(count)
                    if exchange is not None and exchange.overhead:
                        of_table.setdefault(exchange, _Recent()).add(second, count.frames)
                        looked_at[exchange] = None
                yield from self._changes(of_table, looked_at, second)

    def _changes(
        self, of_table: dict[StormRequest, _Recent], looked_at: Iterable[StormRequest], now_s: int
    ) -> Iterator[StormChange]:
        for exchange in looked_at:
            recent = of_table[exchange]
            recent.forget(now_s)
            limit_per_s = self._held.limit_per_s(exchange.client)
            recent.severe_s = max([recent.severe_s, *(at for at, number in recent.seconds if number > limit_per_s)])
            if not recent.storms and recent.inside > limit_per_s * WINDOW_S:
                recent.storms = True
                maximum = max(number for _, number in recent.seconds)
                subject = f"{exchange.request} answered {exchange.answer}, {maximum:,} a second"
                healthy = f"healthy is {self._held.healthy_per_s(exchange.client):g}"
                yield StormChange(now_s, exchange, f"{subject}, {healthy}")
            elif recent.storms and recent.severe_s < now_s - _QUIET_S:
                recent.end()
                yield StormChange(recent.severe_s + 1, exchange, f"{exchange.request} is over", ended=True)
            if not recent.seconds:
                del of_table[exchange]
