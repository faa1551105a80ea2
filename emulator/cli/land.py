"""`rmqemu land`: lands runs and campaigns in a dataset."""

from collections.abc import Sequence
from pathlib import Path

from emulator.base.errors import UserError
from emulator.base.printing import print_line
from emulator.base.text import listed
from emulator.campaign.directory import opened
from emulator.campaign.landing import sources_at
from emulator.cli.terminal import BAD_INPUT, complain, progress_bar
from emulator.lake.errors import DatasetError
from emulator.lake.filesystems import Location, located
from emulator.lake.landing import Landed, land
from emulator.lake.snapshot import Snapshot, read_snapshot
from emulator.lake.sources import RunSource, sources_of

_AGAIN = "the same command goes on from there"


class LandingInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a landing; the text counts the runs that were landed."""


def land_command(paths: Sequence[Path], uri: str) -> int:
    """Land runs, and print what became of them.

    Args:
        paths: run directories, folders of them, and campaigns.
        uri: of the dataset.

    Returns:
        The exit status: 0, or 2 if a run was refused.

    Raises:
        UserError: a path names no runs, or the dataset cannot be read or written.
        LandingInterrupted: Ctrl-C.
    """
    location = located(uri)
    sources = _sources(paths)
    ended = 0
    with progress_bar("landing") as show:

        def count(_: RunSource) -> None:
            nonlocal ended
            ended += 1
            show(ended / len(sources))

        try:
            whole = land(sources, uri, on_run=count)
        except KeyboardInterrupt:
            raise LandingInterrupted(f"interrupted; {_there(location, sources)}; {_AGAIN}") from None
        except DatasetError as error:
            raise UserError(f"{error}; {_there(location, sources)}; when that is mended, {_AGAIN}") from error
    for refused in whole.refused:
        complain(refused.problem)
    releases = (read_snapshot(location) or Snapshot()).releases
    if len(releases) > 1:
        complain(f"{location.uri} has runs of the releases {listed(releases)}, which may differ from each other")
    _print(whole, location.uri)
    return BAD_INPUT if whole.refused else 0


def _sources(paths: Sequence[Path]) -> tuple[RunSource, ...]:
    every: list[RunSource] = []
    for path in paths:
        found = sources_at(path)
        if not found:
            there = opened(path).dataset_uri
            hint = 'keep = "all", or rmqemu campaign --to' if there is None else f"its runs are in {there}"
            raise UserError(f"{path}: no trace of this campaign is stored: {hint}")
        every += found
    return sources_of(every)


def _there(location: Location, sources: Sequence[RunSource]) -> str:
    """How many of the runs the dataset has."""
    try:
        snapshot = read_snapshot(location) or Snapshot()
    except DatasetError:
        return "nothing was changed"
    there = sum(source.run in snapshot.runs for source in sources)
    if not there:
        return "nothing was changed"
    return f"{there:,} of {len(sources):,} runs are in {location.uri}"


def _print(whole: Landed, uri: str) -> None:
    if whole.runs:
        print_line(f"landed {_runs(whole.runs)}: {whole.rows:,} rows, {whole.bytes:,} bytes")
    if whole.skipped:
        print_line(f"skipped {_runs(whole.skipped)} that the dataset has: {listed(whole.skipped)}")
    if whole.refused:
        print_line(f"refused {_runs(whole.refused)}")
    print_line(uri)


def _runs(every: Sequence[object]) -> str:
    return f"{len(every):,} run{'' if len(every) == 1 else 's'}"
