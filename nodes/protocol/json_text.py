"""JSON as RocketMQ's library writes and reads it, for its files and for peers that use it.

Fields are in alphabetical order, and None is omitted. A map with numbers as
keys is written with bare keys, which is not standard JSON; RocketMQ before 4.9.4
sends it, and all versions read it.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

import attrs

from nodes.protocol.model import DataVersion
from nodes.protocol.wire_names import wire_name

_STRING_OR_BARE_KEY = re.compile(r'("(?:[^"\\]|\\.)*")|([{,]\s*)(-?\d+)(?=\s*:)')


def to_json(value: Any, *, standard: bool = False) -> str:
    """Write a value of attrs classes, mappings, sequences, texts, numbers and None.

    Args:
        value: the value; entries of a map stay in their order.
        standard: sort entries, and write numbers that are keys as texts, as every other JSON library expects, in
            ASCII.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.RemotingSerializable#toJson`.
    """
    # Answers about all queues have many thousands of values, so numbers and objects come first.
    if value.__class__ is int:
        return str(value)
    if value.__class__ is str:
        return _text(value, standard=standard)
    names = _names(value.__class__)
    if names is not None:
        named = ((key, getattr(value, name)) for key, name in names)
        return "{" + ",".join(key + to_json(item, standard=standard) for key, item in named if item is not None) + "}"
    if isinstance(value, Mapping):
        items = sorted(value.items()) if standard else value.items()
        entries = (f"{_key(key, standard=standard)}:{to_json(item, standard=standard)}" for key, item in items)
        return "{" + ",".join(entries) + "}"
    if isinstance(value, tuple | list):
        return "[" + ",".join(to_json(item, standard=standard) for item in value) + "]"
    return json.dumps(value, ensure_ascii=standard)


@lru_cache(maxsize=1024)
def _names(cls: type) -> tuple[tuple[str, str], ...] | None:
    """Of an attrs class the fields in the order of their wire names: `"queueId":`, and the attribute; else None."""
    if not attrs.has(cls):
        return None
    named = sorted((wire_name(cls, field), field.name) for field in attrs.fields(cls))
    return tuple((f"{json.dumps(key)}:", name) for key, name in named)


def from_json(text: str) -> Any:
    """Read JSON, bare numbers as keys included; all keys come back as texts.

    Raises:
        ValueError: it is not JSON of either kind.
    """
    try:
        return json.loads(text)
    except ValueError:
        pass
    return json.loads(_STRING_OR_BARE_KEY.sub(lambda found: found[1] or f'{found[2]}"{found[3]}"', text))


def _key(key: Any, *, standard: bool) -> str:
    if _names(key.__class__) is not None:  # an object: newer clients read nothing else there
        return to_json(key, standard=standard)
    return str(key) if isinstance(key, int) and not standard else _text(str(key), standard=standard)


def _text(text: str, *, standard: bool) -> str:
    """A text in quotes; `json.dumps` would make an encoder for each."""
    return encode_basestring_ascii(text) if standard else encode_basestring(text)


def data_version_of(read: Mapping[str, Any], *, now_ms: int) -> DataVersion:
    """A version from JSON that was read already."""
    new = DataVersion(timestamp=now_ms)
    return DataVersion(
        read.get("stateVersion", new.state_version),
        read.get("timestamp", new.timestamp),
        read.get("counter", new.counter),
    )
