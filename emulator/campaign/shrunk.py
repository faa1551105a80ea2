"""Shrinks the failure of a case: the smallest scenario that fails in the same way, as a file, and why it fails.

A run fails in the same way if it breaks one of the invariants that the first one broke; if the first one crashed or
hung, it must do so, too.
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import tomli_w

from emulator.analysis.judge import judge_run
from emulator.analysis.report import RulesVerdict
from emulator.base.errors import UserError
from emulator.base.files import require_own_folder
from emulator.base.text import listed
from emulator.campaign.campaign import TIMEOUT_MS, Case
from emulator.campaign.case import DiskError
from emulator.campaign.case_runner import CaseRunner
from emulator.campaign.directory import is_campaign, remove, save_code
from emulator.campaign.measured import broken_in
from emulator.campaign.results import CaseResult, Outcome
from emulator.history.rows.lookup import UnreadableTraceError
from emulator.lake.sources import is_run
from emulator.shrinking import RUNS_MAX, ShrinkingInterrupted, ShrinkRun, Shrunk, shrink
from emulator.spec import Scenario, to_dict
from emulator.spec.code.permission_of_code import ALLOW_CODE
from emulator.spec.reading.secrets import resolved, stood_in
from emulator.spec.reading.user_functions import named_code
from emulator.trace.files import OWNER_ALONE, RunFiles, put_in_place
from emulator.trace.run_directory import RunDirectory, open_run
from emulator.why.worst import WorstFinding, explanation, likely_faults, worst_findings

SHRUNK = "shrunk"
"""Folder of the shrunken scenarios and their runs."""


class ShrinkError(UserError):
    """A case cannot be shrunk; the text says why."""


@attrs.frozen
class FailureKind:
    """The way in which a run failed; runs of one kind are shrunk once."""

    outcome: Outcome
    broken: tuple[str, ...]
    """Ids of the invariants; empty if it crashed or hung."""

    def is_like(self, other: "FailureKind") -> bool:
        """Whether another failure is one in the same way."""
        if self.outcome is not other.outcome:
            return False
        return not self.broken or any(name in other.broken for name in self.broken)

    def words(self) -> str:
        """`breaks V1 and V8`, `crashes`, `hangs`."""
        if self.broken:
            return f"breaks {' and '.join(self.broken)}"
        return "crashes" if self.outcome is Outcome.CRASHED else "hangs"


@attrs.frozen
class ShrunkCase:
    """A failure, and the smallest scenario that fails in the same way."""

    case: Case
    kind: FailureKind
    """What the smallest scenario must do."""
    faults: int
    """Faults of the scenario that was given, those that its seed draws included."""
    shrunk: Shrunk
    interrupted: bool
    """Ctrl-C came before the search had ended."""
    file: Path
    """The scenario."""
    run: Path | None
    """A run of it; None if there is none."""
    worst: WorstFinding | None
    """The worst finding in that run; None if it crashed or hung."""
    question: tuple[str, ...]
    """The words with which `rmqemu why` explains it; empty if the trace has no answer."""
    answer: tuple[str, ...]

    @property
    def command(self) -> str:
        """Runs the smallest scenario."""
        allowed = [ALLOW_CODE] if any(named_code(self.shrunk.scenario)) else []
        return shlex.join(["rmqemu", "run", str(self.file), *allowed])

    @property
    def why(self) -> str:
        """Explains the finding again."""
        return shlex.join(["rmqemu", "why", str(self.run), *self.question]) if self.question else ""


def failure_of(case_result: CaseResult) -> FailureKind | None:
    """How a run failed; None for one that is valid, unknown, or has not been run."""
    if case_result.outcome in (Outcome.CRASHED, Outcome.HUNG):
        return FailureKind(case_result.outcome, ())
    if case_result.verdict is RulesVerdict.INVALID:
        return FailureKind(Outcome.COMPLETE, broken_in(case_result))
    return None


def first_of_each_kind(every: Iterable[CaseResult]) -> list[CaseResult]:
    """The first failure of each kind, in the order of the runs."""
    found: dict[FailureKind, CaseResult] = {}
    for case_result in every:
        kind = failure_of(case_result)
        if kind is not None:
            found.setdefault(kind, case_result)
    return list(found.values())


@attrs.frozen
class Shrinker:
    """Shrinks cases.

    Attributes:
        folder: for scenarios and runs; it is created.
        timeout_ms: wall time of one run.
        runs_max: largest number of runs for a case.
        watch: called after each run.
    """

    folder: Path
    timeout_ms: int = TIMEOUT_MS
    runs_max: int = RUNS_MAX
    watch: Callable[[ShrinkRun], None] = lambda _execute: None

    def shrink(self, case: Case, scenario: Scenario, on: Sequence[str] = ()) -> ShrunkCase:
        """Shrink the failure of a scenario.

        Args:
            case: by which files are named.
            scenario: with its seed.
            on: ids of the invariants of which one must stay broken; empty: any that the scenario breaks.

        Raises:
            SpecError: the value of a secret is missing.
            ShrinkError: it does not fail, or not in this way, or a trace could not be written.
            OSError: the result could not be written.
        """
        scenario = stood_in(resolved(scenario))
        is_new = not self.folder.exists()
        self._require_place(case)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(OWNER_ALONE, exist_ok=True)
        try:
            with CaseRunner(self.folder, self.timeout_ms) as runner:
                return self._shrink(runner, case, scenario, on)
        except DiskError as error:
            raise ShrinkError(str(error)) from error
        finally:
            if is_new:
                with suppress(OSError):  # there is a result in it
                    self.folder.rmdir()

    def _require_place(self, case: Case) -> None:
        """Refuse to write where a link of a borrowed campaign leads, and to remove what is none of ours.

        Raises:
            ShrinkError: another folder is there.
            OSError: a link is there.
        """
        if is_campaign(self.folder.parent):
            require_own_folder(self.folder)
        place = self.folder / case.name
        require_own_folder(place)
        if place.exists() and not is_run(place):
            raise ShrinkError(f"{place}: expected no such folder, or a run, which is replaced")

    def _shrink(self, runner: CaseRunner, case: Case, scenario: Scenario, on: Sequence[str]) -> ShrunkCase:
        first, run = runner.execute(case, scenario)
        kind = _expected(case, first, on)
        likely = _likely(run, kind) if run is not None else ()

        def fails(smaller: Scenario) -> bool:
            return smaller == scenario or _is_alike(kind, runner.execute(case, smaller)[0])

        interrupted = False
        try:
            found = shrink(scenario, fails, likely=likely, runs_max=self.runs_max, progress=self.watch)
        except ShrinkingInterrupted as interrupt:
            found, interrupted = interrupt.shrunk, True
        faults = len(scenario.plan().faults)
        return self._retained(
            runner, ShrunkCase(case, kind, faults, found, interrupted, self.folder, None, None, (), ())
        )

    def _retained(self, runner: CaseRunner, found: ShrunkCase) -> ShrunkCase:
        """Write the scenario, and keep one more run of it with its explanation."""
        scenario, name = found.shrunk.scenario, found.case.name
        file, place = self.folder / f"{name}.toml", self.folder / name
        head = f"# The smallest scenario found that {found.kind.words()} as {name} does.\n"
        put_in_place(RunFiles(), file, (head + tomli_w.dumps(to_dict(scenario))).encode())
        save_code(scenario, self.folder)
        if is_run(place):  # of an earlier shrinking
            remove(place)
        _, case_result = runner.execute(found.case, scenario)
        if case_result is None:
            return attrs.evolve(found, file=file)
        case_result.rename(place)
        if not found.kind.broken:
            return attrs.evolve(found, file=file, run=place)
        run = open_run(place)
        worst = _worst(run, found.kind)
        words, answer = explanation(worst[0].questions, run) if worst else ((), ())
        worst_of_all = worst[0] if worst else None
        return attrs.evolve(found, file=file, run=place, worst=worst_of_all, question=words, answer=answer)


def _expected(case: Case, first: CaseResult, on: Sequence[str]) -> FailureKind:
    """What a smaller scenario must do."""
    kind = failure_of(first)
    if kind is None:
        raise ShrinkError(f"{case.variant}, seed {case.seed}: its run is {first.word}, so there is nothing to shrink")
    missing = [name for name in on if name not in kind.broken]
    if missing:
        raise ShrinkError(f"--on {listed(missing)}: {case.variant}, seed {case.seed} {kind.words()}")
    return attrs.evolve(kind, broken=tuple(on)) if on else kind


def _is_alike(kind: FailureKind, case_result: CaseResult) -> bool:
    now = failure_of(case_result)
    return now is not None and kind.is_like(now)


def _worst(run: RunDirectory, kind: FailureKind) -> list[WorstFinding]:
    return [
        worst_finding for worst_finding in worst_findings(judge_run(run), run) if worst_finding.invariant in kind.broken
    ]


def _likely(path: Path, kind: FailureKind) -> tuple[str, ...]:
    """Ids of the faults behind the failure; they only decide what is tried first."""
    if not kind.broken:
        return ()
    run = open_run(path)
    try:
        return likely_faults(_worst(run, kind))
    except UnreadableTraceError:
        return ()
