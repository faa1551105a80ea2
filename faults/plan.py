"""When faults begin and end."""

from collections.abc import Iterator
from enum import StrEnum

import attrs

from faults.fault import Fault
from nodes.fields import whole


class Phase(StrEnum):
    """Which end of a fault."""

    BEGIN = "begin"
    END = "end"


@attrs.frozen
class TimedFault:
    """A fault with its name and its time."""

    id: str
    """Unique in its plan; the trace calls the fault by it."""
    fault: Fault
    at_ms: int = whole(unit="milliseconds", least=0)
    """When it begins, since the run began."""
    for_ms: int | None = whole(None, unit="milliseconds", least=1)
    """How long it lasts; None: until the run ends."""

    @property
    def end_ms(self) -> int | None:
        """When it ends, since the run began; None: when the run ends."""
        return None if self.for_ms is None else self.at_ms + self.for_ms

    def describe(self) -> str:
        """For people: `60000 ms +300000 ms: cut consumer-2 -> broker-b`."""
        lasting = "" if self.for_ms is None else f" +{self.for_ms} ms"
        return f"{self.at_ms} ms{lasting}: {self.fault.describe()}"


@attrs.frozen
class Step:
    """One thing to do at one instant of a run."""

    at_ms: int
    phase: Phase
    timed: TimedFault


class PlanError(ValueError):
    """The faults of a plan do not go together."""

    def __init__(self, index: int, field: str, expected: str) -> None:
        super().__init__(f"fault {index}: {field}: {expected}")
        self.index = index
        """Position of the fault that is one too many."""
        self.field = field
        self.expected = expected


@attrs.frozen
class Plan:
    """All faults of a run, in the order in which they were written.

    They may overlap, also on one node: each ends on its own, and what another one still holds down stays down.

    Raises:
        PlanError: two faults have one id.
    """

    faults: tuple[TimedFault, ...] = ()

    def __attrs_post_init__(self) -> None:
        taken: dict[str, None] = {}
        for index, timed in enumerate(self.faults):
            if timed.id in taken:
                raise PlanError(index, "id", f"expected an id of its own, {timed.id} is taken")
            taken[timed.id] = None

    def steps(self, run_for_ms: int) -> tuple[Step, ...]:
        """Expand into what is to be done when, in order.

        Ends come before begins of the same instant, else the order of the plan
        decides. Every begin has its end: what would outlast the run ends with it.

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
