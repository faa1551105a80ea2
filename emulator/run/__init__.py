"""One run, from its scenario to its manifest, and its repetition for comparison.

May import `console` and what is below it.
"""

from emulator.run.run import RunError, RunInterrupted, RunResult, run_scenario

__all__ = ["RunError", "RunInterrupted", "RunResult", "run_scenario"]
