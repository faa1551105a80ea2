"""Request storms of a run that is under way, in the rows as they are written; the definition is that of `traffic`."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
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


class LiveStorms:
    """Tells when a storm begins, and when it is over."""

    def __init__(self) -> None:
        self._held = HeldQueues()
        self._recent: dict[Exchange, _Recent] = {}
        self._now_s = 0

    def take(self, table: Table, rows: Sequence[Row]) -> Iterator[str]:
        """Read the next rows of a table, which reach `recorder.BatchListener`; yields a line for each change."""
        if table is OWNERSHIP:
            for row in rows:
                self._held.note(OwnershipRow._make(row[place] for place in _OF_OWNERSHIP))
        elif table in (RPC, COUNTS):
            for second, counts in groupby(_counts(table, rows), key=attrgetter("second")):
                for one in counts:
                    exchange = exchange_of(one)
                    if exchange is not None and exchange.overhead:
                        self._recent.setdefault(exchange, _Recent()).add(second, one.frames)
                self._now_s = max(self._now_s, second)
                yield from self._changes()

    def _changes(self) -> Iterator[str]:
        for exchange, recent in list(self._recent.items()):
            recent.forget(self._now_s)
            limit_per_s = self._held.limit_per_s(exchange.client)
            recent.loud_s = max([recent.loud_s, *(at for at, number in recent.seconds if number > limit_per_s)])
            pair = f"{exchange.client} -> {exchange.server}"
            if not recent.storms and recent.inside > limit_per_s * WINDOW_S:
                recent.storms = True
                most = max(number for _, number in recent.seconds)
                what = f"{exchange.request} answered {exchange.answer}, {most:,} a second"
                yield _line(self._now_s, f"{pair}: {what}, healthy is {self._held.healthy_per_s(exchange.client):g}")
            elif recent.storms and recent.loud_s < self._now_s - _QUIET_S:
                recent.storms = False
                yield _line(recent.loud_s + 1, f"{pair}: {exchange.request} is over")
            if not recent.seconds:
                del self._recent[exchange]


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
