"""How finely consumers and brokers count the time of calculations."""

from enum import StrEnum


class AllocationTime(StrEnum):
    """How finely the time of an allocation's calculation is counted; not of RocketMQ."""

    NONE = "none"
    """Not at all: an allocation is there at once."""
    MILLISECONDS = "ms"
    """In whole milliseconds, as RocketMQ's clocks do; what takes less takes no time."""
    MICROSECONDS = "us"
    """In whole microseconds."""
