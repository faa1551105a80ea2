"""One run of one thing in a process of its own, so that no run inherits the heap of another.

`python -m studies.bench.trial MODULE FUNCTION PARAMETERS` prints what it
measured; that and the parameters are JSON on one line. A rival imports nothing
of ours, and no one pays for what others import.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_GARBAGE_THRESHOLD = 100_000
"""As `emulator.machine.world` sets it, for the rivals, too."""
_LARGE_BLOCK_BYTES = 16 * 1024 * 1024


class TrialError(Exception):
    """A run failed; says which, and its last words."""


def run_trial(trial: Callable[..., list[float]], **parameters: Any) -> list[float]:
    """Run a trial in a process of its own.

    Args:
        trial: a function of a module; its parameters are plain values.

    Returns:
        What it measured, one value or several.

    Raises:
        TrialError: it failed.
    """
    name = trial.__name__
    command = [sys.executable, "-m", "studies.bench.trial", trial.__module__, name, json.dumps(parameters)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TrialError(f"{name}: {(done.stderr.strip() or f'exit status {done.returncode}').splitlines()[-1]}")
    values: list[float] = json.loads(done.stdout.splitlines()[-1])
    return values


def main() -> None:
    """Run the trial that the command line names."""
    module, name, parameters = sys.argv[1:]
    trial = getattr(import_module(module), name)
    _age_allocator()
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD, *gc.get_threshold()[1:])
    print(json.dumps(trial(**json.loads(parameters))))  # noqa: T201 - it is the result


def _age_allocator() -> None:
    """Give every trial the heap of a process that has lived a little.

    glibc maps blocks of more than 128 KiB afresh until one has been freed, which the imports of a bigger program
    do by chance. asyncio receives into 256 KiB: in a bare process it is three times as slow (23 instead of 67
    thousand requests/s), and the comparison would be with the allocator.
    """
    bytes(_LARGE_BLOCK_BYTES)


if __name__ == "__main__":
    main()
