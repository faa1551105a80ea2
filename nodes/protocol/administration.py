"""The requests by which administrators change a cluster, and what each of them names."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgpack

from nodes.protocol.admin_request import AdminRequest
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import EXCHANGES
from nodes.secret import shown_field
from nodes.values import frozen

_TEXT_CHARS_MAX = 200
_ENTRIES_MAX = 20

ADMIN_REQUESTS: Mapping[int, AdminRequest] = MappingProxyType(
    {code: exchange.admin for code, exchange in EXCHANGES.items() if isinstance(exchange.admin, AdminRequest)}
)
"""Request code -> what it changes."""


@frozen
class NamedChange:
    """One thing that a request changes."""

    topic: str
    group: str
    broker_name: str
    detail: Mapping[str, Any]
    """The other fields of the request, long values shortened."""


def changes_of(request: Command) -> Iterator[NamedChange]:
    """What a request changes: one entry, or one for each entry of the list in its body.

    Args:
        request: of a code in `ADMIN_REQUESTS`; a node has read it already.
    """
    kind = ADMIN_REQUESTS[request.code]
    body = _plain_body(request)
    listed: Iterable[Mapping[Any, Any]] = body.pop(kind.entries, None) or () if kind.entries else ({},)
    for entry in listed:
        fields = {**request.ext_fields, **body, **entry}
        topic, group, broker_name = (str(fields.pop(name, None) or "") for name in kind.names)
        yield NamedChange(topic, group, broker_name, _short_fields(fields))


def _plain_body(request: Command) -> dict[str, Any]:
    """The fields of the body; those of a configuration are its lines."""
    kind = EXCHANGES[RequestCode(request.code)].request_body
    if kind is None or request.body is None:
        return {}
    if kind is bytes:
        lines = bytes(request.body).decode(errors="replace").splitlines()
        pairs = (line.partition("=") for line in lines if "=" in line)
        return {name.strip(): value.strip() for name, _, value in pairs}
    return dict(msgpack.unpackb(bytes(request.body)))


def _short_fields(fields: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): shown_field(str(name), _short(value)) for name, value in fields.items() if value is not None}


def _short(value: Any) -> Any:
    """A value as JSON without floats, of bounded length."""
    if isinstance(value, Mapping) and len(value) <= _ENTRIES_MAX:
        return _short_fields(value)
    if isinstance(value, list) and len(value) <= _ENTRIES_MAX:
        return [_short(item) for item in value]
    if isinstance(value, Mapping | list):
        return f"{len(value)} entries"
    if value is None or isinstance(value, bool | int):
        return value
    text = str(value)
    return text if len(text) <= _TEXT_CHARS_MAX else text[: _TEXT_CHARS_MAX - 1] + "…"
