"""Two processes that take turns on one core: what disturbs one disturbs the other, so the ratio of their CPU holds."""

import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import attrs

from studies.bench.figures import Row, Sample
from studies.bench.trial import TrialError

PINNED = "b45528b85de87fc4d4a4626b1074b34149641af7"
PINNED_NAME = "0.1.0"
WORKLOADS = Path(__file__).parent / "workloads"
_ROOT = Path(__file__).parents[3]
_CACHE = _ROOT / ".bench"
_EXECUTED = Path(__file__).parent / "executed_workloads.py"
_TURN_S = 0.2
_POLL_S = 0.005


@attrs.frozen
class Cost:
    """What running a scenario once costs in a warm process."""

    cpu_s: float
    max_mib: float


def against_pinned(name: str, workload: Path, level: str, rounds: int) -> Row:
    """CPU of a workload at a level, next to the pinned release, which writes all rows."""
    earlier = pinned_release()
    pairs = [_pair(earlier, workload, level, first=number % 2) for number in range(rounds)]
    ours, theirs = (Sample(tuple(pair[side].cpu_s for pair in pairs)) for side in (1, 0))
    ratios = Sample(tuple(ours.cpu_s / before.cpu_s for before, ours in pairs))
    mib = max(ours.max_mib for _, ours in pairs)
    reference = f"{PINNED_NAME}, {theirs.median:.2f} s; {mib:.0f} MiB now"
    return Row(name, ours.median, "CPU s", ratios.spread_pct, reference, ratios.median)


def pinned_release() -> Path:
    """The packages of the pinned release, taken from the history once.

    Raises:
        TrialError: the history does not reach so far back.
    """
    there = _CACHE / PINNED
    if not there.exists():
        command = [
            "git",
            "-C",
            str(_ROOT),
            "archive",
            "--format=tar",
            PINNED,
            "emulator",
            "nodes",
            "faults",
            "examples",
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            raise TrialError(f"the history has no {PINNED[:7]} ({PINNED_NAME}); fetch all of it: git fetch --unshallow")
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            archive.extractall(there, filter="data")
    return there


def in_turns(commands: Sequence[Sequence[str]], environments: Sequence[dict[str, str]]) -> list[str]:
    """Run commands on one core, 0.2 s each in turn, to their ends; returns the last line of each.

    Raises:
        TrialError: one of them failed.
    """
    core = {min(os.sched_getaffinity(0))}
    processes = []
    for command, environment in zip(commands, environments, strict=True):
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        os.sched_setaffinity(process.pid, core)
        process.send_signal(signal.SIGSTOP)
        processes.append(process)
    running = list(processes)
    while running:
        for process in list(running):
            process.send_signal(signal.SIGCONT)
            if _ends_in_its_turn(process):
                running.remove(process)
            else:
                process.send_signal(signal.SIGSTOP)
    return [_last_line(process) for process in processes]


def _ends_in_its_turn(process: "subprocess.Popen[str]") -> bool:
    until_s = time.monotonic() + _TURN_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            return True
        time.sleep(_POLL_S)
    return False


def _last_line(process: "subprocess.Popen[str]") -> str:
    reported, complained = process.communicate()
    if process.returncode != 0:
        words = (complained.strip() or f"exit status {process.returncode}").splitlines()
        raise TrialError(f"{' '.join(map(str, process.args))}: {words[-1]}")  # type: ignore[arg-type]
    return reported.splitlines()[-1]


def _pair(earlier: Path, workload: Path, level: str, *, first: int) -> tuple[Cost, Cost]:
    """(cost with the earlier release, cost now); `first` says which of them begins."""
    command = [sys.executable, str(_EXECUTED), str(workload), level]
    paths = [str(earlier), str(_ROOT)]
    # Without the directory of executed.py in front: its neighbours have names of packages.
    environments = [{**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"} for path in paths]
    order = (0, 1) if not first else (1, 0)
    reported = in_turns([command] * 2, [environments[side] for side in order])
    costs = [Cost(*map(float, line.split())) for line in reported]
    return (costs[0], costs[1]) if not first else (costs[1], costs[0])
