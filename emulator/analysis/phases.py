"""Disturbances, the time to agreement after each, and the phases between them."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Any

import attrs

from emulator.analysis.rows import FaultRow, LifeRow, Span, Watcher
from emulator.trace.schema import FAULTS, LIFECYCLE, Table
from nodes.beliefs import LifecycleEvent

DISTURBING = (
    LifecycleEvent.STARTED,
    LifecycleEvent.STOPPING,
    LifecycleEvent.CRASHED,
    LifecycleEvent.KILLED,
    LifecycleEvent.POWERED_OFF,
    LifecycleEvent.SUSPENDED,
    LifecycleEvent.RESUMED,
)


class Layer(StrEnum):
    """The layers that must agree."""

    VIEWS = "views"
    OWNERSHIP = "ownership"


@attrs.frozen
class FaultSpan:
    """A fault from its begin to its end."""

    fault_id: str
    """Id of the fault, unique in the run."""
    kind: str
    """cut, loss, delay, suspend, kill, ..."""
    subject: str
    """What it hits, for people: `consumer-1 -> broker-b`."""
    start_ns: int
    end_ns: int
    censored: bool
    """Whether it was still active at the end of the run."""


@attrs.frozen
class LifeMark:
    """A process was started, stopped, killed, suspended or resumed after the first agreement."""

    t_ns: int
    """When."""
    node: str
    event: str
    """`LifecycleEvent`."""


@attrs.frozen
class Agreement:
    """Time that a layer took to agree after a disturbance."""

    layer: Layer
    """`views` or `ownership`."""
    t_ns: int
    """Instant of the disturbance."""
    next_ns: int
    """Next disturbance, or the end of the run."""
    what: tuple[str, ...]
    """The disturbances of that instant, for people."""
    took_ns: int
    """Time until all agreed; if they did not, until the next disturbance."""
    censored: bool
    """Whether it had not agreed by then."""


@attrs.frozen
class RunPhase:
    """Divergence between one disturbance and the next, integrated over subjects and queues."""

    start_ns: int
    end_ns: int
    what: tuple[str, ...]
    """The disturbances with which it begins; empty for the first phase."""
    view_ns: int
    """Subject time in which views differed."""
    overlap_ns: int
    """Queue time with two owners."""
    active_overlap_ns: int
    """As `overlap_ns`, while at least two owners were awake."""
    orphan_ns: int
    """Queue time without an owner."""
    keys_two_ns: int
    """Key time with two consumers or more."""
    keys_overtaken: int
    """Messages that came after a later one of their key."""


@attrs.frozen
class Interval:
    """A time of disagreement."""

    start_ns: int
    end_ns: int
    censored: bool


class Disturbances(Watcher):
    """Collects faults, and what happened to processes."""

    def __init__(self) -> None:
        self._faults: list[FaultRow] = []
        self._life: list[LifeRow] = []

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads faults and processes."""
        return {FAULTS: self._faults.append, LIFECYCLE: self._note}

    def _note(self, row: LifeRow) -> None:
        if row.event in DISTURBING:
            self._life.append(row)

    @property
    def moves_clock(self) -> bool:
        """Whether a fault makes a wall clock wrong."""
        return any(row.moves_clock for row in self._faults)

    def marks(self, agreed_ns: int | None) -> tuple[LifeMark, ...]:
        """What happened to processes after the first agreement; start-up disturbs nothing."""
        rows = self._life if agreed_ns is not None else ()
        return tuple(LifeMark(row.t_ns, row.node, row.event) for row in rows if row.t_ns > (agreed_ns or 0))

    def instants(self, agreed_ns: int | None) -> list[tuple[int, tuple[str, ...]]]:
        """Instants of disturbances, each with descriptions in order of seq; each begin and end of a fault counts."""
        rows = [(row.seq, row.t_ns, f"{row.kind} {row.subject} {row.event}s") for row in self._faults]
        if agreed_ns is not None:
            rows += [(row.seq, row.t_ns, f"{row.node} {row.event}") for row in self._life if row.t_ns > agreed_ns]
        found: dict[int, list[str]] = {}
        for _, t_ns, what in sorted(rows):
            found.setdefault(t_ns, []).append(what)
        return [(t_ns, tuple(what)) for t_ns, what in sorted(found.items())]

    def spans(self, end_ns: int) -> tuple[FaultSpan, ...]:
        """The faults, by begin."""
        begins = {row.fault_id: row for row in reversed(self._faults) if row.event == "begin"}
        ends = {row.fault_id: row.t_ns for row in self._faults if row.event != "begin"}
        spans = (
            FaultSpan(name, row.kind, row.subject, row.t_ns, ends.get(name, end_ns), name not in ends)
            for name, row in begins.items()
        )
        return tuple(sorted(spans, key=lambda span: (span.start_ns, span.end_ns, span.fault_id)))


def first_agreement(begun_ns: int | None, divergent: Iterable[Interval]) -> int | None:
    """The first instant at which there are views and owners, and all agree.

    Args:
        begun_ns: first instant with a view and an owner; None: there is none.
        divergent: intervals of all layers.

    Returns:
        None for a run that never agreed.
    """
    if begun_ns is None:
        return None
    reached_ns = begun_ns
    for interval in sorted(divergent, key=lambda one: (one.start_ns, one.end_ns)):
        if interval.end_ns <= begun_ns:
            continue
        if interval.start_ns > reached_ns:
            break
        if interval.censored:
            return None
        reached_ns = max(reached_ns, interval.end_ns)
    return reached_ns


def agreement(
    instants: Sequence[tuple[int, tuple[str, ...]]], divergent: Mapping[Layer, Sequence[Interval]], end_ns: int
) -> tuple[Agreement, ...]:
    """Time to agreement per disturbance and layer, in order of time.

    Args:
        instants: disturbances as `Disturbances.instants` returns them.
        divergent: intervals of each layer.
        end_ns: end of the run.
    """
    found = [one for layer, intervals in divergent.items() for one in _agreement_of(layer, instants, intervals, end_ns)]
    return tuple(sorted(found, key=lambda one: (one.t_ns, one.layer)))


def _agreement_of(
    layer: Layer, instants: Sequence[tuple[int, tuple[str, ...]]], intervals: Sequence[Interval], end_ns: int
) -> Iterable[Agreement]:
    ordered = sorted(intervals, key=lambda one: one.start_ns)
    starts = [one.start_ns for one in ordered]
    # At each interval: the latest end so far, and whether it is that of an interval without end.
    reached = list(accumulate(((one.end_ns, one.censored) for one in ordered), max))
    for number, (t_ns, what) in enumerate(instants):
        is_last = number == len(instants) - 1
        next_ns = end_ns if is_last else instants[number + 1][0]
        before = bisect_left(starts, next_ns)
        rest_ns, never = reached[before - 1] if before else (t_ns, False)
        beyond = never or (not is_last and rest_ns >= next_ns)
        took_ns = max(0, min(rest_ns, next_ns) - t_ns)
        yield Agreement(layer, t_ns, next_ns, what, took_ns, rest_ns > t_ns and beyond)


class Totals:
    """Sums of intervals in parts of the run."""

    def __init__(self, spans: Iterable[Span]) -> None:
        steps: dict[int, int] = {}
        for start, end in spans:
            steps[start] = steps.get(start, 0) + 1
            steps[end] = steps.get(end, 0) - 1
        self._instants = sorted(steps)
        self._levels = list(accumulate(steps[t_ns] for t_ns in self._instants))
        pieces = (
            level * (after - at) for level, (at, after) in zip(self._levels, pairwise(self._instants), strict=False)
        )
        self._sums = list(accumulate(pieces, initial=0))

    def until(self, t_ns: int) -> int:
        """The sum of all intervals up to an instant, in ns."""
        at = bisect_right(self._instants, t_ns) - 1
        return self._sums[at] + self._levels[at] * (t_ns - self._instants[at]) if at >= 0 else 0


def phases(
    instants: Sequence[tuple[int, tuple[str, ...]]],
    measures: Mapping[str, Iterable[Span]],
    counts: Mapping[str, Iterable[int]],
    end_ns: int,
) -> tuple[RunPhase, ...]:
    """The phases of a run; a disturbance at the very end begins none, and a run without a row has none.

    Args:
        instants: disturbances as `Disturbances.instants` returns them.
        measures: mapping name of a field of `RunPhase` -> intervals to integrate.
        counts: mapping name of a field of `RunPhase` -> instants to count.
        end_ns: end of the run.
    """
    if not end_ns:
        return ()
    begins = [(t_ns, what) for t_ns, what in instants if t_ns < end_ns]
    if not begins or begins[0][0] > 0:
        begins.insert(0, (0, ()))
    totals = {name: Totals(spans) for name, spans in measures.items()}
    ends = [t_ns for t_ns, _ in begins[1:]] + [end_ns]
    sorted_instants = {name: sorted(counted) for name, counted in counts.items()}

    def phase(start: int, end: int, what: tuple[str, ...]) -> RunPhase:
        integrals = {name: sums.until(end) - sums.until(start) for name, sums in totals.items()}
        # An instant belongs to the phase that begins with it; that of the end to the last one.
        until = end if end < end_ns else end + 1
        numbers = {name: bisect_left(at, until) - bisect_left(at, start) for name, at in sorted_instants.items()}
        return RunPhase(start, end, what, **integrals, **numbers)

    return tuple(phase(start, end, what) for (start, what), end in zip(begins, ends, strict=True))
