"""Which rows of a run a finding needs: nearly all rows are messages, and most findings need none."""

from enum import Enum

import attrs


class MessagesRead(Enum):
    """Which messages are read."""

    ALL = "all"
    REPEATED = "repeated"
    """Those that a group consumed more than once."""
    NONE = "none"


@attrs.frozen
class Reads:
    """What is read of a run, in addition to the rows that are always read."""

    messages: MessagesRead = MessagesRead.ALL
    frames: bool = True
    """Whether the counted frames are."""


EVERYTHING = Reads()
"""All rows that any finding needs."""
WITHOUT_MESSAGES = Reads(MessagesRead.NONE, frames=False)
"""What nodes believed and owned, and how they lived."""
