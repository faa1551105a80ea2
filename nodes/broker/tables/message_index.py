"""The index of a broker's messages by key: a hash table in typed arrays, with a chain of entries in each slot.

Mirrors:
    `org.apache.rocketmq.store.index.IndexService`, `IndexFile`.
"""

from array import array
from collections.abc import Callable
from zlib import crc32

from nodes.protocol.model import Message
from nodes.protocol.properties import KEY_SEPARATOR, KEYS, UNIQ_KEY
from nodes.protocol.sys_flags import MessageSysFlag

MAX_MSGS_NUM_BATCH = 64
"""Most messages that one query returns."""
_FIRST_SLOTS = 8
_NO_ENTRY = -1


class MessageIndex:
    """Topic and key -> offsets of messages in the log.

    Times are compared in ms: RocketMQ's index keeps whole seconds since the start of its file. A message whose key has
    the hash of another is left out, which RocketMQ leaves to the client.

    Args:
        read: returns the message of a row of the log.
    """

    def __init__(self, read: Callable[[int], Message]) -> None:
        self._read = read
        self._slots = array("i", (_NO_ENTRY,)) * _FIRST_SLOTS
        """The newest entry of each slot; as many slots as a power of two."""
        self._hashes = array("I")
        self._rows = array("i")
        self._previous = array("i")
        """The next older entry of the same slot."""
        self.last_update_timestamp = 0
        """Store time of the last message in the index."""
        self.last_update_phyoffset = 0
        """Offset of that message in the log."""

    def build(self, row: int, message: Message) -> None:
        """Add a stored message under its unique key and each of its keys."""
        if UNIQ_KEY not in message.properties and KEYS not in message.properties:
            return
        if MessageSysFlag.transaction_value(message.sys_flag) == MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
            return
        for key in _keys(message):
            self._put_key(_hash(message.topic, key), row)
        self.last_update_timestamp = message.store_timestamp
        self.last_update_phyoffset = message.commit_log_offset

    def query_offset(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[int, ...]:
        """The commit log offsets of the newest messages with a key, ascending.

        Args:
            topic: of the messages.
            key: unique or not.
            max_num: messages wanted; at most 64 are found.
            begin: earliest store time, wall clock in ms.
            end: latest store time.
        """
        wanted, searched = min(max_num, MAX_MSGS_NUM_BATCH), _hash(topic, key)
        newest: list[int] = []
        entry = self._slots[self._slot(searched)]
        while entry != _NO_ENTRY and len(newest) < wanted:
            if self._hashes[entry] == searched:
                message = self._read(self._rows[entry])
                if message.topic == topic and key in _keys(message) and begin <= message.store_timestamp <= end:
                    newest.append(message.commit_log_offset)
            entry = self._previous[entry]
        return tuple(sorted(newest))

    def _put_key(self, hashed: int, row: int) -> None:
        self._hashes.append(hashed)
        self._rows.append(row)
        self._previous.append(_NO_ENTRY)
        if len(self._rows) <= len(self._slots):
            self._link(len(self._rows) - 1)
            return
        self._slots = array("i", (_NO_ENTRY,)) * (2 * len(self._slots))
        for entry in range(len(self._rows)):
            self._link(entry)

    def _link(self, entry: int) -> None:
        slot = self._slot(self._hashes[entry])
        self._previous[entry], self._slots[slot] = self._slots[slot], entry

    def _slot(self, hashed: int) -> int:
        return hashed & (len(self._slots) - 1)


def _keys(message: Message) -> list[str]:
    properties = message.properties
    keys = (properties.get(UNIQ_KEY, ""), *properties.get(KEYS, "").split(KEY_SEPARATOR))
    return [key for key in keys if key]


def _hash(topic: str, key: str) -> int:
    return crc32(f"{topic}#{key}".encode())
