"""One kill: a victim, SIGKILL at an instant, and what can be read of its run."""

import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import attrs

from emulator.time.mode import TimeMode
from emulator.trace.recorder import WRITE_EVERY_S
from emulator.trace.run_directory import NotARunError, RunEnd, open_run
from emulator.trace.schema import TABLES
from support.run_rows import table_rows

SLACK_S = 0.25
"""How much later than promised rows may be written."""
_ANALYZED = 2
"""Exit status of `rmqemu analyze`: unknown."""


@attrs.frozen
class Kill:
    """What a kill has left."""

    mode: str
    after_s: float
    """Since it said that its run began."""
    rows: int = 0
    emulated_s: float = 0.0
    missing_s: float = 0.0
    """Wall seconds before the kill in which the oldest row was recorded that is known to be missing."""
    pause_s: float = 0.0
    """Longest time in which the victim reported nothing: on a busy machine it does not run all the time."""
    began: bool = True
    """Whether it had traced anything."""
    analyzed: bool = False
    """Whether `rmqemu analyze` has judged it."""
    problem: str = ""
    """What is wrong with what was left; empty: all rows up to some seq are there, and that is late enough."""


def kill(mode: TimeMode, after_s: float, *, analyze: bool = False) -> Kill:
    """Start a victim, kill it, and read its run.

    Args:
        mode: time mode of the victim.
        after_s: wall seconds from the beginning of its run to the kill.
        analyze: whether `rmqemu analyze` must be able to judge it, too.
    """
    with tempfile.TemporaryDirectory(prefix="rmqemu-kills-") as runs:
        killed_s, answer = _killed(mode, after_s, Path(runs))
        reports = [(float(wall_s), int(seq)) for wall_s, seq in (line.split() for line in answer[1:])]
        died = Kill(mode, after_s, began=bool(reports))
        if not answer:
            return attrs.evolve(died, problem="the victim ended before its run began")
        run = Path(answer[0])
        try:
            opened = open_run(run)
        except NotARunError as error:
            return attrs.evolve(died, problem=str(error))
        seqs = sorted(row["seq"] for table in TABLES for row in table_rows(run, table, ("seq",)))
        missing = [wall_s for wall_s, seq in reports if seq > len(seqs)]
        died = attrs.evolve(
            died,
            rows=len(seqs),
            emulated_s=opened.end_ns / 1e9,
            pause_s=_longest_pause_s([wall_s for wall_s, _ in reports]),
            missing_s=max(0.0, killed_s - missing[0]) if missing else 0.0,
            analyzed=analyze,
        )
        return attrs.evolve(died, problem=_problem(died, seqs, opened.ended, run))


def _killed(mode: TimeMode, after_s: float, runs: Path) -> tuple[float, list[str]]:
    """(instant of the kill, whole lines that the victim had printed)."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "studies.kills.victim", mode, str(runs)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        first = victim.stdout.readline()
        time.sleep(after_s)
        killed_s = time.monotonic()
        victim.kill()
        output = first + victim.stdout.read()
    return killed_s, output.split("\n")[:-1]


def _longest_pause_s(instants_s: list[float]) -> float:
    return max((later_s - before_s for before_s, later_s in pairwise(instants_s)), default=0.0)


def _problem(died: Kill, seqs: list[int], ended: RunEnd, run: Path) -> str:
    if ended is not RunEnd.KILLED:
        return f"it is called {ended}"
    if seqs != list(range(1, len(seqs) + 1)):
        return "seq has gaps"
    if died.missing_s > WRITE_EVERY_S + SLACK_S + died.pause_s:
        return f"a row of {died.missing_s:.2f} s before the kill is missing"
    return _problem_of_analysis(run) if died.analyzed else ""


def _problem_of_analysis(run: Path) -> str:
    command = [sys.executable, "-m", "emulator.cli", "analyze", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == _ANALYZED and done.stdout.startswith("rules unknown"):
        return ""
    return f"rmqemu analyze ended with {done.returncode}: {' '.join((done.stdout or done.stderr).split())[:200]}"
