"""Plans: when faults begin and end."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import attrs

from faults.fault import Fault
from nodes.fields import whole


class Phase(StrEnum):
    """Begin or end of a fault."""

    BEGIN = "begin"
    END = "end"


@attrs.frozen
class TimedFault:
    """A fault with an id and a time."""

    id: str
    """Unique in its plan; identifies the fault in the trace."""
    fault: Fault
    at_ms: int = whole(unit="milliseconds", minimum=0)
    """Begin, in ms since the run began."""
    for_ms: int | None = whole(None, unit="milliseconds", minimum=1)
    """Duration in ms; None: until the run ends."""

    @property
    def end_ms(self) -> int | None:
        """End, in ms since the run began; None: when the run ends."""
        return None if self.for_ms is None else self.at_ms + self.for_ms

    def describe(self) -> str:
        """For people: `60000 ms +300000 ms: cut consumer-2 -> broker-b`."""
        lasting = "" if self.for_ms is None else f" +{self.for_ms} ms"
        return f"{self.at_ms} ms{lasting}: {self.fault.describe()}"


@attrs.frozen
class Step:
    """The begin or the end of a fault at an instant."""

    at_ms: int
    phase: Phase
    timed: TimedFault


class PlanError(ValueError):
    """The faults of a plan conflict."""

    def __init__(self, index: int, field: str, expected: str) -> None:
        super().__init__(f"fault {index}: {field}: {expected}")
        self.index = index
        """Position of the conflicting fault."""
        self.field = field
        self.expected = expected


def conflicts(faults: Iterable[TimedFault]) -> Iterator[PlanError]:
    """Why faults cannot be one plan: each that has the id of an earlier one."""
    taken: dict[str, None] = {}
    for index, timed in enumerate(faults):
        if timed.id in taken:
            yield PlanError(index, "id", f"expected an id of its own, {timed.id} is taken")
        taken[timed.id] = None


@attrs.frozen
class Plan:
    """All faults of a run, in the order in which they were written.

    Faults may overlap, also on one node: each ends by itself, and a node that another fault keeps down stays down.

    Raises:
        PlanError: two faults have one id.
    """

    faults: tuple[TimedFault, ...] = ()

    def __attrs_post_init__(self) -> None:
        for conflict in conflicts(self.faults):
            raise conflict

    def steps(self, run_for_ms: int) -> tuple[Step, ...]:
        """The steps of the plan, in order of time.

        At one instant ends come before begins; otherwise the order of the plan
        decides. Every begin has an end: a fault that would outlast the run ends with it.

        Args:
            run_for_ms: length of the run; a fault that would begin at or after it never happens.
        """
        return tuple(sorted(self._unordered(run_for_ms), key=lambda step: (step.at_ms, step.phase is Phase.BEGIN)))

    def _unordered(self, run_for_ms: int) -> Iterator[Step]:
        for timed in self.faults:
            if timed.at_ms < run_for_ms:
                end_ms = run_for_ms if timed.end_ms is None else min(timed.end_ms, run_for_ms)
                yield Step(timed.at_ms, Phase.BEGIN, timed)
                yield Step(end_ms, Phase.END, timed)
