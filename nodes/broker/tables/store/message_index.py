"""The index of a broker's messages by key; each file of the log has one of its own, which goes with it.

Mirrors:
    `org.apache.rocketmq.store.index.IndexService`.
"""

from zlib import crc32

from nodes.broker.tables.store.commit_log import CommitLog
from nodes.protocol.model import Message
from nodes.protocol.properties import KEY_SEPARATOR, KEYS, UNIQ_KEY
from nodes.protocol.sys_flags import MessageSysFlag

MAX_MSGS_NUM_BATCH = 64
"""Most messages that one query returns."""


class MessageIndex:
    """Topic and key -> offsets of messages in the log.

    Times are compared in ms: RocketMQ's index keeps whole seconds since the start of its file. A message whose key has
    the hash of another is left out, which RocketMQ leaves to the client.

    Args:
        log: with the messages.
    """

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self.last_update_timestamp = 0
        """Store time of the last message in the index."""
        self.last_update_phyoffset = 0
        """Offset of that message in the log."""

    def build(self, row: int, message: Message) -> None:
        """Add a stored message under its unique key and each of its keys."""
        if UNIQ_KEY not in message.properties and KEYS not in message.properties:
            return
        flag = message.sys_flag
        if flag and MessageSysFlag.transaction_value(flag) == MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
            return
        index = self._log.file_of(row).index
        for key in _keys(message):
            index.put(_hash(message.topic, key), row)
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
        for file in reversed(self._log.files):
            for row in file.index.rows(searched):
                if len(newest) == wanted:
                    break
                message = file.message(row)
                if message.topic == topic and key in _keys(message) and begin <= message.store_timestamp <= end:
                    newest.append(message.commit_log_offset)
        return tuple(sorted(newest))


def _keys(message: Message) -> list[str]:
    properties = message.properties
    unique = properties.get(UNIQ_KEY)
    keys = [unique] if unique else []
    if KEYS in properties:
        keys += filter(None, properties[KEYS].split(KEY_SEPARATOR))
    return keys


def _hash(topic: str, key: str) -> int:
    return crc32(f"{topic}#{key}".encode())
