"""The body of a real broker's registration: JSON, or a compressed sequence of parts with lengths.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.body.RegisterBrokerBody`, `org.apache.rocketmq.common.TopicConfig#encode`.
"""

import struct
import zlib
from typing import Any

from emulator.guests.remoting.body_json import decode_json_body
from emulator.guests.remoting.fastjson import CostlyJsonError, JsonError, ValuesLeft, read_json
from nodes.protocol.bodies import RegisterBrokerBody, TopicConfigSerializeWrapper
from nodes.protocol.errors import ProtocolError
from nodes.protocol.model import FILTER_TYPES, DataVersion, TopicConfig, TopicQueueMappingInfo

INFLATED_BYTES_MAX = 16 * 1024 * 1024
"""Most bytes of a decompressed body: as many as a frame has."""
PARTS_MAX = 10_000
"""Most topics, or mappings, of a registration: to read one takes 10 us."""
_TOPIC_WORDS = 6
"""Words of a topic's line."""
_LENGTH = struct.Struct(">i")


def decode_register_broker_body(raw: bytes, *, compressed: bool) -> RegisterBrokerBody:
    """Read the body of a registration.

    Raises:
        ProtocolError: it is malformed.
    """
    if not compressed:
        return decode_json_body(RegisterBrokerBody, raw)
    left = ValuesLeft()
    try:
        parts = _BodyParts(_inflate(raw))
        version = decode_json_body(DataVersion, parts.next(), left)
        topics = [topic for topic in (decode_topic_config(text.decode(), left) for text in parts.several()) if topic]
        servers = read_json(parts.next().decode(), left)
        mappings = [decode_json_body(TopicQueueMappingInfo, part, left) for part in parts.several()]
    except (struct.error, zlib.error, ValueError) as error:
        raise ProtocolError(f"body of {len(raw)} bytes is no compressed RegisterBrokerBody: {error}") from error
    wrapper = TopicConfigSerializeWrapper(
        {topic.topic_name: topic for topic in topics}, version, {mapping.topic: mapping for mapping in mappings}
    )
    return RegisterBrokerBody(wrapper, tuple(map(str, servers or ())))


def decode_topic_config(text: str, left: ValuesLeft | None = None) -> TopicConfig | None:
    """A topic from its line; None if it has fewer than five words.

    Malformed attributes count as none, since a blank inside cuts them off.

    Args:
        left: of a body of which this is a part.

    Raises:
        ValueError: a number is malformed, or the filter type is unknown.
    """
    words = text.rstrip(" ").split(" ", _TOPIC_WORDS)
    if len(words) < 5:
        return None
    name, read, write, perm, filter_type = words[:5]
    if filter_type not in FILTER_TYPES:
        raise ValueError(f"{filter_type!r} is no filter type; expected one of {', '.join(FILTER_TYPES)}")
    attributes: Any = {}
    if len(words) > 5:
        try:
            attributes = read_json(words[5], left)
        except CostlyJsonError:
            raise
        except JsonError:
            attributes = {}
    retained = {str(key): str(value) for key, value in attributes.items()} if isinstance(attributes, dict) else {}
    return TopicConfig(name, int(read), int(write), int(perm), topic_filter_type=filter_type, attributes=retained)


def _inflate(raw: bytes) -> bytes:
    inflating = zlib.decompressobj()
    inflated = inflating.decompress(raw, INFLATED_BYTES_MAX)
    if not inflating.eof:
        raise ValueError("it is cut off" if not inflating.unconsumed_tail else f"more than {INFLATED_BYTES_MAX} bytes")
    return inflated


class _BodyParts:
    def __init__(self, inflated: bytes) -> None:
        self._rest = memoryview(inflated)

    def number(self) -> int:
        (number,) = _LENGTH.unpack_from(self._rest)
        self._rest = self._rest[_LENGTH.size :]
        return int(number)

    def next(self) -> bytes:
        length = self.number()
        if length < 0 or length > len(self._rest):
            raise ValueError(f"a part of {length} bytes where {len(self._rest)} are left")
        part, self._rest = bytes(self._rest[:length]), self._rest[length:]
        return part

    def several(self) -> list[bytes]:
        number = self.number()
        if number > PARTS_MAX:
            raise ValueError(f"{number} parts; at most {PARTS_MAX} are read")
        return [self.next() for _ in range(number)]
