"""Addresses as a program outside can dial them, in place of those that emulated nodes tell each other."""

import re
from collections.abc import Callable

import attrs

from nodes.protocol.message_id import ADDRESS_DIGITS, address_digits, message_id_address

_EMULATED = re.compile(rb"\b127\.1\.\d{1,3}\.\d{1,3}(?=:\d)")


@attrs.define
class GuestAddresses:
    """What one program outside is told.

    Attributes:
        dialable: the machine's address for an emulated one; what is not emulated stays as it is.
    """

    dialable: Callable[[str], str]
    _shown_digits: dict[str, str] = attrs.field(factory=dict, init=False, eq=False)

    def host(self, address: str) -> str:
        """An `ip:port`, or an empty text."""
        ip, colon, port = address.rpartition(":")
        return f"{self._ip(ip)}:{port}" if colon else address

    def in_json(self, body: bytes) -> bytes:
        """A body with the addresses in it."""
        return _EMULATED.sub(lambda found: self.dialable(found[0].decode()).encode(), body)

    def message_ids(self, ids: str) -> str:
        """Ids that brokers gave to messages, joined by commas: each begins with its broker, whom tools dial by it."""
        return ",".join(map(self._message_id, ids.split(",")))

    def _message_id(self, message_id: str) -> str:
        """Its first half is an address, one of few; the other is a place in a log."""
        digits = message_id[:ADDRESS_DIGITS]
        shown = self._shown_digits.get(digits)
        if shown is None:
            shown = self._shown_digits[digits] = address_digits(self.host(message_id_address(digits)))
        return shown + message_id[ADDRESS_DIGITS:]

    def _ip(self, ip: str) -> str:
        return self.dialable(ip) if ip.startswith("127.1.") else ip
