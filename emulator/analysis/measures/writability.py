"""When producers could not send to a topic: no nameserver listed a queue of it that takes messages.

A queue takes messages if its broker group has a master, or a slave that acts as
one under its id 0, and gives write permission. A master that is dead and still
listed counts: what producers lose there are failed sends. Time before the first
writable queue is the start of the cluster, and does not count; nor does time in
which no nameserver lives, since clients keep their routes.
"""

import json
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.processes import ENDS
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow, LifeRow, Process
from emulator.spec.model.scenario import NAMESERVER, PRODUCER
from emulator.trace.schema import BELIEFS, LIFECYCLE, TraceTable
from nodes.beliefs import BeliefKind
from nodes.protocol.model import is_writeable

_MASTER_ID = "0"


@attrs.frozen
class Unwritable:
    """No nameserver listed a queue of a topic that takes messages."""

    topic: str
    start_ns: int
    end_ns: int
    censored: bool


UNWRITABLE = FindingTable("unwritable", Unwritable, "no nameserver listed a queue of a topic that takes messages")


class Writability(Watcher):
    """Follows the routes of nameservers, and to which topics producers send."""

    settles_after_messages: ClassVar[bool] = False

    def __init__(self) -> None:
        self._sent_to: dict[str, None] = {}
        """Topics of which a producer has ever had a route."""
        self._routes: dict[str, dict[Process, bool]] = {}
        """Mapping topic -> whether the route of each live nameserver has a writable queue."""
        self._since_ns: dict[str, int] = {}
        """Mapping topic -> since when no queue is writable; -1: one is. Topics that never had one are missing."""
        self._touched: dict[str, None] = {}
        self._found: list[Unwritable] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads routes, and which nameservers live."""
        return {BELIEFS: self._belief, LIFECYCLE: self._life}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.ROUTE:
            return
        if row.role == PRODUCER:
            self._sent_to[row.subject] = None
        if row.role != NAMESERVER:
            return
        route = json.loads(row.value) or {}
        has_one = any(
            _MASTER_ID in entry["addrs"] and is_writeable(entry["queues"][2]) and entry["queues"][1] > 0
            for entry in route.values()
        )
        self._routes.setdefault(row.subject, {})[row.node, row.incarnation] = has_one
        self._touched[row.subject] = None

    def _life(self, row: LifeRow) -> None:
        if row.role == NAMESERVER and row.event in ENDS:
            for topic, routes in self._routes.items():
                routes.pop((row.node, row.incarnation), None)
                self._touched[topic] = None

    def settle(self, t_ns: int) -> None:
        """Look at the topics whose routes have changed."""
        for topic in self._touched:
            routes = self._routes[topic]
            is_writable = any(routes.values()) or not routes
            since_ns = self._since_ns.get(topic)
            if is_writable:
                if since_ns is not None and since_ns >= 0:
                    self._found.append(Unwritable(topic, since_ns, t_ns, censored=False))
                if since_ns is not None or routes:
                    self._since_ns[topic] = -1
            elif since_ns is not None and since_ns < 0:
                self._since_ns[topic] = t_ns
        self._touched.clear()

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        open_ns = sorted((topic, since_ns) for topic, since_ns in self._since_ns.items() if since_ns >= 0)
        self._found += [Unwritable(topic, since_ns, end_ns, censored=True) for topic, since_ns in open_ns]

    def found(self) -> tuple[Unwritable, ...]:
        """Of the topics to which producers send, by topic and time."""
        found = [item for item in self._found if item.topic in self._sent_to]
        return tuple(sorted(found, key=attrgetter("topic", "start_ns")))
