"""Bodies in JSON, read as leniently as RocketMQ's clients read them, and written so that all of them can read them.

Missing fields are None or empty, a number may be a text, an enum its name in any case or its position.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from functools import lru_cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import attrs

from emulator.guests.remoting.fastjson import JsonError, ObjectKey, ValuesLeft, read_json, text_of
from nodes.protocol.errors import ProtocolError
from nodes.protocol.json_text import to_json
from nodes.protocol.widths import Int32, checked, int32_of, int64_of, without_none, without_width
from nodes.protocol.wire_names import wire_name

T = TypeVar("T")


def encode_json_body(value: Any) -> bytes:
    """A body as JSON: keys that are numbers become texts, which all clients read; keys that are objects stay."""
    return to_json(value, standard=True).encode()


def decode_json_body(cls: type[T], raw: bytes | None, left: ValuesLeft | None = None) -> T:
    """Read a body.

    Args:
        left: of a body of which this is a part.

    Raises:
        ProtocolError: it is not JSON, does not match `cls`, or makes too many values.
    """
    plain = plain_body(cls, raw, left)
    if plain is None:
        raise ProtocolError(f"a body is missing, expected JSON of a {cls.__name__}")
    return _build(cls, plain)  # type: ignore[no-any-return]


def plain_body(cls: type, raw: bytes | None, left: ValuesLeft | None = None) -> dict[str, Any] | None:
    """The fields of a body by the wire names of a class; None: missing or empty, or `null`.

    Args:
        left: as above.

    Raises:
        ProtocolError: as above.
    """
    if not raw:
        return None
    left = ValuesLeft() if left is None else left
    try:
        read = read_json(raw.decode("utf-8", "replace"), left)
        plain: dict[str, Any] | None = _plain(cls, read, left)
    except JsonError as error:
        raise ProtocolError(f"body of {len(raw)} bytes cannot be read as JSON: {error}") from error
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ProtocolError(f"body of {len(raw)} bytes is no {cls.__name__}: {error}") from error
    return plain


# --- from JSON to the fields of a class, without defaults -------------------------------


class _JsonShape(Enum):
    ARRAY = auto()
    MAP = auto()
    OBJECT = auto()
    SIMPLE = auto()


@lru_cache(maxsize=1024)
def _shape(annotation: Any) -> tuple[_JsonShape, Any, tuple[Any, ...]]:
    """The form in JSON of an annotation, the annotation without None, and its arguments."""
    kind = without_none(annotation)
    origin = get_origin(kind)
    if origin is tuple:
        return _JsonShape.ARRAY, kind, get_args(kind)
    if origin is Mapping:
        return _JsonShape.MAP, kind, get_args(kind)
    return _JsonShape.OBJECT if attrs.has(kind) else _JsonShape.SIMPLE, kind, ()


def _plain(annotation: Any, value: Any, left: ValuesLeft) -> Any:
    if value is None:
        return None
    shape, kind, arguments = _shape(annotation)
    match shape:
        case _JsonShape.ARRAY:
            items = _of(list, value)
            left.take(len(items))
            return [_plain(arguments[0], item, left) for item in items]
        case _JsonShape.MAP:
            key_kind, item_kind = arguments
            entries = _of(dict, value)
            left.take(len(entries))
            return {_key(key_kind, key, left): _plain(item_kind, item, left) for key, item in entries.items()}
        case _JsonShape.OBJECT:
            fields, of_kind = _of(dict, value), _fields(kind)
            left.take(len(of_kind))
            return {
                name: _plain(hint, fields[name], left) if name in fields else _initial(field)
                for name, field, hint in of_kind
            }
        case _JsonShape.SIMPLE:
            return _simple(kind, value)


def _initial(field: "attrs.Attribute[Any]") -> Any:
    """The value of a missing field."""
    return field.default if isinstance(field.default, str | int) else None


def _of(kind: type, value: Any) -> Any:
    if isinstance(value, ObjectKey):
        value = dict(value)
    if not isinstance(value, kind):
        raise TypeError(f"expected a {kind.__name__}, found {text_of(value)[:80]}")
    return value


def _key(kind: Any, key: Any, left: ValuesLeft) -> Any:
    return ObjectKey(_plain(kind, key, left).items()) if attrs.has(kind) else _plain(kind, key, left)


def _choice(kind: type[StrEnum], value: Any) -> str | None:
    members = list(kind)
    if isinstance(value, int):
        return members[value] if 0 <= value < len(members) else None
    return next((member for member in members if member.lower() == str(value).lower()), None)


def _number(kind: Any, value: Any) -> int | None:
    """A number as RocketMQ's library reads it: a fraction loses its digits, `true` is 1."""
    if isinstance(value, str):
        if value in ("", "null"):
            return None
        return int32_of(value) if kind == Int32 else int64_of(value)
    if not isinstance(value, int | float):
        raise TypeError(f"expected a number, found {text_of(value)[:80]}")
    return checked(int(value), kind)


def _simple(kind: Any, value: Any) -> Any:
    if without_width(kind) is int:
        return _number(kind, value)
    if issubclass(kind, StrEnum):
        return _choice(kind, value)
    if kind is str:
        return text_of(value)
    if kind is bool:
        return value if isinstance(value, bool) else str(value).lower() in ("true", "1", "y", "t")
    raise TypeError(f"nothing in JSON is a {kind.__name__}")


# --- from fields to a value, with defaults -----------------------------------------------


def _build(annotation: Any, plain: Any) -> Any:
    """A value of an annotation; None becomes the field's default, or the empty value of its type."""
    shape, kind, arguments = _shape(annotation)
    if shape is _JsonShape.SIMPLE:
        return plain
    if shape is _JsonShape.ARRAY:
        return tuple(_build(arguments[0], item) for item in plain if item is not None)
    if shape is _JsonShape.MAP:
        key_kind, item_kind = arguments
        return {
            _build(key_kind, dict(key)) if attrs.has(key_kind) else key: _build(item_kind, item)
            for key, item in plain.items()
            if item is not None
        }
    values = {}
    for name, field, hint in _fields(kind):
        answer = plain[name]
        if answer is not None:
            values[field.name] = _build(hint, answer)
        elif field.default is attrs.NOTHING:
            values[field.name] = _nothing(hint)
    return kind(**values)


@lru_cache(maxsize=1024)
def _nothing(kind: Any) -> Any:
    """The value of a missing field that may not be None; no one changes it."""
    if without_none(kind) is not kind:
        return None
    kind = without_width(kind)
    origin = get_origin(kind)
    if origin is tuple:
        return ()
    if origin is Mapping:
        return {}
    if attrs.has(kind):
        return _build(kind, {name: None for name, _, _ in _fields(kind)})
    return next(iter(kind)) if issubclass(kind, StrEnum) else kind()


@lru_cache(maxsize=1024)
def _fields(cls: type) -> tuple[tuple[str, "attrs.Attribute[Any]", Any], ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple((wire_name(cls, field), field, hints[field.name]) for field in attrs.fields(cls))
