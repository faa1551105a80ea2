"""`rmqemu compare`: two runs, or the variants of a campaign."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from emulator.base.errors import UserError
from emulator.base.extra import expect_extra
from emulator.campaign.directory import HEAD
from emulator.cli.judging import Judging
from emulator.cli.limits import read_limits, refuse_of_campaign, with_limits
from emulator.cli.terminal import complain


class CompareError(UserError):
    """What is to be compared is no pair of runs and no campaign."""


def compare_command(
    first: Path, others: Sequence[str], limits: Sequence[str], judging: Judging, *, as_json: bool
) -> None:
    """Compare what the words name: `RUN_A RUN_B`, or `CAMPAIGN` with two variants or none.

    Args:
        first: a run, or a campaign.
        others: another run; or two variants or none.
        limits: service limits in place of those of the runs, `KEY=VALUE`.
        judging: where two runs are judged.
        as_json: print JSON, of a campaign.

    Raises:
        UserError: they name something else, or it cannot be read.
    """
    given = read_limits(limits)
    if (first / HEAD).exists():
        refuse_of_campaign(given)
        expect_extra("compare of a campaign")
        from emulator.cli.compare_campaign import compare_campaign

        compare_campaign(first, others, as_json=as_json)
        return
    if len(others) != 1:
        raise CompareError(
            f"expected two runs, or a campaign and two of its variants or none; {first} is no campaign, and "
            f"{len(others)} more names were given"
        )
    _compare_runs(first, Path(others[0]), given, judging, as_json=as_json)


def _compare_runs(first: Path, second: Path, limits: Mapping[str, int], judging: Judging, *, as_json: bool) -> None:
    from emulator.analysis.rendering.picture import draw_two
    from emulator.comparison import compare_runs
    from emulator.comparison.judged import JudgedPair
    from emulator.comparison.told import comparison_lines
    from emulator.trace.run_directory import open_run

    if as_json:
        raise CompareError("--json: expected only with a campaign")
    runs = (open_run(first), open_run(second))
    found, both = compare_runs(*runs), judging.judge([first, second]).reports
    judged = JudgedPair(*(with_limits(report, limits) for report in both))
    for line in comparison_lines(found, judged):
        print(line)
    if not found.is_identical:
        picture = draw_two(judged.first, judged.second, first / f"beside-{second.resolve().name}.html")
        print(f"\npicture of both: {picture}")
    for run in runs:
        if run.broken_off():
            complain(f"{run.path.name}: {run.broken_off()}")
