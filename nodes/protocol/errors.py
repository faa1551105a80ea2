"""Errors of requests."""

from collections.abc import Mapping
from typing import Any, Self


class ProtocolError(Exception):
    """The bytes of a peer do not match their request code."""


class RefusedHeaderError(ProtocolError):
    """A header was read, and its own check refuses a value.

    Mirrors:
        `CommandCustomHeader#checkFields`.
    """


class UnreadableBody(bytes):
    """A body that a codec could not convert, as it arrived; its decoder gets the reason."""

    reason: str

    def __new__(cls, body: bytes, reason: str) -> Self:
        """The body, and why it cannot be read."""
        made = super().__new__(cls, body)
        made.reason = reason
        return made


class TableFullError(Exception):
    """A table has as many entries as its node's options allow; the answer is SYSTEM_BUSY."""


def require_room(table: Mapping[Any, object], key: object, entries_max: int, subject: str) -> None:
    """Refuse an entry that is new to a full table.

    Raises:
        TableFullError: the table is full; `what` names its entries.
    """
    if len(table) >= entries_max and key not in table:
        raise TableFullError(f"there are {entries_max} {subject} already, the most that this node's options allow")


def require_few_queues(queues: int, queues_max: int) -> None:
    """Refuse a topic of very many queues.

    Raises:
        TableFullError: it has more than the node's options allow.
    """
    if queues > queues_max:
        raise TableFullError(f"{queues} queues in one topic; this node's options allow {queues_max}")
