"""The time to agreement after each disturbance, and the phases between disturbances."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate, pairwise

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.agreement import Interval
from emulator.analysis.inputs.disturbances import FaultSpan, LifeMark
from emulator.analysis.inputs.keys import MovedKey
from emulator.history.rows.row_classes import Span


class Layer(StrEnum):
    """The layers that must agree."""

    VIEWS = "views"
    OWNERSHIP = "ownership"


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
    active: tuple[str, ...]
    """The faults that began before and last beyond its begin."""
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
    again: int
    """Messages consumed again."""
    failed_sends: int
    """Attempts to send that were refused or not answered."""


AGREEMENT = FindingTable("agreement", Agreement, "the time that a layer took to agree after a disturbance")
PHASES = FindingTable("phases", RunPhase, "the run from one disturbance to the next")
FAULTS = FindingTable("faults", FaultSpan, "a fault from its begin to its end")
MOVED_KEYS = FindingTable("moved_keys", MovedKey, "the messages of a key are in several queues of a topic")
MARKS = FindingTable("marks", LifeMark, "what happened to a process after the first agreement")


def agreement(
    instants: Sequence[tuple[int, tuple[str, ...]]], divergent: Mapping[Layer, Sequence[Interval]], end_ns: int
) -> tuple[Agreement, ...]:
    """Time to agreement per disturbance and layer, in order of time.

    Args:
        instants: disturbances as `Disturbances.instants` returns them.
        divergent: intervals of each layer.
        end_ns: end of the run.
    """
    found = [
        item for layer, intervals in divergent.items() for item in _agreement_of(layer, instants, intervals, end_ns)
    ]
    return tuple(sorted(found, key=lambda item: (item.t_ns, item.layer)))


def _agreement_of(
    layer: Layer, instants: Sequence[tuple[int, tuple[str, ...]]], intervals: Sequence[Interval], end_ns: int
) -> Iterable[Agreement]:
    ordered = sorted(intervals, key=lambda interval: interval.start_ns)
    starts = [item.start_ns for item in ordered]
    # At each interval: the latest end so far, and whether it is that of an interval without end.
    reached = list(accumulate(((item.end_ns, item.censored) for item in ordered), max))
    for number, (t_ns, subject) in enumerate(instants):
        is_last = number == len(instants) - 1
        next_ns = end_ns if is_last else instants[number + 1][0]
        before = bisect_left(starts, next_ns)
        rest_ns, never = reached[before - 1] if before else (t_ns, False)
        beyond = never or (not is_last and rest_ns >= next_ns)
        took_ns = max(0, min(rest_ns, next_ns) - t_ns)
        yield Agreement(layer, t_ns, next_ns, subject, took_ns, rest_ns > t_ns and beyond)


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
    faults: Sequence[FaultSpan],
    end_ns: int,
) -> tuple[RunPhase, ...]:
    """The phases of a run; a disturbance at the very end begins none, and a run without a row has none.

    Args:
        instants: disturbances as `Disturbances.instants` returns them.
        measures: mapping name of a field of `RunPhase` -> intervals to integrate.
        counts: mapping name of a field of `RunPhase` -> instants to count.
        faults: of the run.
        end_ns: end of the run.
    """
    if not end_ns:
        return ()
    begins = [(t_ns, subject) for t_ns, subject in instants if t_ns < end_ns]
    if not begins or begins[0][0] > 0:
        begins.insert(0, (0, ()))
    totals = {name: Totals(spans) for name, spans in measures.items()}
    ends = [t_ns for t_ns, _ in begins[1:]] + [end_ns]
    sorted_instants = {name: sorted(counted) for name, counted in counts.items()}

    def phase(start: int, end: int, subject: tuple[str, ...]) -> RunPhase:
        integrals = {name: sums.until(end) - sums.until(start) for name, sums in totals.items()}
        # An instant belongs to the phase that begins with it; that of the end to the last one.
        until = end if end < end_ns else end + 1
        numbers = {name: bisect_left(at, until) - bisect_left(at, start) for name, at in sorted_instants.items()}
        active = [
            span for span in faults if span.start_ns < start < span.end_ns or (span.censored and span.start_ns < start)
        ]
        names = tuple(f"{span.kind} {span.subject}" for span in active)
        return RunPhase(start, end, subject, names, **integrals, **numbers)

    return tuple(phase(start, end, subject) for (start, subject), end in zip(begins, ends, strict=True))
