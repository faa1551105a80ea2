"""`rmqemu report`: one page about a run, or about a campaign."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.analysis.report import symptoms
from emulator.base.errors import UserError
from emulator.base.printing import print_line
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import is_campaign
from emulator.cli.judging import Judging
from emulator.cli.limits import read_limits, refuse_of_campaign, with_limits
from emulator.cli.terminal import complain
from emulator.report import campaign_page, run_page
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.run_directory import open_run

if TYPE_CHECKING:
    from emulator.counterfactuals.repeated_run import RepeatRun

PAGE = "report.html"
"""Name of the page, in the directory of the run or campaign."""


class ReportError(UserError):
    """The page cannot be written."""


def report_command(
    path: Path,
    out: Path | None,
    top: int | None,
    limits: Sequence[str],
    judging: Judging,
    again: "RepeatRun | None" = None,
) -> None:
    """Write the page, and print what is most severe in it.

    Args:
        path: directory of a run or of a campaign.
        out: the file to write; None: `PAGE` in the directory.
        top: how many violations are explained; None: the worst of each invariant.
        limits: service limits in place of those of the run, `KEY=VALUE`.
        judging: where the run is judged.
        again: what of the run to repeat; None: nothing.

    Raises:
        UserError: the directory is neither, or cannot be read; or the page cannot be written.
    """
    target, given = out or path / PAGE, read_limits(limits)
    if is_campaign(path):
        refuse_of_campaign(given)
        if again is not None:
            raise ReportError(f"--verify and --remedies: expected the directory of a run, not of a campaign: {path}")
        dataset = CampaignResults(path)
        if unjudged := dataset.unjudged():
            complain(f"{len(unjudged):,} runs have not been judged: the command that executed them judges them")
        _write(target, campaign_page(dataset))
    else:
        run = open_run(path)
        report = with_limits(judging.reports([path])[0], given)
        repeated = None if again is None else again.execute(report, run)
        _write(target, run_page(report, run, top=top, repeated=repeated))
        for symptom in symptoms(report)[:1]:
            print_line(f"{symptom.kind}: {symptom.text}")
        print_line(f"rules {report.verdict}, service {report.service}: {report.run_id}")
    print_line(target)


def _write(target: Path, page: str) -> None:
    try:
        put_in_place(RunFiles(), target, page.encode())
    except OSError as error:
        raise ReportError(f"{target}: cannot be written: {error.strerror}") from error
