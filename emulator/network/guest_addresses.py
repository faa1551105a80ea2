"""Addresses as a program outside can dial them, in place of those that emulated nodes tell each other."""

import re
from collections.abc import Callable

import attrs

from nodes.protocol.message_id import create_message_id, decode_message_id

_EMULATED = re.compile(rb"\b127\.1\.\d{1,3}\.\d{1,3}(?=:\d)")


@attrs.frozen
class GuestAddresses:
    """What one program outside is told.

    Attributes:
        dialable: the machine's address for an emulated one; what is not emulated stays as it is.
    """

    dialable: Callable[[str], str]

    def host(self, address: str) -> str:
        """An `ip:port`, or an empty text."""
        ip, colon, port = address.rpartition(":")
        return f"{self._ip(ip)}:{port}" if colon else address

    def in_json(self, body: bytes) -> bytes:
        """A body with the addresses in it."""
        return _EMULATED.sub(lambda found: self.dialable(found[0].decode()).encode(), body)

    def message_ids(self, ids: str) -> str:
        """Ids of messages, joined by commas: each begins with its broker, whom tools dial by it."""
        return ",".join(map(self._message_id, ids.split(",")))

    def _message_id(self, message_id: str) -> str:
        try:
            packed, port, offset = decode_message_id(message_id)
        except ValueError:  # one of its producer's making
            return message_id
        shown = self._ip(".".join(map(str, packed))) if len(packed) == 4 else ""
        return create_message_id(bytes(map(int, shown.split("."))), port, offset) if shown else message_id

    def _ip(self, ip: str) -> str:
        return self.dialable(ip) if ip.startswith("127.1.") else ip
