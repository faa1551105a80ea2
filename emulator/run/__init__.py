"""One run, from its scenario to its manifest, and its repetition for comparison.

May import `console` and what is below it.
"""

from emulator.run.run import EmulatorBugError, RunError, RunInterrupted, RunResult, run_scenario

__all__ = ["EmulatorBugError", "RunError", "RunInterrupted", "RunResult", "run_scenario"]
