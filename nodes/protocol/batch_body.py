"""The body of a batch: messages of one topic, each with flag, body and properties.

Mirrors:
    `org.apache.rocketmq.common.message.MessageDecoder#encodeMessages`, `#decodeMessages`.
"""

import struct
from collections.abc import Iterable

from nodes.protocol.errors import ProtocolError
from nodes.values import frozen

_HEAD = struct.Struct(">iiiii")
"""Total size, magic code and checksum, which are never read, flag, length of the body."""
_FLAG_AND_LENGTH = struct.Struct(">12xii")
"""The last two of these."""
_PROPERTIES_LENGTH = struct.Struct(">h")
_PROPERTY_END = b"\x02"
MESSAGES_MAX = 10_000
"""Most messages of a batch; RocketMQ has no limit but that of its bytes. To store one takes 20 us."""
PROPERTIES_MAX = 100_000
"""Most properties of all of them."""


class LongBatchError(ProtocolError):
    """A batch has more messages, or more properties, than are stored at once."""

    def __init__(self) -> None:
        super().__init__(
            f"the batch has more than {MESSAGES_MAX} messages, or they have more than {PROPERTIES_MAX} properties"
        )


@frozen
class BatchedMessage:
    """One message of a batch."""

    body: bytes
    properties: str = ""
    """As the text of a send header."""
    flag: int = 0


def encode_messages(messages: Iterable[BatchedMessage]) -> bytes:
    """Write the body of a batch."""
    parts = []
    for message in messages:
        properties = message.properties.encode()
        size = _HEAD.size + len(message.body) + _PROPERTIES_LENGTH.size + len(properties)
        parts += [_HEAD.pack(size, 0, 0, message.flag, len(message.body)), message.body]
        parts += [_PROPERTIES_LENGTH.pack(len(properties)), properties]
    return b"".join(parts)


def decode_messages(body: bytes) -> tuple[BatchedMessage, ...]:
    """Read the body of a batch; the total sizes in it are ignored.

    Raises:
        LongBatchError: there are too many of them, or of their properties.
        ProtocolError: it ends in the middle of a message, or a length is negative.
    """
    messages: list[BatchedMessage] = []
    at, number_of_properties = 0, 0
    while at < len(body):
        try:
            flag, length = _FLAG_AND_LENGTH.unpack_from(body, at)
            body_at = at + _HEAD.size
            (properties_length,) = _PROPERTIES_LENGTH.unpack_from(body, body_at + length)
        except struct.error:
            raise _damaged(body, at) from None
        properties_at = body_at + length + _PROPERTIES_LENGTH.size
        end = properties_at + properties_length
        if length < 0 or properties_length < 0 or end > len(body):
            raise _damaged(body, at)
        number_of_properties += body.count(_PROPERTY_END, properties_at, end)
        if len(messages) >= MESSAGES_MAX or number_of_properties > PROPERTIES_MAX:
            raise LongBatchError
        properties = body[properties_at:end].decode(errors="replace")
        messages.append(BatchedMessage(body[body_at : body_at + length], properties, flag))
        at = end
    return tuple(messages)


def _damaged(body: bytes, at: int) -> ProtocolError:
    return ProtocolError(f"batch of {len(body)} bytes: no whole message begins at byte {at}")
