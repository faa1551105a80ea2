"""Request storms of a run that is under way, in the rows as they are written; the definition is that of `traffic`."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

import attrs

from emulator.analysis.rows import FrameCount, OwnershipRow
from emulator.analysis.traffic import WINDOW_S, Exchange, HeldQueues, exchange_of
from emulator.trace.batches import Row
from emulator.trace.schema import COUNTS, OWNERSHIP, RPC, Table

_NS = 1_000_000_000
_QUIET_S = 3
"""A storm has ended when so many seconds were below its limit."""
_OF_RPC = tuple(map(RPC.index, ("event", "src", "dst", "kind", "code", "status")))
_OF_COUNTS = tuple(map(COUNTS.index, ("event", "node", "peer", "kind", "code", "status")))
_ROWS, _TABLE, _T_NS = COUNTS.index("rows"), COUNTS.index("table"), RPC.index("t_ns")
_OF_OWNERSHIP = tuple(map(OWNERSHIP.index, OwnershipRow._fields))


@attrs.define
class _Recent:
    """One exchange in the last seconds."""

    seconds: deque[list[int]] = attrs.Factory(deque)
    """[second, exchanges] each."""
    inside: int = 0
    """Sum of them."""
    storms: bool = False
    loud_s: int = -1
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
    """Tells when a storm begins, and when it is over."""

    def __init__(self) -> None:
        self._held = HeldQueues()
        self._recent: dict[Table, dict[Exchange, _Recent]] = {RPC: {}, COUNTS: {}}
        """By table: the counts of a second come later than its rows, and no exchange is in both."""

    def take(self, table: Table, rows: Sequence[Row]) -> Iterator[str]:
        """Read the next rows of a table, which reach `recorder.BatchListener`; yields a line for each change."""
        if table is OWNERSHIP:
            for row in rows:
                self._held.note(OwnershipRow._make(row[place] for place in _OF_OWNERSHIP))
        elif table in self._recent:
            of_table = self._recent[table]
            for second, counts in groupby(_counts(table, rows), key=attrgetter("second")):
                # Only what is asked in this second can begin a storm, and only a storm can end.
                looked_at = {exchange: None for exchange, recent in of_table.items() if recent.storms}
                for one in counts:
                    exchange = exchange_of(one)
                    if exchange is not None and exchange.overhead:
                        of_table.setdefault(exchange, _Recent()).add(second, one.frames)
                        looked_at[exchange] = None
                yield from self._changes(of_table, looked_at, second)

    def _changes(self, of_table: dict[Exchange, _Recent], looked_at: Iterable[Exchange], now_s: int) -> Iterator[str]:
        for exchange in looked_at:
            recent = of_table[exchange]
            recent.forget(now_s)
            limit_per_s = self._held.limit_per_s(exchange.client)
            recent.loud_s = max([recent.loud_s, *(at for at, number in recent.seconds if number > limit_per_s)])
            pair = f"{exchange.client} -> {exchange.server}"
            if not recent.storms and recent.inside > limit_per_s * WINDOW_S:
                recent.storms = True
                most = max(number for _, number in recent.seconds)
                what = f"{exchange.request} answered {exchange.answer}, {most:,} a second"
                yield _line(now_s, f"{pair}: {what}, healthy is {self._held.healthy_per_s(exchange.client):g}")
            elif recent.storms and recent.loud_s < now_s - _QUIET_S:
                recent.end()
                yield _line(recent.loud_s + 1, f"{pair}: {exchange.request} is over")
            if not recent.seconds:
                del of_table[exchange]


def _line(second: int, what: str) -> str:
    return f"{second:10.3f}  request storm: {what}"


def _counts(table: Table, rows: Sequence[Row]) -> Iterator[FrameCount]:
    found: Counter[tuple[int | str, ...]] = Counter()
    if table is RPC:
        found.update((int(row[_T_NS]) // _NS, *(row[place] for place in _OF_RPC)) for row in rows)
    else:
        for row in rows:
            if row[_TABLE] == RPC.name:
                found[int(row[_T_NS]) // _NS, *(row[place] for place in _OF_COUNTS)] += int(row[_ROWS])
    for key, frames in sorted(found.items()):
        yield FrameCount._make((*key, frames))
