"""The id that a broker gives a message: its own address, and the message's offset in its log.

Mirrors:
    `org.apache.rocketmq.common.message.MessageDecoder#createMessageId`.
"""

import struct
from functools import lru_cache
from typing import Final

ADDRESS_DIGITS: Final = 16
"""Digits of an IPv4 address and port in an id, before the offset."""
_ADDRESSES_MAX = 1_024
_PORT_AND_OFFSET = struct.Struct(">iq")


def decode_message_id(message_id: str) -> tuple[bytes, int, int]:
    """Read an id.

    Returns:
        Address, port and offset.

    Raises:
        ValueError: it is no id.
    """
    decoded = bytes.fromhex(message_id)
    length = len(decoded) - _PORT_AND_OFFSET.size
    if length not in (4, 16):
        raise ValueError(f"{message_id!r} is no message id: an address has 4 or 16 bytes, not {length}")
    port, offset = _PORT_AND_OFFSET.unpack_from(decoded, length)
    return decoded[:length], port, offset


def offset_message_id(store_host: str, commit_log_offset: int) -> str:
    """The id of a stored message.

    Args:
        store_host: `ip:port` of the broker that stored it, IPv4.
        commit_log_offset: its offset in that broker's log.
    """
    return f"{address_digits(store_host)}{commit_log_offset:016X}"


@lru_cache(maxsize=_ADDRESSES_MAX)
def address_digits(address: str) -> str:
    """The first 16 digits of a message's id, which encode `ip:port` (IPv4)."""
    ip, port = address.rsplit(":", 1)
    return (bytes(map(int, ip.split("."))) + int(port).to_bytes(4)).hex().upper()


def message_id_address(digits: str) -> str:
    """The `ip:port` in these 16 digits."""
    packed = bytes.fromhex(digits)
    return f"{'.'.join(map(str, packed[:4]))}:{int.from_bytes(packed[4:])}"
