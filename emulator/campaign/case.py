"""One case, in a process of its own: its run, the judgement of it, and what stays of its trace."""

import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from emulator.analysis.arrow_tables import tables_of
from emulator.analysis.judge import judge_run
from emulator.analysis.report import RulesVerdict
from emulator.base.errors import one_line
from emulator.campaign.campaign import Case, Keep
from emulator.campaign.directory import RUNS, UNLANDED, CampaignDirectory, remove
from emulator.campaign.results import CaseResult, Outcome
from emulator.run import run_scenario
from emulator.run.run import RunError
from emulator.spec import Scenario, loads
from emulator.trace.files import ScratchFiles
from emulator.trace.run_directory import RunDirectory, open_run
from emulator.trace.schema import TraceLevel

_WARM_UP = """
[scenario]
name = "warm-up"
run_for_s = 1
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[consumer]]
group = "shop"
topics = ["orders"]
[[producer]]
group = "tills"
topic = "orders"
"""

_FILES = ScratchFiles()
"""A campaign that is interrupted removes the folder while cases of it are still being run."""


class DiskError(Exception):
    """A file could not be written, so no case can be run; the text says which and why."""


def execute_case(
    case: Case, directory: CampaignDirectory, keep: Keep, scratch: Path, *, lands: bool = False
) -> CaseResult:
    """Run a case, judge it, and keep its trace or remove it.

    Args:
        case: to run.
        directory: of the campaign.
        keep: which traces stay.
        scratch: folder for the run, on the file system of the campaign.
        lands: whether a trace that does not stay is needed until it has been landed.

    Returns:
        The case without what it has cost.

    Raises:
        DiskError: the trace could not be written.
        OSError: it could not be retained.
    """
    case_result = execute_scenario(case, directory.scenario(case), scratch, directory.level, campaign=directory.digest)
    return stays(case_result, directory, keep, scratch, lands=lands)


def execute_scenario(
    case: Case,
    scenario: Scenario,
    scratch: Path,
    level: TraceLevel = TraceLevel.FULL,
    *,
    campaign: str = "",
) -> CaseResult:
    """Run a scenario as a case, and judge it; its run stays in `scratch`.

    Args:
        case: by which the answer names it.
        scenario: with its seed.
        scratch: folder for the run.
        level: which rows the trace has.
        campaign: digest of the campaign to which the run belongs; empty: to none.

    Raises:
        DiskError: the trace could not be written.
    """
    try:
        run = open_run(run_scenario(scenario, level=level, runs=scratch, files=_FILES, campaign=campaign).path)
        return _judged(case, run)
    except RunError as error:
        if isinstance(error.__cause__, OSError):
            raise DiskError(str(error)) from error
        return _crashed(case, error)
    except OSError as error:
        raise DiskError(f"{error.filename or scratch}: {error.strerror or error}") from error
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the campaign
        return _crashed(case, error)


def run_in(scratch: Path) -> Path | None:
    """The run directory in a folder in which one case was run; None if it did not get so far."""
    return next((path for path in scratch.iterdir() if path.is_dir()), None)


def stays(
    case_result: CaseResult, directory: CampaignDirectory, keep: Keep, scratch: Path, *, lands: bool = False
) -> CaseResult:
    """Keep the trace of a case that was run, or leave it to be removed: with its folder, or when it has landed."""
    run = run_in(scratch)
    if run is None:
        return case_result
    trace = f"{RUNS}/{case_result.case.name}"
    # What an error says of the run must hold where it will be.
    named = attrs.evolve(case_result, reasons=tuple(reason.replace(str(run), trace) for reason in case_result.reasons))
    if keep is Keep.NONE or (keep is Keep.FAILURES and case_result.verdict is RulesVerdict.VALID):
        if lands and case_result.ended:
            _move(run, directory.path / UNLANDED / case_result.case.name)
        return named
    _move(run, directory.path / trace)
    return attrs.evolve(named, trace=trace)


def _move(run: Path, place: Path) -> None:
    remove(place)  # of a repetition, or of an emulator that was killed before it said so
    place.parent.mkdir(exist_ok=True)
    run.rename(place)


@cache
def warm_up() -> None:
    """Run a tiny run, once in a process, so that children need not import and prepare again what every run needs."""
    # What goes wrong here goes wrong in each case, and is reported there.
    with TemporaryDirectory(prefix="rmqemu-warm-up-") as folder, suppress(Exception):
        tables_of(judge_run(open_run(run_scenario(loads(_WARM_UP, "warm-up"), runs=Path(folder)).path)))


def _judged(case: Case, run: RunDirectory) -> CaseResult:
    report = judge_run(run)
    return CaseResult(
        case=case,
        outcome=Outcome.COMPLETE,
        verdict=report.verdict,
        service=report.service,
        reasons=report.reasons,
        digest=str(run.manifest["digest"]),
        rows=sum(run.manifest["rows"].values()),
        virtual_s=float(run.manifest["virtual_s"]),
        findings=tables_of(report),
    )


def _crashed(case: Case, error: Exception) -> CaseResult:
    traceback.print_exception(error)  # to the output of the case, which stays next to its trace
    return CaseResult(case=case, outcome=Outcome.CRASHED, reasons=(one_line(f"{type(error).__name__}: {error}"),))
