"""Values over time: what something was before a row, and after an instant."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from emulator.history.rows.row_classes import Span

T = TypeVar("T")


class Steps(Generic[T]):
    """A value that changes at rows, in order of seq.

    Args:
        initial: the value before the first change.
    """

    __slots__ = ("_seqs", "_times_ns", "_values", "initial", "last")

    def __init__(self, initial: T) -> None:
        self.initial = initial
        self.last = initial
        """The value after the last change."""
        self._seqs: list[int] = []
        self._times_ns: list[int] = []
        self._values: list[T] = []

    def set(self, seq: int, t_ns: int, value: T) -> None:
        """The value from the row with this seq on."""
        self.last = value
        self._seqs.append(seq)
        self._times_ns.append(t_ns)
        self._values.append(value)

    @property
    def last_ns(self) -> int:
        """Instant of the last change; -1: there was none."""
        return self._times_ns[-1] if self._times_ns else -1

    @property
    def times_ns(self) -> Sequence[int]:
        """Instants of all changes."""
        return self._times_ns

    def forget(self) -> None:
        """Forget all changes but the last one; no question about an earlier row or instant may follow."""
        for stored in (self._seqs, self._times_ns, self._values):
            del stored[:-1]

    def before(self, seq: int) -> T:
        """The value by the rows before the one with this seq."""
        if not self._seqs or self._seqs[-1] < seq:
            return self.last
        place = bisect_left(self._seqs, seq)
        return self._values[place - 1] if place else self.initial

    def at(self, t_ns: int) -> T:
        """The value after all rows of an instant."""
        if not self._times_ns or self._times_ns[-1] <= t_ns:
            return self.last
        place = bisect_right(self._times_ns, t_ns)
        return self._values[place - 1] if place else self.initial


class SpansAwake:
    """When several of those that differ, or that own the same, were awake."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._since_ns = -1

    def look(self, t_ns: int, awake: int) -> None:
        """So many are awake from now on."""
        if awake <= 1:
            self._end(t_ns)
        elif self._since_ns < 0:
            self._since_ns = t_ns

    def forget(self) -> None:
        """Forget the spans that are over."""
        self._spans.clear()

    def until(self, end_ns: int) -> tuple[Span, ...]:
        """The spans up to the end."""
        self._end(end_ns)
        return tuple(self._spans)

    def _end(self, t_ns: int) -> None:
        if 0 <= self._since_ns < t_ns:
            self._spans.append((self._since_ns, t_ns))
        self._since_ns = -1


def length_ns(spans: Iterable[Span]) -> int:
    """The sum of the lengths of spans."""
    return sum(end - start for start, end in spans)


def merged(spans: Iterable[Span]) -> list[Span]:
    """The union of spans as sorted spans that neither overlap nor touch."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def uncovered(spans: Iterable[Span], covers: Sequence[Span]) -> list[Span]:
    """The parts of spans that lie outside of covers, which `merged` returned."""
    found: list[Span] = []
    for start, end in spans:
        since = start
        for cover_start, cover_end in covers:
            if since < end and cover_start < end and cover_end > since:
                found += [(since, cover_start)] if cover_start > since else []
                since = cover_end
        found += [(since, end)] if since < end else []
    return found


def common(of_each: Iterable[Sequence[Span]]) -> list[Span]:
    """The intersection of several sorted sequences of spans, of at least one."""
    first, *others = of_each
    found = list(first)
    for spans in others:
        pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in found for b in spans)
        found = [(start, end) for start, end in pairs if start < end]
    return found


def uncovered_ns(span: Span, covers: Sequence[Span]) -> int:
    """How much of a span lies outside of covers, which `merged` returned."""
    start, end = span
    left = end - start
    for number in range(max(0, bisect_right(covers, (start, start)) - 1), len(covers)):
        cover_start, cover_end = covers[number]
        if cover_start >= end:
            break
        left -= max(0, min(end, cover_end) - max(start, cover_start))
    return left
