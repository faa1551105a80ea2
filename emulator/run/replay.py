"""`python -m emulator.run.replay RUN RUNS`: run again what a manifest says, below RUNS; prints the new directory."""

import sys
from pathlib import Path

from emulator.run.run import run_scenario
from emulator.spec import from_dict
from emulator.time.mode import TimeMode
from emulator.trace.run_directory import open_run


def main(run: str, runs: str) -> None:
    """Repeat a run."""
    manifest = open_run(run).manifest
    result = run_scenario(from_dict(manifest["scenario"]), mode=TimeMode(manifest["mode"]), runs=Path(runs))
    sys.stdout.write(f"{result.path}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
