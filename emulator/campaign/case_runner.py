"""Runs scenarios one after the other, each in a forked child, so that a crash or a hang is an answer, too."""

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from emulator.base.process_wide import frozen_objects
from emulator.campaign.answers import OUTPUT, answer_of, answered, died, printed_by
from emulator.campaign.campaign import Case
from emulator.campaign.case import execute_scenario, run_in, warm_up
from emulator.campaign.forked import EndedChild, Forked
from emulator.campaign.results import CaseResult
from emulator.spec import Scenario

_TICK_S = 0.25


@attrs.frozen
class _CaseInWorker:
    case: Case
    scenario: Scenario
    scratch: Path


class CaseRunner:
    """Runs scenarios; a context manager that removes their runs.

    Args:
        folder: for the runs; each is removed when the next one begins.
        timeout_ms: wall time of a run; a longer one is ended as hung.
    """

    def __init__(self, folder: Path, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._folder = Path(tempfile.mkdtemp(prefix=".under-way-", dir=folder))
        self._number = 0
        self._held = ExitStack()

    def __enter__(self) -> Self:
        warm_up()
        # Children share the memory of what is there now, as long as no collection touches it.
        self._held.enter_context(frozen_objects())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def execute(self, case: Case, scenario: Scenario) -> tuple[CaseResult, Path | None]:
        """Run a scenario and judge its run.

        Args:
            case: by which the answer names it.
            scenario: with its seed.

        Returns:
            What became of it, and its run directory, which stays until the next run; None if it did not get so far.

        Raises:
            DiskError: its trace could not be written.
        """
        scratch = self._next()
        with Forked[_CaseInWorker](_work, lambda seat: seat.scratch / OUTPUT, self._timeout_ms / 1_000) as children:
            children.start(_CaseInWorker(case, scenario, scratch))
            ended: list[EndedChild[_CaseInWorker]] = []
            while not ended:
                ended = children.wait(_TICK_S)
        if ended[0].exit_code == 0:
            return answered(ended[0]), run_in(scratch)
        return died(case, ended[0], printed_by(scratch), self._timeout_ms), run_in(scratch)

    def _next(self) -> Path:
        shutil.rmtree(self._folder / str(self._number), ignore_errors=True)
        self._number += 1
        scratch = self._folder / str(self._number)
        scratch.mkdir()
        return scratch


def _work(seat: _CaseInWorker) -> bytes:
    return answer_of(lambda: execute_scenario(seat.case, seat.scenario, seat.scratch))
