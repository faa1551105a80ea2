"""Disturbances: faults from begin to end, and what happened to processes."""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import FaultRow, LifeRow
from emulator.spec.model.scenario import ADMINISTRATOR
from emulator.trace.schema import FAULTS, LIFECYCLE, TraceTable
from faults.catalogue import FAULTS as KINDS
from faults.disturbance import IN_LIVES, Disturbance
from faults.plan import Phase
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
    hits: int
    """How often it did something to a frame, a process, a write or a reading of the clock; -1: it had not ended."""


@attrs.frozen
class LifeMark:
    """A process was started, stopped, killed, suspended or resumed after the first agreement; or an act began."""

    t_ns: int
    """When."""
    node: str
    event: str
    """`LifecycleEvent`; of an administrator, its act."""


def disturbance_of(row: FaultRow) -> Disturbance:
    """What the kind of a fault declares; nothing for a kind of another release."""
    kind = KINDS.get(row.kind)
    return IN_LIVES if kind is None else kind.disturbance


def _event(row: LifeRow) -> str:
    """What happened to a process; a process of the administrator is an act, `update-topic orders queues 8`."""
    if row.role != ADMINISTRATOR:
        return row.event
    return row.detail.partition(": ")[2]


class Disturbances(Watcher):
    """Collects faults, and what happened to processes."""

    def __init__(self) -> None:
        self._faults: list[FaultRow] = []
        self._life: list[LifeRow] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads faults and processes."""
        return {FAULTS: self._faults.append, LIFECYCLE: self._on_life}

    def _on_life(self, row: LifeRow) -> None:
        if row.event in DISTURBING:
            self._life.append(row)

    @property
    def moves_clock(self) -> bool:
        """Whether a fault makes a wall clock wrong."""
        return any(disturbance_of(row).moves_clock for row in self._faults)

    def marks(self, agreed_ns: int | None) -> tuple[LifeMark, ...]:
        """What happened to processes after the first agreement; start-up disturbs nothing."""
        rows = self._life if agreed_ns is not None else ()
        return tuple(LifeMark(row.t_ns, row.node, _event(row)) for row in rows if row.t_ns > (agreed_ns or 0))

    def instants(self, agreed_ns: int | None) -> list[tuple[int, tuple[str, ...]]]:
        """Instants of disturbances, each with descriptions in order of seq; each begin and end of a fault counts."""
        rows = [(row.seq, row.t_ns, f"{row.kind} {row.subject} {row.event}s") for row in self._faults]
        if agreed_ns is not None:
            rows += [(row.seq, row.t_ns, f"{row.node} {_event(row)}") for row in self._life if row.t_ns > agreed_ns]
        found: dict[int, list[str]] = {}
        for _, t_ns, subject in sorted(rows):
            found.setdefault(t_ns, []).append(subject)
        return [(t_ns, tuple(description)) for t_ns, description in sorted(found.items())]

    def spans(self, end_ns: int) -> tuple[FaultSpan, ...]:
        """The faults, by begin."""
        begins = {row.fault_id: row for row in reversed(self._faults) if row.event == Phase.BEGIN}
        ends = {row.fault_id: row for row in self._faults if row.event != Phase.BEGIN}
        spans = []
        for name, row in begins.items():
            end = ends.get(name)
            ended_ns, hits = (end_ns, -1) if end is None else (end.t_ns, end.hits)
            spans.append(FaultSpan(name, row.kind, row.subject, row.t_ns, ended_ns, end is None, hits))
        return tuple(sorted(spans, key=lambda span: (span.start_ns, span.end_ns, span.fault_id)))
