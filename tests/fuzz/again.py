"""`python -m fuzz.again SEED...`: runs scenarios once more, in this process, and prints their digests.

The caller starts it with another PYTHONHASHSEED.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fuzz.judged_run import judge
from fuzz.random_scenario import random_tables, scenario_of

_TESTS = Path(__file__).parents[1]


def digests_again(seeds: Sequence[int]) -> Mapping[int, str]:
    """Mapping seed -> digest of its run in a process with another PYTHONHASHSEED; without those that failed."""
    mine = os.environ.get("PYTHONHASHSEED", "random")
    other = "4711" if mine != "4711" else "815"
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.again", *map(str, seeds)],
        env={**os.environ, "PYTHONHASHSEED": other, "PYTHONPATH": str(_TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    pairs = (line.split() for line in done.stdout.splitlines())
    return {int(seed): digest for seed, digest in pairs}


def main() -> None:
    """Run the seeds of the command line."""
    for seed in map(int, sys.argv[1:]):
        sys.stdout.write(f"{seed} {judge(scenario_of(random_tables(seed))).digest or 'none'}\n")


if __name__ == "__main__":
    main()
