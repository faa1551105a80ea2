"""The same sources while an assigner allocates: what members disagree about, and what it does to queues."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

import attrs

from emulator import testing
from emulator.analysis.inputs.facts import facts_of
from emulator.analysis.judge import judge_rows
from emulator.history.rows.row_classes import ROWS, FrameCount
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.testing import Script, Trace
from emulator.trace.schema import TraceTable
from support.findings import views_of

BASELINE_S = 2.0
"""So long members differ in any healthy rebalance: until all have been notified and have made their passes."""
_SETTLED_S = 20.0
"""Members start at different instants: what ends before has no other reason."""
_NS = 1_000_000_000


class Effect(StrEnum):
    """What an assigner changes."""

    REMOVED = "removed"
    """Too long without it, and not with it."""
    STAYS = "stays"
    ADDED = "added"
    """Too long only with it."""
    NONE = "none"
    """Short either way."""


@attrs.frozen
class Impact:
    """The longest disagreements of a run, in s, after its members have started."""

    differ_s: float
    """Members that were awake had different views or assigners, or followed different allocations."""
    two_owners_s: float
    """A queue had two owners that were awake."""
    no_owner_s: float
    """A readable queue had none."""


@attrs.frozen
class Compared:
    """A source with members that allocate for themselves, and with an assigner."""

    members: Impact
    assigner: Impact
    two_owners: Effect
    """What becomes of queues with two owners."""
    no_owner: Effect
    """What becomes of queues without one."""


def compare_effects(members: Impact, assigner: Impact) -> Compared:
    """Compare what was measured without an assigner and with one."""
    return Compared(
        members,
        assigner,
        _effect(members.two_owners_s, assigner.two_owners_s),
        _effect(members.no_owner_s, assigner.no_owner_s),
    )


def _effect(members_s: float, assigner_s: float) -> Effect:
    too_long = members_s > BASELINE_S, assigner_s > BASELINE_S
    if too_long[0]:
        return Effect.STAYS if too_long[1] else Effect.REMOVED
    return Effect.ADDED if too_long[1] else Effect.NONE


@attrs.define
class _Executed:
    """How scenarios are run in a context."""

    assigned: bool
    impacts: list[Impact] = attrs.Factory(list)


_executing: ContextVar[_Executed | None] = ContextVar("executing", default=None)


def compared(scenario: Callable[[], object]) -> Compared | None:
    """Run a source twice: as it is, and with an assigner; None: it has no members."""
    found = []
    for assigned in (False, True):
        with _impacts_of_runs(assigned=assigned) as impacts:
            scenario()
        found += impacts
    return compare_effects(*found) if len(found) == 2 else None


@contextmanager
def _impacts_of_runs(*, assigned: bool) -> Iterator[list[Impact]]:
    """Measure what is run inside.

    Args:
        assigned: groups that allocate for themselves ask an assigner instead.
    """
    executing = _Executed(assigned)
    token = _executing.set(executing)
    try:
        yield executing.impacts
    finally:
        _executing.reset(token)


def execute(scenario: Scenario, script: Script | None = None, *, for_ms: float = 0) -> Trace:
    """As `emulator.testing.run`, with the members that the context wants, and measured for it."""
    executing = _executing.get()
    if executing is None:
        return testing.execute(scenario, script, for_ms=for_ms)
    if executing.assigned:
        scenario = attrs.evolve(scenario, consumers=tuple(map(_with_assigner, scenario.consumers)))
    trace = testing.execute(scenario, script, for_ms=for_ms)
    if scenario.consumers:
        executing.impacts.append(impact_of(scenario, trace))
    return trace


def _with_assigner(group: ConsumerGroupSpec) -> ConsumerGroupSpec:
    return attrs.evolve(group, config=attrs.evolve(group.config, client_rebalance=False, pinned_assigner=True))


def impact_of(scenario: Scenario, trace: Trace) -> Impact:
    """What the oracles find in a trace."""
    found = judge_rows(_RowsOf(trace), facts_of(scenario, round(trace.end_ms * 1_000_000)))
    return Impact(
        _longest(
            (item.start_ns, item.end_ns, item.active_ns)
            for item in (*views_of(found), *found["assigner_disagreements"])
        ),
        _longest((item.start_ns, item.end_ns, item.active_ns) for item in found["overlaps"]),
        _longest((item.start_ns, item.end_ns, item.end_ns - item.start_ns) for item in found["orphans"]),
    )


def _longest(spans: Iterable[tuple[int, int, int]]) -> float:
    """Of (start, end, how much of it did harm)."""
    lengths = (min(end / _NS - max(start / _NS, _SETTLED_S), impact / _NS) for start, end, impact in spans)
    return round(max((0.0, *lengths)), 3)


class _RowsOf:
    """The rows of a trace as oracles read them."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def rows(self, table: TraceTable) -> Iterator[Any]:
        row_class = ROWS[table]
        for row in self._trace.rows[table.name]:
            yield row_class._make(getattr(row, name) for name in row_class._fields)

    def frames(self) -> tuple[FrameCount, ...]:
        """Frames are not looked at."""
        return ()
