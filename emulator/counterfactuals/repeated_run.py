"""Repeating a run: what that confirms of its causes, and what ends its harms."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import attrs

from emulator.analysis.report import Report
from emulator.counterfactuals.harms import Harm, NamedHarm, harms_of
from emulator.counterfactuals.left_out import Confirmation, confirm
from emulator.counterfactuals.remedies import Remedies, try_remedies
from emulator.counterfactuals.repetition import CounterfactualError, repetition_of
from emulator.counterfactuals.words import confirmed_lines, remedies_lines, remedy_lines, repetition_lines
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import TraceLevel

Watch = Callable[[int, int], None]
"""Called with how many repetitions have ended, and how many there are."""
Bar = Callable[[str], AbstractContextManager[Watch]]
"""A progress bar with a title."""


@attrs.frozen
class RepeatedRun:
    """What repeating a run has shown."""

    harms: tuple[NamedHarm, ...]
    confirmation: Confirmation | None
    """None: no cause was left out."""
    remedies: Remedies | None
    """None: no remedy was tried."""

    def head(self) -> list[str]:
        """How far the repetition equals the run, and how often it was repeated."""
        lines = [] if self.confirmation is None else [*repetition_lines(self.confirmation)]
        return lines if self.remedies is None else [*lines, *remedies_lines(self.remedies)]

    def of_harm(self, harm: Harm) -> list[str]:
        """What it has shown about a harm."""
        lines: list[str] = []
        for confirmed in () if self.confirmation is None else self.confirmation.harms:
            if confirmed.named.harm == harm:
                lines += confirmed_lines(confirmed)
        for tried in () if self.remedies is None else self.remedies.harms:
            if tried.named.harm == harm:
                lines += remedy_lines(tried)
        return lines

    def lines(self) -> list[str]:
        """All of it, with a title for each harm."""
        found = self.head()
        for item in self.harms:
            if lines := self.of_harm(item.harm):
                found += ["", item.title, *(f"  {line}" for line in lines)]
        return found

    def plain(self) -> dict[str, Any]:
        """As plain values for JSON: `confirmed` and `remedies`, a list with an item for each harm."""
        found: dict[str, Any] = {"repetition": self.head()}
        if self.confirmation is not None:
            found["is_same"] = self.confirmation.is_same
            found["confirmed"] = [attrs.asdict(item) for item in self.confirmation.harms]
        if self.remedies is not None:
            found["remedies"] = [attrs.asdict(item) for item in self.remedies.harms]
        return found


@attrs.frozen
class RepeatRun:
    """What is to be repeated: the options `--verify`, `--remedies` and `--allow-code` of commands."""

    bar: Bar
    """Shows how many repetitions have ended."""
    verify: bool = False
    """Leave each named cause out."""
    remedies: bool = False
    """Try what may end each harm."""
    allow_code: bool = False
    """Whether the scenario may run code that it names."""

    def execute(self, report: Report, run: RunDirectory, only: Sequence[Harm] | None = None) -> RepeatedRun:
        """Repeat a run.

        Args:
            report: about the run.
            run: its directory.
            only: the harms to look at; None: all.

        Raises:
            UserError: it cannot be repeated.
        """
        if run.level is TraceLevel.COUNTS:
            raise CounterfactualError(
                f"{run.path}: the level of its trace is counts, in which no cause can be read: run the scenario again "
                "with --trace findings or full"
            )
        repetition = repetition_of(run, allow_code=self.allow_code)
        harms = [item for item in harms_of(report) if only is None or item.harm in only]
        confirmation, remedies = None, None
        if self.verify:
            with self.bar("leaving causes out") as watch:
                confirmation = confirm(repetition, harms, progress=watch)
        if self.remedies:
            with self.bar("trying remedies") as watch:
                remedies = try_remedies(repetition, harms, progress=watch)
        return RepeatedRun(tuple(harms), confirmation, remedies)
