"""Event lines: one aligned line of text per event, for people who watch a run."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from emulator.base.text import shortened
from emulator.spec import Scenario
from emulator.spec.model.addresses import owners
from emulator.trace.batches import Row
from emulator.trace.schema import ADMIN, BELIEFS, FAULTS, LIFECYCLE, OWNERSHIP, TraceTable
from nodes.beliefs import BeliefKind, OwnershipEvent
from nodes.protocol.assigning import RebalanceMode
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.units import NS_PER_S

_VALUE_CHARS = 110
_CLIENT_ID = re.compile(r"(127\.1\.\d+\.\d+)(@[0-9#]+|:\d+)?")
_GUEST_CLIENT_ID = re.compile(r"[^\s,;\"'\[\](){}]+@[^\s,;\"'\[\](){}]+")
_TIME_CHARS, _WHAT_CHARS = 10, 15


class EventLines:
    """Formats rows of a run as lines, with names of nodes, and only for topics of the scenario.

    Args:
        scenario: of the run.
        names: mapping IP address, or client id of a guest -> node; it may grow. None: that of the scenario.
    """

    def __init__(self, scenario: Scenario, names: Mapping[str, str] | None = None) -> None:
        nodes = owners(scenario)
        self._names = nodes if names is None else names
        self._node_chars = max(map(len, nodes.values()), default=0)
        retry = (RETRY_TOPIC_PREFIX + group.group for group in scenario.consumers)
        self._topics = dict.fromkeys([*(topic.name for topic in scenario.topics), *retry])
        self._descriptions: Mapping[str, Callable[[Mapping[str, int | str]], tuple[str, str] | None]] = {
            FAULTS.name: _fault,
            LIFECYCLE.name: _stage,
            OWNERSHIP.name: _queue,
            ADMIN.name: _act,
            BELIEFS.name: self._belief,
        }

    def line(self, table: TraceTable, row: Row) -> str | None:
        """A row as a line; None for rows that are too frequent, or about system topics."""
        describe = self._descriptions.get(table.name)
        if describe is None:
            return None
        fields = {column.name: value for column, value in zip(table.columns, row, strict=True)}
        answer = describe(fields)
        if answer is None:
            return None
        subject, text = answer
        node, time_s = str(fields.get("node", "")), int(fields["t_ns"]) / NS_PER_S
        head = f"{time_s:{_TIME_CHARS}.3f}  {node:<{self._node_chars}}  {subject:<{_WHAT_CHARS}}"
        return f"{head} {self._named(text)}".rstrip()

    def value(self, kind: str, value: str) -> str:
        """The JSON value of a belief, in words."""
        return self._named(value_in_words(kind, json.loads(value)))

    def shows(self, kind: str, subject: str) -> bool:
        """Whether a belief is shown: not routes of system topics, nor beliefs that change all the time."""
        return kind not in _TOO_OFTEN and (kind != BeliefKind.ROUTE or subject in self._topics)

    def _belief(self, fields: Mapping[str, int | str]) -> tuple[str, str] | None:
        kind, subject = str(fields["kind"]), str(fields["subject"])
        if not self.shows(kind, subject):
            return None
        text = self.value(kind, str(fields["value"]))
        source = f" (from {fields['source']})" if fields["source"] else ""
        return kind, f"{subject}: {shortened(text, _VALUE_CHARS)}{source}"

    def _named(self, text: str) -> str:
        """Replace client ids and addresses by names of nodes."""
        return with_names(text, self._names)


def value_in_words(kind: str, value: Any) -> str:
    """The value of a belief in words.

    Args:
        kind: a `BeliefKind`.
        value: of the trace, read from JSON.
    """
    return "nothing any more" if value is None else _IN_WORDS.get(kind, _as_it_is)(value)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Replace client ids and addresses by names of nodes.

    Args:
        text: any text.
        names: mapping IP address, address with a port, or client id of a guest -> node.
    """
    text = _CLIENT_ID.sub(lambda match: names.get(match[0]) or names.get(match[1], match[0]), text)
    return _GUEST_CLIENT_ID.sub(lambda match: names.get(match[0], match[0]), text) if "@" in text else text


def _fault(fields: Mapping[str, int | str]) -> tuple[str, str]:
    parameters = {k: v for k, v in json.loads(str(fields["parameters"])).items() if k != "one_way"}
    text = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"FAULT {fields['event']}", f"{fields['kind']} {fields['subject']}" + (f" ({text})" if text else "")


def _stage(fields: Mapping[str, int | str]) -> tuple[str, str]:
    return str(fields["event"]), str(fields["detail"])


def _queue(fields: Mapping[str, int | str]) -> tuple[str, str]:
    starts = fields["event"] == OwnershipEvent.ACQUIRED and int(fields["offset"]) >= 0
    at = f" from offset {fields['offset']}" if starts else ""
    return str(fields["event"]), f"{fields['topic']} {fields['broker_name']} q{fields['queue_id']}{at}"


def _act(fields: Mapping[str, int | str]) -> tuple[str, str]:
    """`ADMIN UPDATE_AND_CREATE_TOPIC orders (from 127.1.7.1:32769): perm=6, readQueueNums=8`."""
    named = " ".join(str(fields[name]) for name in ("topic", "group") if fields[name])
    text = ", ".join(f"{name}={value}" for name, value in json.loads(str(fields["detail"])).items())
    head = " ".join(part for part in (str(fields["request"]), named, f"(from {fields['client']})") if part)
    return "ADMIN", shortened(f"{head}: {text}" if text else head, _VALUE_CHARS)


def _view(value: Any) -> str:
    return f"{_members(value['cids'])}; {sum(value['queues'].values())} queues"


def _members(client_ids: Collection[str]) -> str:
    return f"{len(client_ids)} members: {' '.join(client_ids)}"


def proxies_in(ids: str) -> list[str]:
    """The addresses of proxies in the value of a member; the id of a proxy ends with its ports."""
    return [proxy_id.partition("%")[0] for proxy_id in ids.split(";")]


def _proxy_members(proxies_of: Mapping[str, str]) -> str:
    """`3 members: c1 at proxy-1, c2 at proxy-1 and proxy-2`; a client that is listed twice counts twice."""
    if not proxies_of:
        return "no members"
    names = {client: proxies_in(proxies) for client, proxies in proxies_of.items()}
    members = ", ".join(f"{client} at {' and '.join(proxies)}" for client, proxies in names.items())
    return f"{sum(map(len, names.values()))} members: {members}"


def _route(value: Any) -> str:
    return ", ".join(f"{name} ({_queues(*entry['queues'])})" for name, entry in value.items())


def _queues(read: int, write: int, perm: int) -> str:
    count = str(read) if read == write else f"{read} to read, {write} to write"
    return f"{count} queues, perm {perm}"


def _live(value: Any) -> str:
    return ", ".join(f"id {broker_id} {address}" for broker_id, address in value.items())


def _as_it_is(value: Any) -> str:
    return json.dumps(value).replace('"', "")


def _minimum(value: Any) -> str:
    return f"id {value['id']} {value['address'] or '(not seen yet)'}"


def _state(value: Any) -> str:
    return str(value["state"])


def _switch(value: Any) -> str:
    return "runs" if value else "stopped"


def _busy(value: Any) -> str:
    refused = ", ".join(f"{count} x {reason}" for reason, count in value["refused"].items())
    return f"{value['waiting']} wait, the longest wait was {value['waited_max_ms']} ms; refused: {refused or 'none'}"


def _denied(value: Any) -> str:
    return f"{value['denied']} x {value['request']} of {value['user'] or value['ip']}: {value['reason']}"


def _queues_held(value: Any) -> str:
    return ", ".join(f"{broker_name} q{queue_id}" for broker_name, queue_id in value) or "no queue"


def _allocated_queues(value: Any) -> str:
    shares = ", ".join(f"{client_id} {len(queues)}" for client_id, queues in value["shares"].items())
    return f"epoch {value['epoch']}, queues per member: {shares}"


def _epoch(value: Any) -> str:
    return f"{value['epoch']} of {value['assigner']}"


def _leader(value: Any) -> str:
    return f"{value['leader'] or 'nobody'} leads in term {value['term']}"


def _part(value: Any) -> str:
    return f"{value['role']}{', serves requests' if value['serves'] else ''}"


def _broker_role(value: Any) -> str:
    replica = "no replica yet" if value["replica"] is None else f"replica {value['replica']}"
    master = "no master" if value["master"] is None else f"master {value['master']}"
    return f"{replica}, serves as {value['serves_as'] or 'nothing'}; {master} of epoch {value['epoch']}"


def _sync_state(value: Any) -> str:
    in_sync = " ".join(map(str, value["in_sync"])) or "nobody"
    master = "no master" if value["master"] is None else f"master {value['master']}"
    return f"{master} of epoch {value['epoch']}; in sync: {in_sync} (epoch {value['in_sync_epoch']})"


def _assigner(value: Any) -> str:
    return _ASSIGNERS[RebalanceMode(value)]


_ASSIGNERS = {
    RebalanceMode.CLIENT: "each member allocates for itself",
    RebalanceMode.BROKER: "any broker allocates",
    RebalanceMode.ASSIGNER: "one broker allocates, the assigner",
}
_TOO_OFTEN = (BeliefKind.ASSIGNMENT, BeliefKind.DATA_VERSION, BeliefKind.BUSY, BeliefKind.DENIED)
_IN_WORDS: Mapping[str, Callable[[Any], str]] = {
    BeliefKind.VIEW: _view,
    BeliefKind.CONSUMER_IDS: _members,
    BeliefKind.PROXY_MEMBERS: _proxy_members,
    BeliefKind.ROUTE: _route,
    BeliefKind.LIVE_BROKERS: _live,
    BeliefKind.MEMBER_GROUP: _live,
    BeliefKind.MIN_BROKER: _minimum,
    BeliefKind.SPECIAL_SERVICE: _switch,
    BeliefKind.HA_STATE: _state,
    BeliefKind.ASSIGNMENT: _queues_held,
    BeliefKind.BUSY: _busy,
    BeliefKind.DENIED: _denied,
    BeliefKind.ALLOCATION: _allocated_queues,
    BeliefKind.EPOCH: _epoch,
    BeliefKind.REBALANCE_MODE: _assigner,
    BeliefKind.CONTROLLER_LEADER: _leader,
    BeliefKind.CONTROLLER_ROLE: _part,
    BeliefKind.SYNC_STATE: _sync_state,
    BeliefKind.BROKER_ROLE: _broker_role,
}
