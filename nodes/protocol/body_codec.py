"""Bodies to msgpack and back, through functions that cattrs generates once per class.

Map keys must be texts in msgpack: a mapping from ids or queues travels as sorted pairs.
Sets travel as sorted lists. Numbers that exceed the width of their field are refused.
"""

from collections.abc import Callable, Mapping
from enum import Enum, IntEnum, StrEnum
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeVar, get_args, get_type_hints

import attrs
import msgpack
from cattrs import Converter
from cattrs.fns import identity
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from nodes.protocol.errors import ProtocolError, UnreadableBody
from nodes.protocol.model import Message, MessageQueue
from nodes.protocol.widths import INT32_MAX, INT32_MIN, INT64_MAX, Int32, checked, limits, without_none, without_width
from nodes.protocol.wire_names import wire_name

T = TypeVar("T")
BODY_CACHE_ENTRIES = 4096
"""Decoded bodies in the cache: they are never changed, and most are received again and again."""
SMALL_BODY_BYTES = 256
"""Bodies up to this size are always cached: hashing them is cheaper than decoding them."""

_to_plain: dict[type, Callable[[Any], Any]] = {}
_from_plain: dict[type, Callable[[Any, Any], Any]] = {}
_converter = Converter(detailed_validation=False)
_pack = msgpack.Packer().pack
_MESSAGE_ROW = (str, int, int, int, int, int, bytes, dict, int, int, int, str, str)
"""Types in the row of a message."""
_SHOWN_CHARS = 80
"""Of a value in an error."""
_ERROR_CHARS = 200


def encode_body(body: Any) -> bytes:
    """A body as msgpack; bytes are a raw body and stay as they are."""
    if isinstance(body, bytes):
        return body
    cls = body.__class__
    to_plain = _to_plain.get(cls)
    if to_plain is None:
        to_plain = _to_plain[cls] = _converter.get_unstructure_hook(cls)
    return _pack(to_plain(body))  # type: ignore[no-any-return]


class SharedBody:
    """A body whose bytes are made when they are read: a receiver that gets the frame by reference has the value."""

    __slots__ = ("_carried", "is_short", "value")

    def __init__(self, value: Any, *, is_short: bool) -> None:
        self.value = value
        self.is_short = is_short
        """Whether it is known to fit into a frame."""
        self._carried: bytes | None = None

    @property
    def carried(self) -> bytes:
        """The bytes, for a carrier."""
        if self._carried is None:
            self._carried = encode_body(self.value)
        return self._carried

    def __bytes__(self) -> bytes:
        return self.carried

    def __len__(self) -> int:
        return len(self.carried)


def encode_shared_body(body: Any, *, is_short: bool = False) -> bytes:
    """As `encode_body`, for a value that no one changes, nor anything in it: receivers may get the value itself.

    Args:
        is_short: whether it is known to fit into a frame, so that no one has to count its bytes.

    Returns:
        A `SharedBody`, which is read with `decode_body` as other bodies are.
    """
    return SharedBody(body, is_short=is_short)  # type: ignore[return-value]


def decode_body(cls: type[T], raw: bytes | None) -> T:
    """Read a body.

    Args:
        cls: the body class, from `nodes.protocol.registry`; `bytes` gives the raw body.
        raw: `Command.body`.

    Returns:
        A value of tuples and read-only mappings.

    Raises:
        ProtocolError: the bytes are not msgpack, or do not match `cls`.
    """
    shared: Any = raw
    if shared.__class__ is SharedBody:
        if shared.value.__class__ is cls:
            return shared.value
        raw = shared.carried
    if raw is not None and len(raw) <= SMALL_BODY_BYTES:
        return _decode_once(cls, raw)  # type: ignore[no-any-return, arg-type]
    return _decode(cls, raw)


def _decode(cls: type[T], raw: bytes | None) -> T:
    if cls is bytes:
        return raw or b""  # type: ignore[return-value]
    if isinstance(raw, UnreadableBody):
        raise ProtocolError(raw.reason)
    from_plain = _from_plain.get(cls)
    if from_plain is None:
        from_plain = _from_plain[cls] = _converter.get_structure_hook(cls)
    try:
        return from_plain(msgpack.unpackb(raw or b""), cls)  # type: ignore[no-any-return]
    except (ValueError, KeyError, TypeError, AttributeError, msgpack.UnpackException, RecursionError) as error:
        raise ProtocolError(
            f"body of {len(raw or b'')} bytes is no {cls.__name__}: {repr(error)[:_ERROR_CHARS]}; "
            "the peer speaks another version?"
        ) from error


@lru_cache(maxsize=BODY_CACHE_ENTRIES)
def _decode_once(cls: type[Any], raw: bytes | None) -> Any:
    return _decode(cls, raw)


def decode_body_cached(cls: type[T], raw: bytes | None) -> T:
    """As `decode_body`, with a cache: for big bodies that many nodes receive or that hardly change.

    Raises:
        ProtocolError: as `decode_body`; errors are not cached.
    """
    return _decode_once(cls, raw)  # type: ignore[no-any-return, arg-type]


def _exactly(kind: type) -> Callable[[Any, Any], Any]:
    def check(value: Any, _: Any) -> Any:
        if value.__class__ is not kind:
            raise TypeError(f"{_shown(value)} is no {kind.__name__}")
        return value

    return check


def _number(annotation: Any) -> Callable[[Any, Any], int]:
    def check(value: Any, _: Any) -> int:
        if value.__class__ is not int:
            raise TypeError(f"{_shown(value)} is no int")
        return checked(value, annotation)

    return check


def _shown(value: Any) -> str:
    return repr(value)[:_SHOWN_CHARS]


def _choice(value: Any, kind: type[Enum]) -> Enum:
    # Without this an enum would be read as a plain text or number, and comparisons with `is` would fail.
    return kind(value)


def _is_tuple(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is tuple


def _is_int_mapping(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is Mapping and get_args(annotation)[0] is int


def _is_queue_mapping(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is Mapping and get_args(annotation)[0] is MessageQueue


def _is_text_mapping(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", None) is Mapping and get_args(annotation)[0] is str


def _list_decoder(annotation: Any) -> Callable[[Any, Any], Any]:
    element = get_args(annotation)[0]
    hook = _converter.get_structure_hook(element)

    def decode(value: Any, _: Any) -> tuple[Any, ...]:
        if value.__class__ is not list:
            raise TypeError(f"{_shown(value)} is no list")
        return tuple([hook(item, element) for item in value])

    return decode


def _list_encoder(annotation: Any) -> Callable[[Any], Any]:
    hook = _converter.get_unstructure_hook(get_args(annotation)[0])
    if hook is identity:
        return list

    def encode(value: tuple[Any, ...]) -> list[Any]:
        return [hook(item) for item in value]

    return encode


def _text_mapping_decoder(annotation: Any) -> Callable[[Any, Any], Any]:
    element = get_args(annotation)[1]
    hook = _converter.get_structure_hook(element)

    def decode(value: Any, _: Any) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise TypeError(f"{_shown(value)} is no map")
        return {key: hook(item, element) for key, item in value.items()}

    return decode


def _pairs_decoder(annotation: Any) -> Callable[[Any, Any], Any]:
    element = get_args(annotation)[1]
    hook = _converter.get_structure_hook(element)

    def decode(value: Any, _: Any) -> dict[int, Any]:
        pairs = [(_key(key, int), hook(item, element)) for key, item in value]
        return dict(pairs)

    return decode


def _pairs_encoder(annotation: Any) -> Callable[[Any], Any]:
    hook = _converter.get_unstructure_hook(get_args(annotation)[1])

    def encode(value: Mapping[int, Any]) -> list[list[Any]]:
        return [[key, hook(value[key])] for key in sorted(value)]

    return encode


def _queue_pairs_decoder(annotation: Any) -> Callable[[Any, Any], Any]:
    element = get_args(annotation)[1]
    key_hook, hook = _converter.get_structure_hook(MessageQueue), _converter.get_structure_hook(element)

    def decode(value: Any, _: Any) -> dict[MessageQueue, Any]:
        return {key_hook(key, MessageQueue): hook(item, element) for key, item in value}

    return decode


def _queue_pairs_encoder(annotation: Any) -> Callable[[Any], Any]:
    key_hook = _converter.get_unstructure_hook(MessageQueue)
    hook = _converter.get_unstructure_hook(get_args(annotation)[1])

    def encode(value: Mapping[MessageQueue, Any]) -> list[list[Any]]:
        return [[key_hook(key), hook(value[key])] for key in sorted(value)]

    return encode


def _body_encoder(cls: type) -> Callable[[Any], Any]:
    return make_dict_unstructure_fn(cls, _converter, **_renames(cls))


def _body_decoder(cls: type) -> Callable[[Any, Any], Any]:
    decode: Callable[[Any, Any], Any] = make_dict_structure_fn(
        cls,
        _converter,
        _cattrs_detailed_validation=False,
        **_renames(cls),
    )
    fields, hints = attrs.fields(cls), get_type_hints(cls, include_extras=True)
    if len(fields) < 2 or not all(_is_flat(hint) for hint in hints.values()):
        return decode
    numbers = tuple(
        (place, *limits(without_none(hints[field.name])))
        for place, field in enumerate(fields)
        if without_width(without_none(hints[field.name])) is int
    )
    return _flat_decoder(cls, decode, itemgetter(*(wire_name(cls, field) for field in fields)), numbers)


def _flat_decoder(
    cls: type,
    decode: Callable[[Any, Any], Any],
    values_of: Callable[[Any], tuple[Any, ...]],
    numbers: tuple[tuple[int, int, int], ...],
) -> Callable[[Any, Any], Any]:
    """Decode by the types of the values; a combination of types that was valid once is not checked again.

    Args:
        cls: the class of the values.
        decode: the decoder that checks every field.
        values_of: returns the fields of a map.
        numbers: of each number its place among the fields, its smallest and its largest value.
    """
    accepted: dict[tuple[type, ...], None] = {}

    def decode_flat(fields: Any, _: Any) -> Any:
        try:
            values = values_of(fields)
        except KeyError:
            return decode(fields, cls)
        types = (*map(type, values),)
        if types in accepted:
            for place, smallest, largest in numbers:
                number = values[place]
                if number is not None and not smallest <= number <= largest:
                    return decode(fields, cls)
            return cls(*values)
        value = decode(fields, cls)
        accepted[types] = None
        return value

    return decode_flat


def _is_flat(annotation: Any) -> bool:
    return without_width(without_none(annotation)) in (str, int, bool, bytes)


def _renames(cls: type) -> dict[str, Any]:
    return {field.name: override(rename=wire_name(cls, field)) for field in attrs.fields(cls)}


def _message_to_row(message: Message) -> list[Any]:
    return [
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.commit_log_offset,
        message.born_timestamp,
        message.store_timestamp,
        message.body,
        dict(message.properties),
        message.reconsume_times,
        message.sys_flag,
        message.flag,
        message.born_host,
        message.store_host,
    ]


def _row_to_message(row: Any, _: Any) -> Message:
    message = Message(*row)
    if (*map(type, row),) != _MESSAGE_ROW:
        raise TypeError("not a row of a message")
    int32s = (message.queue_id, message.reconsume_times, message.sys_flag, message.flag)
    # A number in msgpack is never smaller than Java's, but may need 64 bits without a sign.
    if not (min(int32s) >= INT32_MIN and max(int32s) <= INT32_MAX and max(row[2:6]) <= INT64_MAX):
        raise ValueError("a number in the row of a message exceeds its width")
    return message


_key = _number(int)
for _kind_of_value in (str, bool, bytes):
    _converter.register_structure_hook(_kind_of_value, _exactly(_kind_of_value))
_converter.register_structure_hook(int, _number(int))
_converter.register_structure_hook_factory(lambda annotation: annotation == Int32, _number)
_converter.register_structure_hook(StrEnum, _choice)
_converter.register_structure_hook(IntEnum, _choice)
_converter.register_structure_hook_factory(attrs.has, _body_decoder)
_converter.register_unstructure_hook_factory(attrs.has, _body_encoder)
_converter.register_structure_hook_factory(_is_tuple, _list_decoder)
_converter.register_unstructure_hook_factory(_is_tuple, _list_encoder)
_converter.register_structure_hook_factory(_is_text_mapping, _text_mapping_decoder)
_converter.register_structure_hook_factory(_is_int_mapping, _pairs_decoder)
_converter.register_unstructure_hook_factory(_is_int_mapping, _pairs_encoder)
_converter.register_structure_hook_factory(_is_queue_mapping, _queue_pairs_decoder)
_converter.register_unstructure_hook_factory(_is_queue_mapping, _queue_pairs_encoder)
_converter.register_structure_hook(Message, _row_to_message)
_converter.register_unstructure_hook(Message, _message_to_row)
