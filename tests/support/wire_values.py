"""Random headers and bodies of every class of the protocol, for Hypothesis."""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Any, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

from nodes.protocol.headers_admin import CreateTopicRequestHeader
from nodes.protocol.model import FILTER_TYPES
from nodes.protocol.registry import EXCHANGES
from nodes.protocol.widths import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Int32, without_none

TEXTS = st.text(alphabet="ab%_@:.0é", max_size=4)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(INT64_MIN, INT64_MAX),
    Int32: st.integers(INT32_MIN, INT32_MAX),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    bytes: st.binary(max_size=4),
}

HEADERS = {cls: None for x in EXCHANGES.values() for cls in (x.request_header, x.response_header)}
BODIES = {
    cls: None for x in EXCHANGES.values() for cls in (x.request_body, x.response_body) if cls not in (None, bytes)
}

FilterType = StrEnum("FilterType", {name: name for name in FILTER_TYPES})
CHECKED: Mapping[Any, dict[str, Any]] = {CreateTopicRequestHeader: {"topic_filter_type": FilterType}}
"""The fields that a header's own check looks at -> what they may be."""


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a class of the protocol, or of the annotation of one of its fields."""
    if annotation in PLAIN:
        return PLAIN[annotation]
    inner = without_none(annotation)
    if inner is not annotation:
        return st.none() | values_of(inner)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin is Mapping:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=2)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    hints = get_type_hints(annotation, include_extras=True) | CHECKED.get(annotation, {})
    is_named_tuple = issubclass(annotation, tuple)
    names = annotation._fields if is_named_tuple else [field.name for field in attrs.fields(annotation)]
    return st.builds(annotation, **{name: values_of(hints[name]) for name in names})
