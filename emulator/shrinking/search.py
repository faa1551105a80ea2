"""The search for a smaller scenario: which candidates are valid, which were run, and what became of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from emulator.base.errors import UserError
from emulator.spec import Scenario, SpecError, from_dict, to_dict
from emulator.spec.reading.secrets import marks_of_references, with_stand_ins

Tables = dict[str, Any]
"""A scenario as plain values, in the form of `emulator.spec.to_dict`."""


class NothingToShrinkError(UserError):
    """The scenario that was given does not fail."""


class OutOfRunsError(Exception):
    """As many scenarios were run as are allowed."""


@attrs.frozen
class ShrinkRun:
    """What is reported after each run."""

    runs: int
    """Number of this run, from 1."""
    runs_max: int
    looks_at: str
    """The parts that are being left out: `all` (none), `faults`, `durations`, `acts`, `nodes`, `settings`, `length`."""
    failed: bool
    smallest: Scenario
    """The smallest scenario so far that fails."""


@attrs.define
class Search:
    """Runs candidates, none of them twice, and remembers the smallest that fails."""

    smallest: Scenario
    _fails: Callable[[Scenario], bool]
    _runs_max: int
    likely: Sequence[str] = ()
    """Ids of faults that probably matter."""
    _progress: Callable[[ShrinkRun], None] | None = None
    looks_at: str = "all"
    runs: int = 0
    _marks: Mapping[str, str] = attrs.field(
        default=attrs.Factory(lambda self: marks_of_references(self.smallest), takes_self=True), init=False
    )
    """Which secrets of the scenario are equal; candidates are read from tables, which have no secrets."""
    _executed: dict[str, bool] = attrs.Factory(dict)
    """Mapping canonical form -> whether it fails."""

    def begin(self) -> None:
        """Run the scenario that was given.

        Raises:
            NothingToShrinkError: it does not fail.
        """
        given = self.smallest
        if not self.fails(to_dict(given)):
            raise NothingToShrinkError(f"{given.name}, seed {given.seed}: it does not fail, so nothing can be left out")

    def fails(self, tables: Mapping[str, Any]) -> bool:
        """Whether tables are a valid scenario that fails; then it is the smallest from now on.

        Raises:
            OutOfRunsError: it would have to be run, and no run is left.
        """
        try:
            scenario = with_stand_ins(from_dict(tables, code=self.smallest.code), self._marks)
        except SpecError:
            return False
        known = json.dumps(to_dict(scenario), sort_keys=True)
        if known not in self._executed:
            if self.runs >= self._runs_max:
                raise OutOfRunsError
            self.runs += 1
            self._executed[known] = self._fails(scenario)
            if self._executed[known]:
                self.smallest = scenario
            if self._progress is not None:
                reported = ShrinkRun(self.runs, self._runs_max, self.looks_at, self._executed[known], self.smallest)
                self._progress(reported)
        if self._executed[known]:
            self.smallest = scenario
        return self._executed[known]

    def tables(self) -> Tables:
        """The smallest scenario as tables that the caller may change."""
        return to_dict(self.smallest)
