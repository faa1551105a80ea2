"""`rmqemu verify`: repeats a run and compares the traces, or checks that all of a campaign belongs to it."""

from pathlib import Path

from emulator.base.printing import print_line
from emulator.campaign.directory import is_campaign, opened, without_digest
from emulator.campaign.verified import Checked, check_campaign
from emulator.cli.terminal import BAD_INPUT, VIOLATED, complain, progress_bar, warn_of_changed_log
from emulator.run.verify import describe, other_versions, repeat
from emulator.trace.run_directory import open_run

_WIDTH = 16
_PROBLEMS_MAX = 20


def verify_command(path: Path, *, allow_code: bool = False) -> int:
    """Verify a run or a campaign, and print what was found.

    Args:
        path: of its directory.
        allow_code: whether the scenario of a run may run code that it names.

    Returns:
        The exit status: 0; 1 if a repetition differs, or if something does not belong to the campaign; 2 if the
        campaign has no digest.

    Raises:
        UserError: it is neither, is damaged, or cannot be repeated.
    """
    if is_campaign(path):
        return _verify_campaign(path)
    run = open_run(path)
    warn_of_changed_log(run.path)
    difference = repeat(run, allow_code=allow_code)
    for line in ["identical"] if difference is None else describe(difference):
        print_line(line)
    for version in other_versions(run):
        print_line(f"  note: made with {version}")
    return 0 if difference is None else VIOLATED


def _verify_campaign(path: Path) -> int:
    directory = opened(path)
    every: list[Checked] = []
    with progress_bar("verifying") as show:
        every.extend(check_campaign(directory, show))
    for checked in every:
        print_line(f"{checked.what:<{_WIDTH}}{checked.words}")
        for problem in checked.problems[:_PROBLEMS_MAX]:
            print_line(f"  {problem}")
        if len(checked.problems) > _PROBLEMS_MAX:
            print_line(f"  and {len(checked.problems) - _PROBLEMS_MAX:,} more")
    if any(checked.problems for checked in every):
        return VIOLATED
    if not directory.digest:
        complain(without_digest(directory))
        return BAD_INPUT
    print_line("everything belongs to the campaign")
    return 0
