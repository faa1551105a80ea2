"""When a broker group served a topic only in part: no one of it runs, it is not listed, or it takes no messages.

Not judged, but hatched in pictures: a queue whose broker is away is not consumed,
whichever node owns it. What counts is what clients can see: which members of the group
are awake, and what the nameservers list of it.
"""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.presence import Presence
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow, LifeRow, Process
from emulator.spec.model.scenario import BROKER, NAMESERVER
from emulator.trace.schema import BELIEFS, LIFECYCLE, TraceTable
from nodes.beliefs import PROCESS_ENDS, BeliefKind
from nodes.protocol.model import is_writeable

_MASTER_ID = "0"


class BrokerState(StrEnum):
    """How a broker group serves a topic."""

    AWAY = "away"
    """No broker of the group is awake, or no nameserver lists it."""
    READ_ONLY = "read only"
    """No nameserver lists a master of it, or one that takes messages."""
    WHOLE = "whole"


@attrs.frozen
class BrokerSpan:
    """A broker group served a topic only in part."""

    topic: str
    broker_name: str
    state: BrokerState
    """How it served: `away` or `read only`."""
    start_ns: int
    end_ns: int
    censored: bool


BROKER_STATES = FindingTable("broker_states", BrokerSpan, "a broker group served a topic only in part")
_Since = tuple[BrokerState, int]
"""A state, and since when in ns."""


class BrokerStates(Watcher):
    """Follows the processes of brokers, and what nameservers list.

    Args:
        presence: reads the same rows before.
        broker_names: mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, presence: Presence, broker_names: Mapping[str, str]) -> None:
        self._presence = presence
        self._broker_names = broker_names
        self._processes: dict[str, dict[Process, None]] = {}
        self._routes: dict[str, dict[Process, Mapping[str, Any]]] = {}
        """Mapping topic -> route of each live nameserver."""
        self._known: dict[str, dict[str, _Since]] = {}
        """Mapping topic -> brokerName that was ever whole -> its state."""
        self._touched: dict[str, None] = {}
        """Topics; an empty one stands for all."""
        self._found: list[BrokerSpan] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads routes, and the processes of brokers and nameservers."""
        return {BELIEFS: self._belief, LIFECYCLE: self._life}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.ROUTE and row.role == NAMESERVER:
            self._routes.setdefault(row.subject, {})[row.node, row.incarnation] = json.loads(row.value) or {}
            self._touched[row.subject] = None

    def _life(self, row: LifeRow) -> None:
        process = row.node, row.incarnation
        if row.role == BROKER:
            name = self._broker_names.get(row.node, row.node)
            self._processes.setdefault(name, {})[process] = None
            self._touched[""] = None
        elif row.role == NAMESERVER and row.event in PROCESS_ENDS:
            for routes in self._routes.values():
                routes.pop(process, None)
            self._touched[""] = None

    def settle(self, t_ns: int) -> None:
        """Look at what has changed."""
        topics = list(self._routes) if "" in self._touched else list(self._touched)
        self._touched.clear()
        for topic in topics:
            routes, known = self._routes[topic], self._known.setdefault(topic, {})
            if routes:  # without a nameserver clients keep their routes
                listed = {name: None for route in routes.values() for name in route}
                for name in {**known, **listed}:
                    self._on_state(topic, name, self._state(topic, name, t_ns), t_ns)

    def _state(self, topic: str, broker_name: str, t_ns: int) -> BrokerState:
        processes = self._processes.get(broker_name, ())
        listed = [route[broker_name] for route in self._routes[topic].values() if broker_name in route]
        if not listed or not any(self._presence.processes.is_awake(process, t_ns) for process in processes):
            return BrokerState.AWAY
        takes = any(_MASTER_ID in item["addrs"] and is_writeable(item["queues"][2]) for item in listed)
        return BrokerState.WHOLE if takes else BrokerState.READ_ONLY

    def _on_state(self, topic: str, broker_name: str, state: BrokerState, t_ns: int) -> None:
        known = self._known[topic]
        before = known.get(broker_name)
        if before is None and state is not BrokerState.WHOLE:
            return  # it has not begun to serve yet
        if before is None or before[0] is not state:
            self._close(topic, broker_name, t_ns, censored=False)
            known[broker_name] = state, t_ns

    def _close(self, topic: str, broker_name: str, t_ns: int, *, censored: bool) -> None:
        state, since_ns = self._known[topic].get(broker_name, (BrokerState.WHOLE, t_ns))
        if state is not BrokerState.WHOLE and since_ns < t_ns:
            self._found.append(BrokerSpan(topic, broker_name, state, since_ns, t_ns, censored))

    def finish(self, end_ns: int) -> None:
        """The run ends."""
        for topic, known in self._known.items():
            for broker_name in known:
                self._close(topic, broker_name, end_ns, censored=True)

    def found(self) -> tuple[BrokerSpan, ...]:
        """All of them, in order of topic, brokerName and time."""
        return tuple(sorted(self._found, key=lambda item: (item.topic, item.broker_name, item.start_ns)))
