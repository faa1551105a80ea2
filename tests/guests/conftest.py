"""The helpers of this folder on the path; what is missing on this machine is the reason of a skip."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def need():
    """Skips where a program is not there."""

    def of(*programs: str) -> None:
        missing = [name for name in programs if shutil.which(name) is None]
        if missing:
            pytest.skip(f"{', '.join(missing)} not found on this machine")

    return of
