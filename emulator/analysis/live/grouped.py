"""Changes of a run under way as few lines: what happens to many at once is one line, and repeats are counted.

At once is within half a second: a consumer takes its queues one after the other, each with some requests.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from emulator.analysis.live.changes import DifferenceChange, WatchedDifference, line_of
from nodes.units import NS_PER_S

WITHIN_NS = 500_000_000
_NOUNS = {
    WatchedDifference.DIVERGENCE: "subjects",
    WatchedDifference.OVERLAP: "queues",
    WatchedDifference.ORPHAN: "queues",
    WatchedDifference.LAG: "groups",
    WatchedDifference.BUSY: "thread pools",
}


@attrs.define
class _Group:
    """Changes of one kind that come at once."""

    changes: list[DifferenceChange]
    times_max: int
    """How often one of its differences has begun by now."""

    def takes(self, change: DifferenceChange) -> bool:
        """Whether a change belongs to it."""
        first = self.changes[0]
        is_alike = (first.what, first.ended) == (change.what, change.ended)
        return is_alike and change.t_ns - first.t_ns <= WITHIN_NS

    def line(self, names: Mapping[str, str]) -> str:
        """One line: the only change, or how many there are and an example."""
        first, last = self.changes[0], self.changes[-1]
        repeated = f" ({self.times_max} times so far)" if self.times_max > 1 else ""
        abouts = dict.fromkeys(change.about for change in self.changes)
        within = "" if last.t_ns == first.t_ns else f" within {(last.t_ns - first.t_ns) / NS_PER_S:.3f} s"
        if len(self.changes) == 1:
            return line_of(first, f"{first.about}: {first.said(names)}{repeated}")
        if len(abouts) == 1:
            return line_of(first, f"{first.about}: {last.said(names)} ({len(self.changes)} changes{within}){repeated}")
        ended = " ended" if first.ended else ""
        repeated = repeated.replace("(", "(up to ")
        example = f"such as {first.about}: {first.said(names)}{repeated}"
        return line_of(first, f"{len(abouts)} {_NOUNS[first.what]}{ended}{within}, {example}")


class GroupedLines:
    """Makes lines of changes; counts how often each difference has begun."""

    def __init__(self) -> None:
        self._begun: Counter[tuple[WatchedDifference, str]] = Counter()
        self._open: dict[tuple[WatchedDifference, str], int] = {}
        """Since when each difference has been there."""

    def lines(self, changes: Sequence[DifferenceChange], names: Mapping[str, str]) -> Iterator[str]:
        """The lines of changes that came together, in the order in which groups begin.

        Args:
            changes: in order of time.
            names: mapping address, or client id of a guest -> node.
        """
        groups: list[_Group] = []
        newest: dict[tuple[WatchedDifference, bool], _Group] = {}
        for change in changes:
            times = self._times(change)
            group = newest.get((change.what, change.ended))
            if group is not None and group.takes(change):
                group.changes.append(change)
                group.times_max = max(group.times_max, times)
            else:
                group = newest[change.what, change.ended] = _Group([change], times)
                groups.append(group)
        for group in groups:
            yield group.line(names)

    def _times(self, change: DifferenceChange) -> int:
        """How often this difference has begun; 0: it goes on or ends."""
        key = change.what, change.about
        if change.ended:
            self._open.pop(key, None)
            return 0
        if self._open.get(key) == change.since_ns:
            return 0
        self._open[key] = change.since_ns
        self._begun[key] += 1
        return self._begun[key]
