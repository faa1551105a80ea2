"""Up to where a log can be read, kept in a file for the next process.

In controller mode the end of a log may be stored and not yet confirmed. RocketMQ's queues are files of their own, in
which what was not confirmed is missing; here they are built from the log, so a file says how far.

Mirrors:
    `org.apache.rocketmq.store.queue.ConsumeQueueStore`, its files; `StoreCheckpoint#getConfirmPhyOffset`.
"""

from struct import Struct

from nodes.protocol.widths import INT64_MAX

_OFFSET = Struct(">q")


class ReadableEnd:
    """The end that can be read.

    Args:
        content: of a file that is mapped into memory; a loss of power empties it, and then all of the log can be read.
    """

    def __init__(self, content: bytearray) -> None:
        self._content = content

    def note(self, offset: int) -> None:
        """Keep an offset of the log."""
        self._content[:] = _OFFSET.pack(offset)

    @property
    def offset(self) -> int:
        """What an earlier process kept; no limit if there was none."""
        return int(_OFFSET.unpack(self._content)[0]) if self._content else INT64_MAX
