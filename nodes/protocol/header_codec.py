"""Encoding of headers as texts, with functions that cattrs generates once per class.

Decoding is as lenient as RocketMQ's: a missing field becomes None, "" or 0, and so does a malformed number where the
field may be None. A number that exceeds the width of its field is malformed.
"""

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from nodes.protocol.errors import ProtocolError
from nodes.protocol.headers import BoundaryType
from nodes.protocol.widths import Int32, int32_of, int64_of, without_none
from nodes.protocol.wire_names import wire_name

T = TypeVar("T")

_to_texts: dict[type, Callable[[Any], dict[str, str]]] = {}
_from_texts: dict[type, Callable[[Any, Any], Any]] = {}
_converter = Converter(detailed_validation=False)
_SHOWN_CHARS = 80
"""Of a text in an error."""


class NeededNumberError(ProtocolError):
    """A number that every handler of the header reads is missing or malformed.

    RocketMQ decodes it to null, and its handler fails. Here no handler is called: it might keep a part before it fails.
    """

    def __init__(self, problem: str, header: object) -> None:
        super().__init__(problem)
        self.header = header
        """As RocketMQ decodes it, with 0 for null."""


class HeaderTexts(Mapping[str, str]):
    """The texts of a header under RocketMQ's names; fields that are None are omitted.

    They are made when they are read: a receiver that gets the frame by reference has the header itself.
    """

    __slots__ = ("_texts", "header")

    def __init__(self, header: Any) -> None:
        self.header = header
        self._texts: dict[str, str] | None = None

    @property
    def carried(self) -> dict[str, str]:
        """The texts, for a carrier."""
        texts = self._texts
        if texts is None:
            cls = self.header.__class__
            to_texts = _to_texts.get(cls)
            if to_texts is None:
                to_texts = _to_texts[cls] = _header_encoder(cls)
            texts = self._texts = to_texts(self.header)
        return texts

    def __getitem__(self, name: str) -> str:
        return self.carried[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.carried)

    def __len__(self) -> int:
        return len(self.carried)

    def items(self) -> ItemsView[str, str]:
        """Those of the texts: what `Mapping` has makes a call for each field."""
        return self.carried.items()

    def values(self) -> ValuesView[str]:
        """As above."""
        return self.carried.values()

    def __repr__(self) -> str:
        return repr(self.carried)


encode_header = HeaderTexts
"""Encodes a header."""


def decode_header(cls: type[T], texts: Mapping[str, str]) -> T:
    """Read a header.

    Args:
        cls: the header class, from `nodes.protocol.registry`.
        texts: `Command.ext_fields`; names that the class does not know are ignored.

    Returns:
        The header; a missing field is None where the field may be None, else "", 0 or False.

    Raises:
        ProtocolError: a number is malformed in one of the headers (`FAST_CODES`) that RocketMQ reads field by field,
            or the header's own check (`check_fields`) refuses a value (`RefusedHeaderError`).
        NeededNumberError: a number is malformed in a field that may not be None, or missing in one of the headers
            whose handlers read every number (`NULLS_FAIL`).

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.RemotingCommand#decodeCommandCustomHeader`.
    """
    if texts.__class__ is HeaderTexts and texts.header.__class__ is cls:
        return texts.header
    from_texts = _from_texts.get(cls)
    if from_texts is None:
        from_texts = _from_texts[cls] = _header_decoder(cls)
    try:
        return from_texts(texts, cls)  # type: ignore[no-any-return]
    except (KeyError, ValueError):
        return _decode_damaged_header(cls, texts)


def _bool_to_text(value: object) -> str:
    return "true" if value else "false"


def _text_to_bool(text: str, _: Any = None) -> bool:
    return text == "true" or text.lower() == "true"


def _text_to_boundary(text: str, _: Any = None) -> BoundaryType:
    # Any other text means LOWER, as in `BoundaryType#getType`.
    return BoundaryType.UPPER if text.upper() == BoundaryType.UPPER else BoundaryType.LOWER


def _same(text: str, _: Any = None) -> str:
    return text


_ENCODERS: Mapping[Any, Callable[[Any], str] | None] = {
    str: None,
    int: str,
    Int32: str,
    bool: _bool_to_text,
    BoundaryType: str,
}
_DECODERS: Mapping[Any, Callable[..., Any]] = {
    str: _same,
    int: int64_of,
    Int32: int32_of,
    bool: _text_to_bool,
    BoundaryType: _text_to_boundary,
}


@lru_cache(maxsize=1024)
def _kind(cls: type, field: "attrs.Attribute[Any]") -> tuple[Any, bool]:
    """The type of a header field, and whether it may be None."""
    annotation = get_type_hints(cls, include_extras=True)[field.name]
    kind = without_none(annotation)
    return kind, kind is not annotation


def _header_encoder(cls: type) -> Callable[[Any], dict[str, str]]:
    overrides: dict[str, Any] = {}
    for field in attrs.fields(cls):
        kind, optional = _kind(cls, field)
        overrides[field.name] = override(
            rename=wire_name(cls, field), omit_if_default=optional, unstruct_hook=_ENCODERS[kind]
        )
    return make_dict_unstructure_fn(cls, _converter, **overrides)


def _header_decoder(cls: type) -> Callable[[Any, Any], Any]:
    from_texts = _plain_header_decoder(cls)
    if not hasattr(cls, "check_fields"):
        return from_texts

    def checked_header(texts: Any, kind: Any) -> Any:
        header = from_texts(texts, kind)
        header.check_fields()
        return header

    return checked_header


def _plain_header_decoder(cls: type) -> Callable[[Any, Any], Any]:
    overrides: dict[str, Any] = {}
    for field in attrs.fields(cls):
        kind, optional = _kind(cls, field)
        # Left to cattrs, a plain str is called without a hook in between: 0.1 us less per field.
        plain = not optional and kind is str
        overrides[field.name] = override(rename=wire_name(cls, field), struct_hook=None if plain else _DECODERS[kind])
    return make_dict_structure_fn(
        cls,
        _converter,
        _cattrs_detailed_validation=False,
        **overrides,
    )


def _decode_damaged_header(cls: type[T], texts: Mapping[str, str]) -> T:
    values: dict[str, Any] = {}
    problem = ""
    for field in attrs.fields(cls):  # type: ignore[arg-type]
        kind, optional = _kind(cls, field)  # type: ignore[arg-type]
        name = wire_name(cls, field)
        text = texts.get(name)
        is_needed = kind in (int, Int32) and not optional
        if text is None and is_needed and getattr(cls, "NULLS_FAIL", False):
            problem = problem or f"{name} is missing"
        try:
            values[field.name] = _DECODERS[kind](text) if text is not None else None
        except ValueError:
            malformed = f'For input string: "{(text or "")[:_SHOWN_CHARS]}"'
            if getattr(cls, "FAST_CODES", False):
                raise ProtocolError(malformed) from None
            problem = problem or (malformed if is_needed else "")
            values[field.name] = None
        if values[field.name] is None and not optional:
            values[field.name] = kind() if text is not None or field.default is attrs.NOTHING else field.default
    header = cls(**values)
    if hasattr(header, "check_fields"):
        header.check_fields()
    if problem:
        raise NeededNumberError(problem, header)
    return header
