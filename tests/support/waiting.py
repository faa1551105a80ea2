"""Wait until something is so, however busy the machine is."""

import time
from collections.abc import Callable

PATIENCE_S = 120.0
"""Only a test that fails waits so long."""
_LOOK_EVERY_S = 0.02


def until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds.

    Args:
        condition: looked at again and again.
        patience_s: for how long at most.

    Raises:
        AssertionError: it did not come to hold.
    """
    give_up_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < give_up_s, f"waited {patience_s} s without success"
        time.sleep(_LOOK_EVERY_S)
