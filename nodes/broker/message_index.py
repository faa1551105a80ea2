"""Messages by key: what a broker's index finds.

Mirrors:
    `org.apache.rocketmq.store.index.IndexService`, `IndexFile`.
"""

from nodes.protocol.model import Message
from nodes.protocol.properties import KEY_SEPARATOR, KEYS, UNIQ_KEY
from nodes.protocol.sys_flags import MessageSysFlag

MAX_MSGS_NUM_BATCH = 64
"""Most messages that one question gets."""


class MessageIndex:
    """Topic and key -> where messages lie in the log.

    Times are compared whole: the real index keeps seconds since its file began, and cuts off what is below one.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self.last_update_timestamp = 0
        """When the last message that it knows was stored."""
        self.last_update_phyoffset = 0
        """Where that one begins in the log."""

    def build(self, message: Message) -> None:
        """Enter a stored message under its unique key and each of its keys; one without any costs nothing."""
        properties = message.properties
        unique, keys = properties.get(UNIQ_KEY), properties.get(KEYS)
        if unique is None and keys is None:
            return
        if MessageSysFlag.transaction_value(message.sys_flag) == MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
            return
        entry = (message.store_timestamp, message.commit_log_offset)
        for key in (unique, *(keys or "").split(KEY_SEPARATOR)):
            if key:
                self._entries.setdefault((message.topic, key), []).append(entry)
        self.last_update_timestamp, self.last_update_phyoffset = entry

    def query_offset(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[int, ...]:
        """The commit log offsets of the newest messages with a key, ascending.

        Args:
            topic: of the messages.
            key: unique or not.
            max_num: messages wanted; 64 at most are found.
            begin: first time of storing, wall clock in ms.
            end: last time of storing.
        """
        wanted = max(0, min(max_num, MAX_MSGS_NUM_BATCH))
        entries = self._entries.get((topic, key), ())
        newest = [offset for stored, offset in reversed(entries) if begin <= stored <= end]
        return tuple(sorted(newest[:wanted]))
