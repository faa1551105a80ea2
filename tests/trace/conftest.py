"""The tiny worlds that tests of the core run in are on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "network"))
