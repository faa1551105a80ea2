"""The helpers of this folder, of desks and of whole clusters, on the path."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "verbs"), str(HERE.parent / "scenarios"), str(HERE.parent / "commands")]
