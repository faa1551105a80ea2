"""What the loss of an elected master, or of the controller that leads, does to a group, from the trace of a run.

Seconds count from the begin of the fault; `in_sync_again` and `answers_again` from the moment at
which the new process is ready, or at which it runs on.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs

from emulator.spec import Scenario
from emulator.trace.schema import BELIEFS, FAULTS, LIFECYCLE, MESSAGES, RPC
from faults.plan import Phase
from nodes.beliefs import BeliefKind, LifecycleEvent, MessageEvent
from nodes.protocol.codes import RequestCode
from studies.timelines.events import BeliefRow, Instants
from support.run_rows import table_rows

_NS = 1_000_000_000
_REPLICAS = 3
_SENT_BEFORE_NS = 5 * _NS
"""Messages count that were sent so long before the fault, or later."""
_SEND_TIMEOUT_NS = 3 * _NS
_BACK = (LifecycleEvent.READY, LifecycleEvent.RESUMED)
_KINDS = tuple(kind.value for kind in (BeliefKind.ROUTE, BeliefKind.SYNC_STATE, BeliefKind.CONTROLLER_ROLE))
MessageKey = tuple[int, int, int]
"""Queue id, offset, store time."""


@attrs.frozen
class SentMessage:
    """A broker took a message, and its producer was notified in time."""

    key: MessageKey
    node: str
    """Which broker."""
    sent_ns: int
    acknowledged_ns: int


@attrs.frozen
class ConsumedMessage:
    """A listener has had a message."""

    t_ns: int
    key: MessageKey


@attrs.frozen(kw_only=True)
class ElectionStory:
    """The rows of one run that matter here, each kind in order of time."""

    beliefs: Sequence[BeliefRow]
    sent: Sequence[SentMessage]
    consumed: Sequence[ConsumedMessage]
    group: str
    """The brokerName."""
    topic: str
    nameservers: tuple[str, ...]
    producer: str
    victim: str
    """Who died or froze."""
    is_controller: bool
    fault_ns: int
    back_ns: int
    """When it was ready again, or ran on."""


def elections(run: Path, scenario: Scenario) -> Instants:
    """All events of a run."""
    return reported(read_elections(run, scenario))


def reported(story: ElectionStory) -> Instants:
    """When what happened, and what became of messages; events that did not happen are missing."""
    return _of_leader(story) if story.is_controller else _of_master(story)


def read_elections(run: Path, scenario: Scenario) -> ElectionStory:
    """Read what a run of one group and one fault has left."""
    fault = next(table_rows(run, FAULTS, ("t_ns", "subject"), ("event", "==", Phase.BEGIN.value)))
    fault_ns, victim = fault["t_ns"], fault["subject"]
    lives = table_rows(run, LIFECYCLE, ("t_ns", "node", "event"), ("node", "==", victim), ("t_ns", ">", fault_ns))
    back_ns = next(row["t_ns"] for row in lives if row["event"] in _BACK)
    beliefs = table_rows(run, BELIEFS, ("t_ns", "node", "kind", "subject", "value"), ("kind", "in", _KINDS))
    topic = scenario.topics[0].name
    return ElectionStory(
        beliefs=tuple(BeliefRow(**{**row, "value": json.loads(row["value"])}) for row in beliefs),
        sent=tuple(sorted(_sent(run, topic), key=lambda item: item.acknowledged_ns)),
        consumed=tuple(ConsumedMessage(row["t_ns"], _key(row)) for row in _messages(run, topic, MessageEvent.CONSUMED)),
        group=scenario.brokers[0].broker_name,
        topic=topic,
        nameservers=tuple(spec.name for spec in scenario.nameservers),
        producer=scenario.producers[0].name,
        victim=victim,
        is_controller=victim in scenario.controller_names(),
        fault_ns=fault_ns,
        back_ns=back_ns,
    )


def _messages(run: Path, topic: str, event: MessageEvent) -> Iterator[Mapping[str, int]]:
    columns = ("t_ns", "node", "queue_id", "offset", "stored_ms", "cause")
    return table_rows(run, MESSAGES, columns, ("event", "==", event.value), ("topic", "==", topic))


def _key(row: Mapping[str, int]) -> MessageKey:
    return row["queue_id"], row["offset"], row["stored_ms"]


def _sent(run: Path, topic: str) -> Iterator[SentMessage]:
    calls = ("seq", "t_ns", "sent_ns", "event", "kind", "status", "cause", "src")
    requested: dict[int, int] = {}
    answered: dict[int, int] = {}
    for row in table_rows(run, RPC, calls, ("code", "==", RequestCode.SEND_MESSAGE_V2)):
        if row["event"] == "delivered" and row["kind"] == "request":
            requested[row["seq"]] = row["sent_ns"]
        elif row["event"] == "delivered" and row["status"] == 0:
            answered[row["cause"]] = row["t_ns"]
    for stored in _messages(run, topic, MessageEvent.STORED):
        cause = stored["cause"]
        if cause in answered and answered[cause] - requested[cause] <= _SEND_TIMEOUT_NS:
            yield SentMessage(_key(stored), str(stored["node"]), requested[cause], answered[cause])


def _of_master(story: ElectionStory) -> Instants:
    epoch = _epoch_before(story)

    def is_new(state: Mapping[str, Any]) -> bool:
        return state["master"] is not None and state["epoch"] > epoch

    elsewhere = [item for item in story.sent if item.acknowledged_ns > story.fault_ns and item.node != story.victim]
    new = dict.fromkeys(item.key for item in elsewhere if item.sent_ns >= story.fault_ns)
    consumed = [item.t_ns for item in story.consumed if item.key in new]
    found = {
        "elected": _first_state(story, story.fault_ns, is_new),
        "ns_master": tuple(seconds for name in story.nameservers for seconds in _turned(story, name)),
        "client_route": _turned(story, story.producer),
        "writable": _seconds(story.fault_ns, [item.acknowledged_ns for item in elsewhere]),
        "consumed_again": _seconds(story.fault_ns, consumed),
        "second_in_sync": _first_state(
            story, story.fault_ns, lambda state: is_new(state) and len(state["in_sync"]) > 1
        ),
        "in_sync_again": _first_state(story, story.back_ns, lambda state: len(state["in_sync"]) == _REPLICAS),
    }
    return _happened(found | _of_messages(story))


def _of_leader(story: ElectionStory) -> Instants:
    serving = [
        row
        for row in _later(story, BeliefKind.CONTROLLER_ROLE, story.fault_ns)
        if row.value["serves"] and row.node != story.victim
    ]
    answers = [row.t_ns for row in _later(story, BeliefKind.CONTROLLER_ROLE, story.back_ns) if row.value["serves"]]
    states = [row.value["epoch"] for row in _later(story, BeliefKind.SYNC_STATE, story.fault_ns) if row.value]
    before = _epoch_before(story)
    found = {
        "leader": _seconds(story.fault_ns, [row.t_ns for row in serving]),
        "answers_again": _seconds(story.back_ns, answers),
        "elections": (float(max([before, *states]) - before),),
    }
    return _happened(found | _of_messages(story))


def _of_messages(story: ElectionStory) -> Instants:
    since_ns = story.fault_ns - _SENT_BEFORE_NS
    counted = [item for item in story.sent if item.sent_ns >= since_ns]
    consumed = Counter(item.key for item in story.consumed)
    pause_ns = max(later.acknowledged_ns - earlier.acknowledged_ns for earlier, later in pairwise(counted))
    return {
        "pause_of_sends": (round(pause_ns / _NS, 3),),
        "acknowledged_lost": (float(sum(item.key not in consumed for item in counted)),),
        "consumed_twice": (float(sum(consumed[item.key] > 1 for item in counted)),),
    }


def _turned(story: ElectionStory, node: str) -> tuple[float, ...]:
    """When a node first knew another master than before the fault."""
    rows = [row for row in story.beliefs if (row.node, row.kind, row.subject) == (node, BeliefKind.ROUTE, story.topic)]
    shown = [(row.t_ns, ((row.value or {}).get(story.group) or {}).get("addrs", {}).get("0")) for row in rows]
    before = [address for t_ns, address in shown if t_ns < story.fault_ns]
    return _seconds(story.fault_ns, [t_ns for t_ns, address in shown if address not in (None, *before[-1:])])


def _epoch_before(story: ElectionStory) -> int:
    states = [row for row in story.beliefs if row.kind == BeliefKind.SYNC_STATE and row.t_ns < story.fault_ns]
    return max((int(row.value["epoch"]) for row in states if row.value), default=0)


def _first_state(story: ElectionStory, since_ns: int, holds: Callable[[Mapping[str, Any]], bool]) -> tuple[float, ...]:
    rows = _later(story, BeliefKind.SYNC_STATE, since_ns)
    return _seconds(since_ns, [row.t_ns for row in rows if row.value and holds(row.value)])


def _later(story: ElectionStory, kind: BeliefKind, since_ns: int) -> list[BeliefRow]:
    return [row for row in story.beliefs if row.kind == kind and row.t_ns >= since_ns]


def _seconds(since_ns: int, instants_ns: Sequence[int]) -> tuple[float, ...]:
    """Of the first instant from then on."""
    return tuple(round((t_ns - since_ns) / _NS, 3) for t_ns in instants_ns if t_ns >= since_ns)[:1]


def _happened(found: Mapping[str, tuple[float, ...]]) -> Instants:
    return {event: values for event, values in found.items() if values}
