"""Shares of a run: where the rows of a long run are allocated, each part is read with the rows that concern all of it.

Messages are nearly all rows of a run, and most of what is found in them concerns one queue or one key. So the messages
of a run are divided by queue, and once more by key; all other rows go to every share. A share finds what concerns its
queues, its keys and its subjects; what is left is found in the rows that are not divided, once all shares are read.
"""

from enum import Enum
from functools import lru_cache
from zlib import crc32

import attrs

from nodes.beliefs import MessageEvent

PARTITIONED = (
    *(MessageEvent.STORED, MessageEvent.CONSUMED, MessageEvent.FILTERED, MessageEvent.COMMITTED),
    *(MessageEvent.LOADED, MessageEvent.COPIED, MessageEvent.RESET, MessageEvent.EXPIRED, MessageEvent.CUT),
    *(MessageEvent.POPPED, MessageEvent.ACKED, MessageEvent.INVISIBLE_CHANGED, MessageEvent.REVIVED),
    *(MessageEvent.RE_PUT, MessageEvent.LOST),
)
"""Events of the messages that are divided by queue."""
WITH_KEYS = (MessageEvent.STORED, MessageEvent.CONSUMED)
"""Events of those that are divided by key, too, if they have one."""
EVERYWHERE = (MessageEvent.UNACKNOWLEDGED,)
"""Events of messages that go to every share; all others are read once all shares are."""


class PartitionedBy(Enum):
    """By what the work of a watcher is divided."""

    NOTHING = "nothing"
    """It reads the rows that are not divided."""
    QUEUE = "queue"
    """The queue of a topic."""
    KEY = "key"
    """The keys of a message."""
    SUBJECT = "subject"
    """What a belief is about."""


@attrs.frozen
class RunShare:
    """One part of a run.

    Attributes:
        number: from 0.
        of: how many parts there are.
    """

    number: int = 0
    of: int = 1

    def has_queue(self, topic: str, broker_name: str, queue_id: int) -> bool:
        """Whether a queue of a topic belongs to it."""
        return self.of == 1 or _of_queue(topic, broker_name, queue_id) % self.of == self.number

    def has_text(self, text: str) -> bool:
        """Whether a key, a subject or a group belongs to it."""
        return self.of == 1 or share_of_text(text, self.of) == self.number


WHOLE = RunShare()
"""A run that is not divided."""


def share_of_text(text: str, of: int) -> int:
    """The number of the share to which a key, a subject or a group belongs, of so many."""
    return crc32(text.encode()) % of


@lru_cache(maxsize=65_536)
def _of_queue(topic: str, broker_name: str, queue_id: int) -> int:
    return crc32(f"{topic}@{broker_name}@{queue_id}".encode())
