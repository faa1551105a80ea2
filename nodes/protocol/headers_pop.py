"""Headers of POP: a broker hands messages out, hides them for a while, and learns what became of them.

The rules of `nodes.protocol.headers` hold. Times are milliseconds.
"""

from nodes.protocol.widths import Int32
from nodes.values import frozen


@frozen
class PopMessageRequestHeader:
    """Header of POP_MESSAGE (200050)."""

    consumer_group: str
    topic: str
    queue_id: Int32
    """-1: all queues."""
    max_msg_nums: Int32
    invisible_time: int
    poll_time: int
    """How long the request is held while there are no messages."""
    born_time: int
    """0: when the request arrives."""
    init_mode: Int32
    """Where a group without offset begins; 0: at the smallest one, 1: at the largest."""
    exp_type: str | None = None
    exp: str | None = None
    order: bool | None = None
    attempt_id: str | None = None
    """Of an orderly pop: the same one again gets the same messages."""
    bname: str | None = None


@frozen
class PopMessageResponseHeader:
    """Header of the answer to POP_MESSAGE and PEEK_MESSAGE; the texts are those of `nodes.protocol.extra_info`."""

    pop_time: int
    invisible_time: int
    revive_qid: Int32
    rest_num: int
    """Messages that wait behind those of the answer."""
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@frozen
class AckMessageRequestHeader:
    """Header of ACK_MESSAGE (200051)."""

    consumer_group: str
    topic: str
    """That the message was popped from, a retry topic with its own name."""
    queue_id: Int32
    extra_info: str
    """The handle of the message."""
    offset: int
    bname: str | None = None


@frozen
class ChangeInvisibleTimeRequestHeader:
    """Header of CHANGE_MESSAGE_INVISIBLETIME (200053)."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: int
    invisible_time: int
    bname: str | None = None


@frozen
class ChangeInvisibleTimeResponseHeader:
    """What the new handle of a message is made of."""

    pop_time: int
    invisible_time: int
    revive_qid: Int32


@frozen
class PeekMessageRequestHeader:
    """Header of PEEK_MESSAGE (200052)."""

    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    consumer_group: str
    bname: str | None = None


@frozen
class NotificationRequestHeader:
    """Header of NOTIFICATION (200054): is there a message to pop?"""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: int
    born_time: int
    order: bool | None = None
    attempt_id: str | None = None
    bname: str | None = None


@frozen
class NotificationResponseHeader:
    """Whether there is a message, and whether too many requests wait for one."""

    has_msg: bool
    polling_full: bool = False


@frozen
class PollingInfoRequestHeader:
    """Header of POLLING_INFO (200055)."""

    consumer_group: str
    topic: str
    queue_id: Int32
    bname: str | None = None


@frozen
class PollingInfoResponseHeader:
    """How many requests of a group are held for a queue."""

    polling_num: Int32
