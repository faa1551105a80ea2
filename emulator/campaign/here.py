"""Plays cases on this machine: in forked children of a warm process, some at a time."""

import gc
import json
import re
import signal
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from shutil import rmtree

import attrs

from emulator.base.errors import one_line
from emulator.campaign.campaign import Case, Keep
from emulator.campaign.case import DiskError, play_case, stays, warm_up
from emulator.campaign.directory import UNDER_WAY, CampaignDirectory
from emulator.campaign.forked import Ended, Forked
from emulator.campaign.parts import PARTS, Part
from emulator.campaign.played import Outcome, Played, line_of, read_line
from emulator.trace.files import RunFiles
from emulator.trace.seals import BrokenSealError

TICK_S = 0.25
_FILES = RunFiles()
OUTPUT = "output.txt"
"""What a process of a case printed, beside its trace: the traceback of a crash, or where it hung."""
_FRAME = re.compile(r'^  File "(?:.*[/\\])?(.+?)", line (\d+) in (.+)$', re.MULTILINE)


@attrs.frozen
class _Seat:
    """A case that is being played, and the folder in which it is."""

    case: Case
    scratch: Path


@attrs.frozen
class Terms:
    """What all cases of a campaign have in common, besides their scenarios."""

    keep: Keep
    timeout_ms: int


def play_here(
    directory: CampaignDirectory, cases: Sequence[Case], terms: Terms, *, jobs: int, files: RunFiles = _FILES
) -> Iterator[Played | None]:
    """Play cases, and append their lines to a part.

    Args:
        directory: of the campaign.
        cases: to play, in this order.
        terms: which traces stay, and how long a run may take.
        jobs: cases at the same time.
        files: to write the part with.

    Yields:
        Each case when its line has been written; None about four times a second.

    Raises:
        DiskError: a file could not be written; the cases that are under way are given up.
    """
    if not cases:
        return
    warm_up()
    # Children share the memory of what is there now, as long as no collection touches it.
    gc.collect()
    gc.freeze()
    part = Part(directory.path / PARTS, files)
    waiting = iter(cases)
    try:
        work = partial(_work, directory, terms.keep)
        with Forked[_Seat](work, lambda seat: seat.scratch / OUTPUT, terms.timeout_ms / 1_000) as children:
            while True:
                while len(children) < jobs and (case := next(waiting, None)) is not None:
                    scratch = Path(tempfile.mkdtemp(prefix=f"{case.name}-", dir=directory.path / UNDER_WAY))
                    children.start(_Seat(case, scratch))
                if not children:
                    return
                for ended in children.wait(TICK_S):
                    played = _played(ended, directory, terms)
                    part.append(played)
                    rmtree(ended.item.scratch, ignore_errors=True)
                    yield played
                yield None
    except OSError as error:
        raise DiskError(f"{error.filename or directory.path}: {error.strerror or error}") from error
    finally:
        gc.unfreeze()


def _work(directory: CampaignDirectory, keep: Keep, seat: _Seat) -> bytes:
    """The answer of a child: the line of the case, or why the disk cannot take it."""
    try:
        return line_of(play_case(seat.case, directory, keep, seat.scratch)).encode()
    except (DiskError, OSError) as error:
        return json.dumps({"disk": str(error)}).encode()


def _played(ended: Ended[_Seat], directory: CampaignDirectory, terms: Terms) -> Played:
    """What became of the case of a child.

    Raises:
        DiskError: the child could not write.
    """
    scratch = ended.item.scratch
    output = (scratch / OUTPUT).read_text(encoding="utf-8", errors="replace")
    if ended.exit_code == 0:
        played = _answered(ended)
    else:
        played = stays(_died(ended, output, terms), directory, terms.keep, scratch)
    if played.trace and output:
        (scratch / OUTPUT).rename(directory.path / played.trace / OUTPUT)
    return attrs.evolve(played, cpu_s=round(ended.cpu_s, 3), wall_s=round(ended.wall_s, 3))


def _answered(ended: Ended[_Seat]) -> Played:
    try:
        return read_line(ended.answer)
    except BrokenSealError:
        raise DiskError(json.loads(ended.answer)["disk"]) from None


def _died(ended: Ended[_Seat], output: str, terms: Terms) -> Played:
    outcome = Outcome.HUNG if ended.late else Outcome.CRASHED
    frame = _FRAME.search(output)
    where = f", in {frame[3]} ({frame[1]}:{frame[2]})" if frame else ""
    late = f"it had not ended after {terms.timeout_ms / 1_000:g} s of wall time{where}"
    text = late if ended.late else _death(output, ended.exit_code, where)
    return Played(case=ended.item.case, outcome=outcome, reasons=(one_line(text),))


def _death(output: str, exit_code: int, where: str) -> str:
    if exit_code == -signal.SIGKILL:
        return "its process was killed by SIGKILL, as the kernel does when memory runs out"
    if exit_code < 0:
        name = next((it.name for it in signal.Signals if it == -exit_code), f"signal {-exit_code}")
        return f"its process was killed by {name}{where}"
    last = (output.strip().splitlines() or ["without a word"])[-1]
    return f"its process ended with status {exit_code}: {last}"
