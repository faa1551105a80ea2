"""Stored messages in RocketMQ's binary form, as in the bodies of pulls, queries and checks of transactions.

Mirrors:
    `org.apache.rocketmq.common.message.MessageDecoder`, `org.apache.rocketmq.store.MessageExtEncoder`.
"""

import struct
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache

from emulator.guests.remoting.fastjson import ValuesLeft
from nodes.protocol.errors import ProtocolError
from nodes.protocol.model import Message
from nodes.protocol.properties import properties_to_text, text_to_properties

MAGIC = 0xDAA320A7
MAGIC_LONG_TOPIC = 0xDAA320AB
"""The topic's length has two bytes."""
BORN_HOST_V6, STORE_HOST_V6 = 0x10, 0x20
"""Bits of a message's system flag."""
TOPIC_BYTES_MAX = 127
"""Most bytes of a topic whose length has one byte."""

_MESSAGE_VALUES = 13
"""Values of a message without properties."""
_PROPERTY_END = b"\x02"
_GROUPS = 8
"""Groups of 16 bits in an IPv6 address."""
_HEAD = struct.Struct(">IIIiiqqiq")
"""Size, magic, CRC, queue id, flag, queue offset, physical offset, system flag, born timestamp."""
_TAIL = struct.Struct(">iqi")
"""Reconsume times, prepared transaction offset, length of the body."""


def encode_messages(messages: Iterable[Message], shown_host: Callable[[str], str] = str) -> bytes:
    """Encode a sequence of messages; bodies and their compression stay as their producers made them.

    Args:
        messages: to encode.
        shown_host: returns the address to write for the `ip:port` of a message's producer or broker.

    Raises:
        ProtocolError: a host is no address, or topic or properties are longer than their lengths can say.
    """
    try:
        return b"".join(_encode_one(message, shown_host) for message in messages)
    except (struct.error, ValueError) as error:
        raise ProtocolError(f"a message cannot be written: {error}") from error


def _encode_one(message: Message, shown_host: Callable[[str], str]) -> bytes:
    born, born_is_v6 = _host_to_bytes(shown_host(message.born_host))
    stored, stored_is_v6 = _host_to_bytes(shown_host(message.store_host))
    sys_flag = message.sys_flag & ~(BORN_HOST_V6 | STORE_HOST_V6)
    sys_flag |= (BORN_HOST_V6 if born_is_v6 else 0) | (STORE_HOST_V6 if stored_is_v6 else 0)
    topic = message.topic.encode()
    is_long = len(topic) > TOPIC_BYTES_MAX
    properties = properties_to_text(message.properties).encode()
    rest = b"".join(
        (
            born,
            struct.pack(">q", message.store_timestamp),
            stored,
            _TAIL.pack(message.reconsume_times, 0, len(message.body)),
            message.body,
            struct.pack(">H" if is_long else ">B", len(topic)),
            topic,
            struct.pack(">H", len(properties)),
            properties,
        )
    )
    head = _HEAD.pack(
        _HEAD.size + len(rest),
        MAGIC_LONG_TOPIC if is_long else MAGIC,
        zlib.crc32(message.body) & 0x7FFFFFFF,
        message.queue_id,
        message.flag,
        message.queue_offset,
        message.commit_log_offset,
        sys_flag,
        message.born_timestamp,
    )
    return head + rest


def decode_messages(raw: bytes) -> tuple[Message, ...]:
    """Decode a sequence of messages.

    Raises:
        ProtocolError: the bytes are malformed.
    """
    messages = []
    at, left = 0, ValuesLeft()
    while at < len(raw):
        try:
            message, size = _decode_one(raw, at, left)
        except (struct.error, ValueError) as error:
            raise ProtocolError(f"no message at byte {at} of {len(raw)}: {error}") from error
        messages.append(message)
        at += size
    return tuple(messages)


def _decode_one(raw: bytes, start: int, left: ValuesLeft) -> tuple[Message, int]:
    size, magic, _, queue_id, flag, queue_offset, offset, sys_flag, born_ms = _HEAD.unpack_from(raw, start)
    if magic not in (MAGIC, MAGIC_LONG_TOPIC):
        raise ValueError(f"magic {magic:#x}, expected {MAGIC:#x}")
    if size > len(raw) - start:
        raise ValueError(f"{size} bytes announced, {len(raw) - start} are there")
    at = start + _HEAD.size
    born_host, at = _bytes_to_host(raw, at, is_v6=bool(sys_flag & BORN_HOST_V6))
    (stored_ms,) = struct.unpack_from(">q", raw, at)
    store_host, at = _bytes_to_host(raw, at + 8, is_v6=bool(sys_flag & STORE_HOST_V6))
    reconsume_times, _, body_length = _TAIL.unpack_from(raw, at)
    body, at = _piece(raw, at + _TAIL.size, body_length)
    topic_form = ">H" if magic == MAGIC_LONG_TOPIC else ">B"
    (topic_length,) = struct.unpack_from(topic_form, raw, at)
    topic, at = _piece(raw, at + struct.calcsize(topic_form), topic_length)
    (properties_length,) = struct.unpack_from(">H", raw, at)
    properties, at = _piece(raw, at + 2, properties_length)
    left.take(_MESSAGE_VALUES + properties.count(_PROPERTY_END))
    if at != start + size:
        raise ValueError(f"{size} bytes announced, its fields have {at - start}")
    message = Message(
        topic.decode(),
        queue_id,
        queue_offset,
        offset,
        born_ms,
        stored_ms,
        body,
        text_to_properties(properties.decode()),
        reconsume_times,
        sys_flag,
        flag,
        born_host,
        store_host,
    )
    return message, size


def _piece(raw: bytes, at: int, length: int) -> tuple[bytes, int]:
    if length < 0 or length > len(raw) - at:
        raise ValueError(f"a field of {length} bytes where {len(raw) - at} are left")
    return raw[at : at + length], at + length


@lru_cache(maxsize=4096)
def _host_to_bytes(host: str) -> tuple[bytes, bool]:
    """`ip:port`, or `[ip]:port` for IPv6; an empty text is 0.0.0.0:0."""
    ip, _, port = host.rpartition(":")
    number = struct.pack(">i", int(port or 0))
    if not ip.startswith("["):
        return bytes(map(int, ip.split("."))) + number if ip else bytes(4) + number, False
    head, gap, tail = ip[1:-1].partition("::")
    before, after = head.split(":") if head else [], tail.split(":") if tail else []
    zeros = ["0"] * (_GROUPS - len(before) - len(after)) if gap else []
    return struct.pack(">8H", *(int(group, 16) for group in (*before, *zeros, *after))) + number, True


def _bytes_to_host(raw: bytes, at: int, *, is_v6: bool) -> tuple[str, int]:
    packed, at = _piece(raw, at, 2 * _GROUPS if is_v6 else 4)
    (port,) = struct.unpack_from(">i", raw, at)
    if is_v6:
        return "[" + ":".join(f"{group:x}" for group in struct.unpack(">8H", packed)) + f"]:{port}", at + 4
    return ".".join(map(str, packed)) + f":{port}", at + 4
