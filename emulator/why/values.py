"""What a node believes, and what became different, for people."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from emulator.base.text import shortened
from emulator.state.event_lines import value_in_words
from emulator.why.names import Names
from emulator.why.trace_rows import TraceRow
from nodes.beliefs import BeliefKind

_VALUE_CHARS = 100
_TOLD_CHANGES_MAX = 4
_MEMBER_KINDS = (BeliefKind.CONSUMER_IDS, BeliefKind.VIEW)


@attrs.frozen
class Change:
    """What of a belief became different."""

    gone: tuple[str, ...]
    """Client ids, addresses, or brokerNames that are no longer there."""
    new: tuple[str, ...]
    changed: tuple[str, ...]

    def words(self, names: Names) -> str:
        """`consumer-2 gone, broker-a new`; empty if nothing is different."""
        parts = [
            f"{_listed(names, items)} {what}"
            for items, what in ((self.gone, "gone"), (self.new, "new"), (self.changed, "changed"))
            if items
        ]
        return ", ".join(parts)


def value_of(row: TraceRow) -> Any:
    """The value of a belief."""
    return json.loads(row.text("value"))


def value_words(row: TraceRow, names: Names) -> str:
    """The value of a belief, as long as can be read."""
    return in_one_line(names.within(value_in_words(row.text("kind"), value_of(row))))


def change(before: TraceRow, after: TraceRow) -> Change:
    """What is different between two beliefs of one kind."""
    kind = after.text("kind")
    old, new = _items(kind, value_of(before)), _items(kind, value_of(after))
    return Change(
        tuple(item for item in old if item not in new),
        tuple(item for item in new if item not in old),
        tuple(item for item in new if item in old and old[item] != new[item]),
    )


def in_one_line(text: str) -> str:
    """A text of one line that can be read."""
    return shortened(" ".join(text.split()), _VALUE_CHARS)


def _items(kind: str, value: Any) -> dict[str, Any]:
    """A value as its parts: name of the part -> what is said of it."""
    if isinstance(value, Mapping):
        if kind == BeliefKind.VIEW:
            return {**dict.fromkeys(value["cids"]), **{f"queues of {name}": n for name, n in value["queues"].items()}}
        if kind in (BeliefKind.LIVE_BROKERS, BeliefKind.MEMBER_GROUP):
            return {address: broker_id for broker_id, address in value.items()}
        return dict(value) if kind in (BeliefKind.ROUTE, BeliefKind.QUEUE_LOCKS) else {}
    if isinstance(value, list) and kind in _MEMBER_KINDS:
        return dict.fromkeys(value)
    if isinstance(value, list) and kind == BeliefKind.ASSIGNMENT:
        return dict.fromkeys(f"{broker_name} q{queue_id}" for broker_name, queue_id in value)
    return {}


def _listed(names: Names, items: tuple[str, ...]) -> str:
    told = [names.within(item) for item in items[:_TOLD_CHANGES_MAX]]
    more = len(items) - len(told)
    return " and ".join((*told, f"{more} more") if more else told)
