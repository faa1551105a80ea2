"""Half messages: which producers send those of which topics, and whether another application answered for one."""

from collections.abc import Callable

from emulator.history.rows.row_classes import MessageRow
from nodes.client.producer.transactions import sender_ip


class HalfMessageSenders:
    """Producers and the topics of their half messages.

    Args:
        node_of: the node of an address.
    """

    def __init__(self, node_of: Callable[[str], str]) -> None:
        self._node_of = node_of
        self._sent: dict[str, dict[str, None]] = {}
        """Mapping producer -> topics of its half messages."""

    def feed(self, row: MessageRow) -> None:
        """A half message was stored."""
        self._sent.setdefault(self._sender(row.key), {})[row.topic] = None

    def is_of_another(self, producer: str, topic: str, unique_id: str) -> bool:
        """Whether a producer belongs to another application than a half message, by all rows.

        A broker asks the producers of a group in turns. A second process of the application that sent a half message
        may answer for it: it sends half messages of this topic itself, or none.
        """
        others = self._sent.get(producer, {})
        return bool(others) and topic not in others and producer != self._sender(unique_id)

    def _sender(self, unique_id: str) -> str:
        return self._node_of(sender_ip(unique_id))
