"""One run from its scenario to its manifest, and the same run once more to compare."""

from emulator.run.run import RunError, RunInterrupted, RunResult, run_scenario

__all__ = ["RunError", "RunInterrupted", "RunResult", "run_scenario"]
