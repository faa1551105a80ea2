"""Topics that were lost at an election: nameservers list them, and the new master has not copied them.

Brokers do not record their tables of topics, only the versions of these, and a slave copies a table whose version has
changed. So a topic that a nameserver lists for the first time after the last copy of a slave is missing there, and
when this slave becomes master the topic is lost, until it is created again or the master stores a message of it.
"""

import json
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import AdminRow, BeliefRow, MessageRow
from emulator.history.rows.shares import PartitionedBy
from emulator.spec.model.scenario import BROKER, NAMESERVER
from emulator.trace.schema import ADMIN, BELIEFS, MESSAGES, TraceTable
from nodes.beliefs import BeliefKind, MessageEvent
from nodes.protocol.codes import RequestCode


@attrs.frozen
class LostTopic:
    """An elected master did not have a topic that nameservers list."""

    topic: str
    """Which was lost."""
    broker_name: str
    """Of the broker group."""
    old_master: str
    """At which it was created."""
    new_master: str
    """Which was elected without it."""
    created_ns: int
    """When a nameserver listed it first at this broker group."""
    start_ns: int
    """When the new master was elected."""
    end_ns: int
    """When it was created again, or a message of it was stored; else the end of the run."""
    censored: bool


LOST_TOPICS = FindingTable("lost_topics", LostTopic, "an elected master did not have a topic that nameservers list")
_CREATES = (RequestCode.UPDATE_AND_CREATE_TOPIC.name, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST.name)
_DELETES = (RequestCode.DELETE_TOPIC_IN_BROKER.name, RequestCode.DELETE_TOPIC_IN_NAMESRV.name)


class LostTopics(Watcher):
    """Follows which topics nameservers list, and what elected masters have copied."""

    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.STORED,)

    def __init__(self) -> None:
        self._listed_ns: dict[tuple[str, str], int] = {}
        """Mapping brokerName and topic -> when a nameserver listed it first."""
        self._copied_ns: dict[str, int] = {}
        """Mapping broker -> when the version of its topics changed last."""
        self._masters: dict[str, str] = {}
        """Mapping brokerName -> its master."""
        self._open: dict[tuple[str, str], LostTopic] = {}
        self._found: list[LostTopic] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads routes, versions and roles, stored messages, and acts of administrators."""
        return {BELIEFS: self._belief, MESSAGES: self._message, ADMIN: self._act}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.ROUTE and row.role == NAMESERVER:
            for broker_name in json.loads(row.value) or {}:
                self._listed_ns.setdefault((broker_name, row.subject), row.t_ns)
        elif row.kind == BeliefKind.DATA_VERSION and row.role == BROKER and row.subject == "topics":
            self._copied_ns[row.node] = row.t_ns
        elif row.kind == BeliefKind.BROKER_ROLE and (json.loads(row.value) or {}).get("serves_as") == "master":
            self._elected(row)

    def _elected(self, row: BeliefRow) -> None:
        """A broker became master; its topics change their version only now."""
        old = self._masters.get(row.subject)
        self._masters[row.subject] = row.node
        if old in (None, row.node):
            return
        copied_ns = self._copied_ns.get(row.node, -1)
        for (broker_name, topic), listed_ns in self._listed_ns.items():
            if broker_name == row.subject and listed_ns > copied_ns:
                amounts = listed_ns, row.t_ns, row.t_ns
                lost = LostTopic(topic, broker_name, str(old), row.node, *amounts, censored=True)
                self._open.setdefault((broker_name, topic), lost)

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.STORED and self._open:
            self._is_there(row.broker_name, row.topic, row.t_ns)

    def _act(self, row: AdminRow) -> None:
        if row.request in _CREATES:
            self._is_there(row.broker_name, row.topic, row.t_ns)
        elif row.request in _DELETES:
            for broker_name, topic in list(self._listed_ns):
                if topic == row.topic and row.broker_name in ("", broker_name):
                    del self._listed_ns[broker_name, topic]
                    self._open.pop((broker_name, topic), None)

    def _is_there(self, broker_name: str, topic: str, t_ns: int) -> None:
        lost = self._open.pop((broker_name, topic), None)
        if lost is not None:
            self._found.append(attrs.evolve(lost, end_ns=t_ns, censored=False))

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        self._found += [attrs.evolve(lost, end_ns=end_ns) for lost in self._open.values()]

    def found(self) -> tuple[LostTopic, ...]:
        """By time, broker group and topic."""
        return tuple(sorted(self._found, key=attrgetter("start_ns", "broker_name", "topic")))


class FirstStored(Watcher):
    """The messages of a share that `LostTopics` reads: the first of each topic after a broker became master."""

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], None] = {}
        self.rows: list[MessageRow] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads roles, and stored messages."""
        return {BELIEFS: self._belief, MESSAGES: self._message}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.BROKER_ROLE:
            self._seen.clear()

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.STORED and (row.broker_name, row.topic) not in self._seen:
            self._seen[row.broker_name, row.topic] = None
            self.rows.append(row)
