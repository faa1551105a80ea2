"""Smaller scenarios that fail in the same way: parts are left out as long as the failure remains.

Pure apart from the question whether a scenario fails. May import `spec` and `base`.
"""

from emulator.shrinking.search import NothingToShrinkError, Play
from emulator.shrinking.stages import PLAYS_MOST, ShrinkingInterrupted, Shrunk, shrink

__all__ = ["PLAYS_MOST", "NothingToShrinkError", "Play", "ShrinkingInterrupted", "Shrunk", "shrink"]
