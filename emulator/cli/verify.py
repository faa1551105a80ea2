"""`rmqemu verify`: repeats a run and compares the traces, or checks that all of a campaign belongs to it."""

from pathlib import Path

from emulator.campaign.directory import is_campaign, opened, without_digest
from emulator.campaign.verified import Checked, check_campaign
from emulator.cli.terminal import BAD_INPUT, VIOLATED, complain, progress_bar
from emulator.run.verify import describe, repeat
from emulator.trace.run_directory import open_run

_WIDTH = 16
_PROBLEMS_MOST = 20


def verify_command(path: Path) -> int:
    """Verify a run or a campaign, and print what was found.

    Args:
        path: of its directory.

    Returns:
        The exit status: 0; 1 if a repetition differs, or if something does not belong to the campaign; 2 if the
        campaign has no digest.

    Raises:
        UserError: it is neither, is damaged, or cannot be repeated.
    """
    if is_campaign(path):
        return _verify_campaign(path)
    difference = repeat(open_run(path))
    print("identical" if difference is None else describe(difference))
    return 0 if difference is None else VIOLATED


def _verify_campaign(path: Path) -> int:
    directory = opened(path)
    every: list[Checked] = []
    with progress_bar("verifying") as show:
        every.extend(check_campaign(directory, show))
    for checked in every:
        print(f"{checked.what:<{_WIDTH}}{checked.words}")
        for problem in checked.problems[:_PROBLEMS_MOST]:
            print(f"  {problem}")
        if len(checked.problems) > _PROBLEMS_MOST:
            print(f"  and {len(checked.problems) - _PROBLEMS_MOST:,} more")
    if any(checked.problems for checked in every):
        return VIOLATED
    if not directory.digest:
        complain(without_digest(directory))
        return BAD_INPUT
    print("everything belongs to the campaign")
    return 0
