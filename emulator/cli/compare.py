"""`rmqemu compare`: two runs, or the variants of a campaign or a dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from emulator.base.errors import UserError
from emulator.base.extra import require_extra
from emulator.base.printing import print_line
from emulator.campaign.directory import is_campaign
from emulator.cli.judging import Judging
from emulator.cli.limits import read_limits, refuse_of_campaign, with_limits
from emulator.cli.terminal import complain
from emulator.lake.sources import is_dataset


class CompareError(UserError):
    """What is to be compared is no pair of runs, no campaign and no dataset."""


def compare_command(
    first: str, others: Sequence[str], limits: Sequence[str], judging: Judging, *, as_json: bool, every: bool = False
) -> None:
    """Compare what the words name: `RUN_A RUN_B`, or `CAMPAIGN` or `DATASET` with two variants or none.

    Args:
        first: a run, a campaign, or a dataset.
        others: another run; or two variants or none.
        limits: service limits in place of those of the runs, `KEY=VALUE`.
        judging: where runs are judged.
        as_json: print JSON, of variants.
        every: of two runs all that differs; else the answer.

    Raises:
        UserError: they name something else, or it cannot be read.
    """
    given = read_limits(limits)
    if is_campaign(first) or is_dataset(first):
        refuse_of_campaign(given)
        require_extra("compare of a campaign" if is_campaign(first) else "compare of a dataset")
        from emulator.cli.compare_campaign import compare_campaign, compare_dataset

        if is_campaign(first):
            compare_campaign(first, others, judging, as_json=as_json)
        else:
            compare_dataset(first, others, judging, as_json=as_json)
        return
    if len(others) != 1:
        raise CompareError(
            f"expected two runs, or a campaign or a dataset, and two of its variants or none; {first} is no campaign "
            f"and no dataset, and {len(others)} more names were given"
        )
    _compare_runs(Path(first), Path(others[0]), given, judging, as_json=as_json, every=every)


def _compare_runs(
    first: Path, second: Path, limits: Mapping[str, int], judging: Judging, *, as_json: bool, every: bool
) -> None:
    from emulator.analysis.rendering.picture import draw_two
    from emulator.comparison import compare_runs
    from emulator.comparison.comparison_text import comparison_lines
    from emulator.comparison.judged_pair import JudgedPair
    from emulator.trace.run_directory import open_run

    if as_json:
        raise CompareError("--json: expected only with a campaign or a dataset")
    runs = (open_run(first), open_run(second))
    found, both = compare_runs(*runs), judging.reports([first, second])
    judged = JudgedPair(*(with_limits(report, limits) for report in both))
    for line in comparison_lines(found, judged, every=every):
        print_line(line)
    if not found.is_identical:
        picture = draw_two(judged.first, judged.second, first / f"compared-with-{second.resolve().name}.html")
        print_line()
        print_line(f"picture of both: {picture}")
    for run in runs:
        if run.broken_off():
            complain(f"{run.path.name}: {run.broken_off()}")
