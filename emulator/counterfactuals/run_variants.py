"""Executes variants of a run, some at a time, each in a forked child of a warm process; reads what each has done."""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from emulator.analysis.findings.impact import IMPACTS
from emulator.analysis.judge import judge_run
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.base.errors import UserError
from emulator.base.process_wide import frozen_objects
from emulator.campaign.campaign import TIMEOUT_MS, cores
from emulator.campaign.case import warm_up
from emulator.campaign.forked import EndedChild, Forked
from emulator.counterfactuals.harms import Harm
from emulator.counterfactuals.repetition import Repetition, Tables
from emulator.run import run_scenario
from emulator.spec import SpecError
from emulator.trace.files import ScratchFiles
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel

_TICK_S = 0.25
_FILES = ScratchFiles()


@attrs.frozen
class VariantResult:
    """What became of a variant."""

    amounts: Mapping[Harm, float]
    """Every impact, and the violations of each invariant; what is missing is 0."""
    digest: str = ""
    problem: str = ""
    """Why it could not be repeated, in one line; empty: it was."""


@attrs.frozen
class RunVariant:
    """A scenario to execute."""

    tables: Tables
    level: TraceLevel = TraceLevel.FINDINGS


@attrs.frozen
class _Seat:
    number: int
    variant: RunVariant
    folder: Path


def execute_variants(
    repetition: Repetition,
    variants: Sequence[RunVariant],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[VariantResult]:
    """Execute variants of a run; returns what became of each, in their order.

    Args:
        repetition: of the run.
        variants: to execute.
        jobs: at the same time; None: as many as there are cores.
        progress: called with how many have ended, and how many there are, about four times a second.
    """
    warm_up()
    at_once = jobs or cores()
    found: dict[int, VariantResult] = {}
    scratch = Path(tempfile.mkdtemp(prefix="rmqemu-again-"))
    try:
        waiting = [
            _Seat(number, variant, scratch / str(number)) for number, variant in reversed([*enumerate(variants)])
        ]
        with (
            frozen_objects(),
            Forked[_Seat](
                lambda seat: _work(repetition, seat), lambda seat: seat.folder / "output.txt", TIMEOUT_MS / 1_000
            ) as children,
        ):
            while waiting or children:
                while waiting and len(children) < at_once:
                    seat = waiting.pop()
                    seat.folder.mkdir()
                    children.start(seat)
                for ended in children.wait(_TICK_S):
                    found[ended.item.number] = _result(ended)
                    shutil.rmtree(ended.item.folder, ignore_errors=True)
                if progress is not None:
                    progress(len(found), len(variants))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return [found[number] for number in range(len(variants))]


def _work(repetition: Repetition, seat: _Seat) -> bytes:
    try:
        scenario = repetition.scenario(seat.variant.tables)
        run = open_run(run_scenario(scenario, level=seat.variant.level, runs=seat.folder, files=_FILES).path)
    except (UserError, SpecError) as error:
        return json.dumps({"problem": str(error)}).encode()
    report = judge_run(run)
    amounts = [(item.kind, item.subject, item.amount) for item in report.of(IMPACTS)]
    amounts += [(oracle.id, "", float(len(oracle.violations(report.of(oracle.table))))) for oracle in ORACLES]
    return json.dumps({"digest": run.manifest["digest"], "amounts": amounts}).encode()


def _result(ended: EndedChild[_Seat]) -> VariantResult:
    if ended.exit_code != 0:
        took = f"it had not ended after {TIMEOUT_MS / 1_000:g} s of wall time"
        return VariantResult({}, problem=took if ended.late else f"its process ended with status {ended.exit_code}")
    answer = json.loads(ended.answer)
    if "problem" in answer:
        return VariantResult({}, problem=answer["problem"])
    return VariantResult({(kind, subject): amount for kind, subject, amount in answer["amounts"]}, answer["digest"])
