"""The three time modes."""

from enum import StrEnum


class TimeMode(StrEnum):
    """How time passes and what carries frames."""

    LIVE = "live"
    """Real time, loopback TCP."""
    FAST = "fast"
    """Virtual time, loopback TCP."""
    SIM = "sim"
    """Virtual time, in memory."""
