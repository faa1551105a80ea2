"""What an application does with the messages that it sends in transactions."""

from enum import StrEnum

import attrs


class LocalTransactionState(StrEnum):
    """What became of a local transaction."""

    COMMIT = "commit"
    ROLLBACK = "rollback"
    UNKNOWN = "unknown"
    """The broker will ask."""


@attrs.frozen
class LocalTransactions:
    """What an application does for each message, and what it says later if a broker asks."""

    state: LocalTransactionState
    """What a local transaction ends with."""
    duration_ms: int = 0
    """How long it takes."""
    check_state: LocalTransactionState | None = None
    """What is said of any transaction of the group; None: the same."""
