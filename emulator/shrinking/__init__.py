"""Smaller scenarios that fail in the same way: parts are left out as long as the failure remains.

Pure apart from the question whether a scenario fails. May import `spec` and `base`.
"""

from emulator.shrinking.search import NothingToShrinkError, ShrinkRun
from emulator.shrinking.stages import RUNS_MAX, ShrinkingInterrupted, Shrunk, shrink

__all__ = ["RUNS_MAX", "NothingToShrinkError", "ShrinkRun", "ShrinkingInterrupted", "Shrunk", "shrink"]
