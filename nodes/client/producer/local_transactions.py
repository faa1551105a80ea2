"""Local transactions of an emulated application."""

from enum import StrEnum

from nodes.values import frozen


class LocalTransactionState(StrEnum):
    """The state of a local transaction."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"
    """The broker will check."""


@frozen
class LocalTransactions:
    """What an application does for each message, and what it answers to later checks."""

    state: LocalTransactionState
    """The result of a local transaction."""
    duration_ms: int = 0
    """Its duration."""
    check_state: LocalTransactionState | None = None
    """The answer to checks of any transaction of the group; None: `state`."""
