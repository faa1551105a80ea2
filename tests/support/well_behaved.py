"""A client that behaves well, with those that do not."""

from emulator.guests.remoting.message_binary import decode_messages
from network.hostile_requests import PULL, SEND_V2, heartbeat
from support.live_cluster import BROKER_PORT
from support.remoting_program import Caller

_HEARTBEAT, _SEND, _PULL = 34, 310, 11


class WellBehaved:
    """Sends to a topic of its own, and consumes what it sent.

    Args:
        broker: address of the broker.
        name: of its topic and its group.
    """

    def __init__(self, broker: str, name: str) -> None:
        self._caller = Caller(broker, BROKER_PORT)
        self.address = self._caller.address
        """Its own end of the connection."""
        self._name = name
        self._offset = 0
        self.beat()

    def beat(self) -> None:
        """Send a heartbeat, which must succeed."""
        body = heartbeat(1, self._name).replace('"T"', f'"{self._name}"').encode()
        assert self._caller.ask_raw(_HEARTBEAT, {}, body).code == 0

    def notices_nothing(self) -> None:
        """Send the next message, and consume it."""
        sent = self._caller.ask_raw(_SEND, SEND_V2 | {"b": self._name}, b"hello")
        assert (sent.code, (sent.ext_fields or {}).get("queueOffset")) == (0, str(self._offset)), sent.remark
        requested = {"consumerGroup": self._name, "topic": self._name, "queueOffset": str(self._offset)}
        pulled = self._caller.ask_raw(_PULL, PULL | requested, b"")
        assert [message.body for message in decode_messages(pulled.body or b"")] == [b"hello"], pulled.remark
        self._offset += 1
