"""One aligned line per event, for people who watch a run."""

import json
from collections.abc import Iterable, Mapping

from emulator.trace.recorder import Row
from emulator.trace.schema import BELIEFS, FAULTS, LIFECYCLE, OWNERSHIP, Table
from nodes.beliefs import BeliefKind, OwnershipEvent

_NS = 1_000_000_000
_VALUE_CHARS = 90


def event_line(table: Table, row: Row) -> str | None:
    """A row in one line; None for what happens too often to be read."""
    fields = {column.name: value for column, value in zip(table.columns, row, strict=True)}
    match table.name:
        case FAULTS.name:
            node, what, text = "", f"FAULT {fields['event']}", _fault(fields)
        case LIFECYCLE.name:
            node, what, text = str(fields["node"]), str(fields["event"]), str(fields["detail"])
        case OWNERSHIP.name:
            node, what, text = str(fields["node"]), str(fields["event"]), _queue(fields)
        case BELIEFS.name if fields["kind"] != BeliefKind.ASSIGNMENT:
            node, what, text = str(fields["node"]), str(fields["kind"]), _belief(fields)
        case _:
            return None
    return f"{int(fields['t_ns']) / _NS:10.3f}  {node:<12} {what:<13} {text}".rstrip()


def _fault(fields: Mapping[str, int | str]) -> str:
    parameters = {k: v for k, v in json.loads(str(fields["parameters"])).items() if k != "one_way"}
    text = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"{fields['kind']} {fields['subject']}" + (f" ({text})" if text else "")


def _queue(fields: Mapping[str, int | str]) -> str:
    queue = f"{fields['topic']}/{fields['broker_name']}/{fields['queue_id']}"
    at = f" from offset {fields['offset']}" if fields["event"] == OwnershipEvent.ACQUIRED else ""
    return f"{queue}{at}"


def _belief(fields: Mapping[str, int | str]) -> str:
    value = json.loads(str(fields["value"]))
    if fields["kind"] == BeliefKind.VIEW and value is not None:
        text = f"{len(value['cids'])} members: {_members(value['cids'])}"
    elif fields["kind"] == BeliefKind.CONSUMER_IDS and value is not None:
        text = f"{len(value)} members: {_members(value)}"
    else:
        text = str(fields["value"]).replace('"', "")
    source = f" (from {fields['source']})" if fields["source"] else ""
    text = text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 1] + "…"
    return f"{fields['subject']}: {text}{source}"


def _members(client_ids: Iterable[str]) -> str:
    return " ".join(client_id.partition("@")[0] for client_id in client_ids)
