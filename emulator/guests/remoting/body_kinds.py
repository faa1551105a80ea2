"""The table of encodings: how the bodies of each request and of its answer are written in the remoting protocol.

Nodes use the emulator's encoding (`nodes.protocol.body_codec`); this module converts between the two.
By default a class is JSON, with objects as keys if its maps have them; a class of messages is a sequence of stored
messages.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from emulator.guests.remoting.body_json import decode_json_body, encode_json_body
from emulator.guests.remoting.message_binary import decode_messages, encode_messages
from emulator.guests.remoting.register_broker_body import decode_register_broker_body
from nodes.protocol.bodies import PullMessageResponseBody, RegisterBrokerBody
from nodes.protocol.body_codec import decode_body, encode_body
from nodes.protocol.registry import EXCHANGES, codes_where
from nodes.values import frozen


class BodyKind(StrEnum):
    """The encoding of a body."""

    JSON = "JSON"
    MESSAGES = "messages as a store holds them, one behind the other"
    REGISTRATION = "a broker's topics: JSON, or compressed if the header says so"
    RELAY = "as it is: bytes of a message, lines of key=value, or what no one but its receiver reads"


@frozen
class Bodies:
    """Encodings and classes of the bodies of a request and of its answer."""

    request: BodyKind = BodyKind.RELAY
    response: BodyKind = BodyKind.RELAY
    request_class: type = bytes
    response_class: type = bytes


def _kind(cls: type | None) -> BodyKind:
    if cls is None or cls is bytes:
        return BodyKind.RELAY
    if cls is PullMessageResponseBody:
        return BodyKind.MESSAGES
    return BodyKind.REGISTRATION if cls is RegisterBrokerBody else BodyKind.JSON


BODIES: Mapping[int, Bodies] = MappingProxyType(
    {
        int(code): Bodies(
            _kind(exchange.request_body),
            _kind(exchange.response_body),
            exchange.request_body or bytes,
            exchange.response_body or bytes,
        )
        for code, exchange in EXCHANGES.items()
    }
)
"""Request code -> bodies."""
_UNKNOWN = Bodies()
_ANSWERS_LINES = codes_where(lambda exchange: exchange.answers_lines)
ShownHost = Callable[[str], str]


def request_from_wire(code: int, fields: Mapping[str, str], raw: bytes | None) -> bytes | None:
    """Convert the body of a request from the remoting protocol.

    Raises:
        ProtocolError: it does not match the code.
    """
    bodies = BODIES.get(code, _UNKNOWN)
    if bodies.request is BodyKind.REGISTRATION:
        compressed = fields.get("compressed") == "true"
        return encode_body(decode_register_broker_body(raw or b"", compressed=compressed))
    return _from_wire(bodies.request, bodies.request_class, raw)


def request_to_wire(code: int, body: bytes | None, shown_host: ShownHost = str) -> bytes | None:
    """Convert the body of a request to the remoting protocol.

    Args:
        shown_host: returns the address to write for the `ip:port` of a message's producer or broker.

    Raises:
        ProtocolError: it does not match the code.
    """
    bodies = BODIES.get(code, _UNKNOWN)
    return _to_wire(bodies.request, bodies.request_class, body, shown_host)


def response_from_wire(code: int, raw: bytes | None) -> bytes | None:
    """Convert the body of an answer to a request of this code from the remoting protocol.

    Raises:
        ProtocolError: it does not match the code.
    """
    bodies = BODIES.get(code, _UNKNOWN)
    return _from_wire(bodies.response, bodies.response_class, raw)


def response_to_wire(code: int, body: bytes | None, shown_host: ShownHost = str) -> bytes | None:
    """Convert the body of an answer to the remoting protocol.

    Args:
        shown_host: as above.

    Raises:
        ProtocolError: it does not match the code.
    """
    bodies = BODIES.get(code, _UNKNOWN)
    return _to_wire(bodies.response, bodies.response_class, body, shown_host)


def is_of_values(code: int, *, is_response: bool) -> bool:
    """Whether the body of a request of this code, or of its answer, is read as values."""
    bodies = BODIES.get(code, _UNKNOWN)
    return (bodies.response if is_response else bodies.request) is not BodyKind.RELAY


def is_text_answer(code: int) -> bool:
    """Whether the answer to a request of this code has a body in JSON, or lines of options."""
    return BODIES.get(code, _UNKNOWN).response is BodyKind.JSON or code in _ANSWERS_LINES


def _from_wire(kind: BodyKind, cls: type, raw: bytes | None) -> bytes | None:
    if raw is None or kind is BodyKind.RELAY:
        return raw
    if kind is BodyKind.MESSAGES:
        return encode_body(PullMessageResponseBody(decode_messages(raw)))
    return encode_body(decode_json_body(cls, raw))


def _to_wire(kind: BodyKind, cls: type, body: bytes | None, shown_host: ShownHost) -> bytes | None:
    if body is None or kind is BodyKind.RELAY:
        return body
    value: Any = decode_body(cls, body)
    if kind is BodyKind.MESSAGES:
        return encode_messages(value.messages, shown_host)
    return encode_json_body(value)
