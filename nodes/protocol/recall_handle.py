"""The handle with which a producer takes a timed message back.

Mirrors:
    `org.apache.rocketmq.common.producer.RecallMessageHandle`.
"""

from base64 import b64decode, urlsafe_b64encode

from nodes.protocol.java import java_split
from nodes.protocol.model import RETRY_TOPIC_PREFIX, Message
from nodes.protocol.properties import REAL_TOPIC, TIMER_OUT_MS, UNIQ_KEY
from nodes.values import frozen

_VERSION = "v1"
_PARTS = 5


@frozen
class RecallHandle:
    """Which message is meant, and where it waits."""

    topic: str
    broker_name: str
    deliver_ms: str
    """An instant of its slot, as text."""
    msg_id: str
    """Its unique id."""

    def encode(self) -> str:
        """The handle as a producer gets it."""
        parts = (_VERSION, self.topic, self.broker_name, self.deliver_ms, self.msg_id)
        return urlsafe_b64encode(" ".join(parts).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> "RecallHandle":
        """Read a handle.

        Raises:
            ValueError: it is none.
        """
        try:
            plain = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("utf-8", "replace")
        except ValueError:
            plain = ""
        version, *parts = java_split(plain, " ")
        if version != _VERSION or len(parts) < _PARTS - 1:
            raise ValueError("this is no handle of a message")
        return cls(*parts[: _PARTS - 1])


def recall_handle_of(stored: Message, broker_name: str) -> str | None:
    """The handle of a message that was put aside until its time; None: it was not, or is a redelivery."""
    out_ms, topic = stored.properties.get(TIMER_OUT_MS), stored.properties.get(REAL_TOPIC)
    if out_ms is None or topic is None or topic.startswith(RETRY_TOPIC_PREFIX):
        return None
    # One more, because the slot of an instant that is a full unit is the one before.
    return RecallHandle(topic, broker_name, str(int(out_ms) + 1), stored.properties.get(UNIQ_KEY, "null")).encode()
