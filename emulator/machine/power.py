"""Whether an emulated machine runs; verbs name its states, so nothing of a world is imported here."""

from enum import StrEnum


class PowerState(StrEnum):
    """The power state of a machine and its process."""

    DOWN = "down"
    RUNNING = "running"
    SUSPENDED = "suspended"
    POWERED_OFF = "powered off"


class PowerStateError(Exception):
    """The power state does not allow the action."""
