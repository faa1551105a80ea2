"""Random requests of every code, in both framings: valid ones, and ones that are damaged in a field or in a byte."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from random import Random
from typing import Any, get_args, get_origin, get_type_hints

import attrs
import msgpack

from emulator.guests.remoting.body_json import encode_json_body
from emulator.guests.remoting.remoting_command import LanguageCode, RemotingCommand, SerializeType, encode_remoting
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import EXCHANGES, encode_body, encode_header
from nodes.protocol.widths import Int32, without_none
from nodes.protocol.wire_names import wire_name
from nodes.rpc.codec import GREETING, encode

NAMES = ("T", "T2", "g", "g2", "c1", "c2", "%RETRY%g", "%DLQ%g", "TBW102", "bx", "DefaultCluster", "127.0.0.1:1", "*")
"""Names of what requests speak about; none of them belongs to a client that behaves well."""
ODD_TEXTS = ("", " ", "\x00", "\x01\x02", "é" * 40, "a" * 300, "../../x", "{}", "null", "%RETRY%", "@", "true", "T@g")
SMALL = (0, 0, 0, 1, 2, 3, -1, 7, 16, 32)
ODD_NUMBERS = (2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, 10_000)
ODD_WORDS = ("", " 1", "1_0", "1.5", "1e9", "0x10", "NaN", "-", "9" * 400, "null", "true")
OTHER_CODES = (*(int(code) for code in RequestCode if code not in EXCHANGES), 0, -1, 99_999, 2**31 - 1)
"""Codes that no node answers."""
_CODES = tuple(EXCHANGES)
HARMLESS_CONFIG = b"noSuchOption=1\nbrokerPermission=x\n=\n"


def random_request(chance: Random) -> tuple[int, dict[str, str], Any]:
    """A valid request: its code, its fields, its body as a value or as bytes."""
    code = int(chance.choice(_CODES if chance.random() < 0.95 else OTHER_CODES))
    return code, *request_of(code, chance)


def request_of(code: int, chance: Random) -> tuple[dict[str, str], Any]:
    """The fields and the body of a valid request of a code."""
    exchange = EXCHANGES.get(code)  # type: ignore[call-overload]
    if exchange is None:
        return {name: chance.choice(NAMES) for name in ("topic", "group", "x")}, b"x"
    header = random_value(exchange.request_header, chance)
    return dict(encode_header(header)), _random_body(code, exchange.request_body, chance)


def _random_body(code: int, kind: type | None, chance: Random) -> Any:
    if code in (RequestCode.UPDATE_BROKER_CONFIG, RequestCode.UPDATE_NAMESRV_CONFIG):
        return HARMLESS_CONFIG  # a valid change would harm those who behave well, in RocketMQ, too
    if kind is None:
        return b"" if chance.random() < 0.9 else b"x" * chance.randrange(200)
    if kind is bytes:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
    return random_value(kind, chance)


def random_value(annotation: Any, chance: Random) -> Any:
    """A value of a class of the protocol, or of the annotation of a field; now and then an odd one."""
    inner = without_none(annotation)
    if inner is not annotation:
        return None if chance.random() < 0.3 else random_value(inner, chance)
    make = _MAKERS.get(annotation)
    if make is not None:
        return make(chance)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return tuple(random_value(arguments[0], chance) for _ in range(chance.randrange(3)))
    if origin is Mapping:
        entries = range(chance.randrange(3))
        return {random_value(arguments[0], chance): random_value(arguments[1], chance) for _ in entries}
    if issubclass(annotation, Enum):
        return chance.choice(list(annotation))
    return annotation(**{name: random_value(hint, chance) for name, hint in _fields(annotation)})


def _text(chance: Random) -> str:
    return chance.choice(NAMES) if chance.random() < 0.95 else chance.choice(ODD_TEXTS)


def _number(chance: Random) -> int:
    return chance.choice(SMALL) if chance.random() < 0.97 else chance.choice(ODD_NUMBERS[:2])


_MAKERS: Mapping[Any, Callable[[Random], Any]] = {
    str: _text,
    int: _number,
    Int32: lambda chance: min(_number(chance), 2**31 - 1),
    bool: lambda chance: chance.random() < 0.5,
    float: lambda chance: chance.random(),
    bytes: lambda chance: bytes(chance.randrange(256) for _ in range(chance.randrange(8))),
}


@lru_cache(maxsize=1024)
def _fields(cls: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(cls, include_extras=True)
    names = getattr(cls, "_fields", None) or [field.name for field in attrs.fields(cls)]  # named tuples have `_fields`
    return tuple((name, hints[name]) for name in names)


# --- requests as frames --------------------------------------------------------------


@attrs.frozen
class Framing:
    """One of the two framings that a node understands."""

    name: str
    pack: Callable[[int, Mapping[Any, Any], Any, int], bytes]
    """Code, fields, body as a plain value or bytes, opaque -> a frame."""
    plain: Callable[[Any], Any]
    """A body as plain values: lists, dicts, texts, numbers."""
    greeting: bytes = b""
    """What a connection begins with."""


def _plain(value: Any) -> Any:
    if attrs.has(value.__class__):
        named = [(wire_name(value.__class__, field), getattr(value, field.name)) for field in attrs.fields(type(value))]
        return {name: _plain(item) for name, item in named if item is not None}
    if isinstance(value, Mapping):
        return {str(key) if isinstance(key, int) else _key(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def _key(key: Any) -> Any:
    return key if isinstance(key, str) else encode_json_body(key).decode()


def _msgpack_body(body: Any) -> bytes:
    try:
        return msgpack.packb(body, strict_types=False)  # type: ignore[no-any-return]
    except (OverflowError, ValueError, TypeError):
        return b"\xc1"


def _pack_emulators(code: int, fields: Mapping[Any, Any], body: Any, opaque: int) -> bytes:
    raw = body if isinstance(body, bytes) else _msgpack_body(body)
    try:
        return encode(Command(code, 0, opaque, ext_fields=dict(fields), body=raw))
    except (OverflowError, ValueError):
        return encode(Command(11, 0, opaque, body=raw))


def _pack_remoting(form: SerializeType) -> Callable[[int, Mapping[Any, Any], Any, int], bytes]:
    def pack(code: int, fields: Mapping[Any, Any], body: Any, opaque: int) -> bytes:
        raw = body if isinstance(body, bytes) else _json(body).encode("utf-8", "replace")
        texts: dict[str | None, str | None] = {str(name): str(value) for name, value in fields.items()}
        return encode_remoting(RemotingCommand(code, LanguageCode.GO, 401, opaque, 0, None, texts, raw, form))

    return pack


def _json(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json_key(key)}:{_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return encode_json_body(value).decode() if not isinstance(value, bytes) else '"bytes"'


def _json_key(key: Any) -> str:
    return key if isinstance(key, str) and key.startswith("{") else _json(key)


EMULATOR = Framing(
    "emulator", _pack_emulators, lambda body: msgpack.unpackb(encode_body(body), strict_map_key=False), GREETING
)
REMOTING_JSON = Framing("remoting, JSON", _pack_remoting(SerializeType.JSON), _plain)
REMOTING_ROCKETMQ = Framing("remoting, ROCKETMQ", _pack_remoting(SerializeType.ROCKETMQ), _plain)
FRAMINGS = (EMULATOR, REMOTING_JSON, REMOTING_ROCKETMQ)


def random_frame(framing: Framing, chance: Random, opaque: int, *, bytes_share: float = 0.1) -> bytes:
    """A request as a frame: a third are valid, most of the others have an odd field, some have damaged bytes.

    Args:
        opaque: of the request.
        bytes_share: share of frames with damaged bytes, after most of which a connection ends.
    """
    code, fields, body = random_request(chance)
    plain = body if isinstance(body, bytes) else framing.plain(body)
    kind = chance.random()
    if kind < 0.67 - bytes_share:
        fields, plain = _odd_field(fields, plain, chance)
    frame = framing.pack(code, fields, plain, opaque)
    return damaged(frame, chance) if kind > 1 - bytes_share else frame


def frame_of_each_code(framing: Framing, chance: Random) -> Iterator[bytes]:
    """A valid request of each code, and of each that no node answers, as a frame."""
    for opaque, code in enumerate((*_CODES, *OTHER_CODES), start=1):
        fields, body = request_of(int(code), chance)
        yield framing.pack(int(code), fields, body if isinstance(body, bytes) else framing.plain(body), opaque)


def _odd_field(fields: dict[str, str], plain: Any, chance: Random) -> tuple[dict[str, str], Any]:
    if fields and (chance.random() < 0.5 or isinstance(plain, bytes)):
        name = chance.choice(list(fields))
        if chance.random() < 0.15:
            return {key: value for key, value in fields.items() if key != name}, plain
        odd = chance.choice((*map(str, ODD_NUMBERS), *ODD_WORDS, *ODD_TEXTS))
        return {**fields, name: odd}, plain
    return fields, odd_inside(plain, chance)


def odd_inside(plain: Any, chance: Random) -> Any:
    """A plain value with one odd value somewhere inside."""
    if isinstance(plain, dict) and plain and chance.random() < 0.9:
        key = chance.choice(list(plain))
        if chance.random() < 0.1:
            return {name: value for name, value in plain.items() if name != key}
        return {**plain, key: odd_inside(plain[key], chance)}
    if isinstance(plain, list) and plain and chance.random() < 0.9:
        at = chance.randrange(len(plain))
        return [*plain[:at], odd_inside(plain[at], chance), *plain[at + 1 :]]
    return chance.choice((*ODD_NUMBERS, *ODD_WORDS, *ODD_TEXTS, None, True, 1.5, [], {}, [[]], {"a": {}}, [1, "a"]))


def damaged(frame: bytes, chance: Random) -> bytes:
    """A frame with a few damaged bytes: changed, missing, repeated, or cut off."""
    raw = bytearray(frame)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(raw)) if raw else 0
        match chance.randrange(5):
            case 0 if raw:
                raw[at] = chance.randrange(256)
            case 1 if raw:
                raw[at] ^= 1 << chance.randrange(8)
            case 2:
                del raw[at : at + chance.randrange(1, 9)]
            case 3:
                raw[at:at] = raw[at : at + chance.randrange(1, 40)]
            case _:
                del raw[at:]
    return bytes(raw)
