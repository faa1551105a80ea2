"""V19: brokers, nameservers and controllers that are busy, and the members that brokers lose for it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import JudgedFinding
from emulator.analysis.findings.questions import Words, about_group, about_node, inside, instant
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import count, seconds, span_words
from emulator.analysis.inputs.busy_pools import BusyPool
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.presence import Presence
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow, Process
from emulator.trace.schema import BELIEFS, TraceTable
from nodes.beliefs import BeliefKind
from nodes.config.request_pools import PoolName
from nodes.units import NS_PER_MS

_SCAN_MS = 10_000
"""Time between two looks of a broker for silent clients (`ClientHousekeepingService`)."""


@attrs.frozen
class BusySpan(JudgedFinding):
    """A thread pool of a node was busy: requests waited for 100 ms or longer, or were refused (V19)."""

    node: str
    """The broker, nameserver, controller or proxy."""
    pool: str
    """The pool, such as `sendMessage`."""
    start_ns: int
    end_ns: int
    censored: bool
    refused: int
    """Requests that were refused because the node was busy."""
    reasons: tuple[str, ...]
    """The words at the beginning of these answers, such as `TIMEOUT_CLEAN_QUEUE`."""
    refusing_ns: int
    """How long requests were refused, in whole seconds."""
    waited_max_ms: int
    """The longest wait of a request for a thread."""
    lost_members: int
    """Members that ran, and that the broker removed while it refused heartbeats."""
    lost_group: str
    """The group that lost most of them."""


@attrs.frozen
class _Removal:
    """A broker's list of members got shorter."""

    t_ns: int
    node: str
    group: str
    listed: int


class ListedMembers(Watcher):
    """Collects lists of members that got shorter."""

    def __init__(self) -> None:
        self._listed: dict[tuple[str, str], int] = {}
        """Mapping node and group -> members that the broker lists."""
        self.removals: list[_Removal] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs of brokers."""
        return {BELIEFS: self._belief}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.CONSUMER_IDS:
            listed = len(json.loads(row.value) or ())
            if listed < self._listed.get((row.node, row.subject), 0):
                self.removals.append(_Removal(row.t_ns, row.node, row.subject, listed))
            self._listed[row.node, row.subject] = listed


class BusyBrokers(Oracle[BusySpan, ListedMembers]):
    """V19: a broker that is busy loses no member that lives."""

    id: ClassVar[str] = "V19"
    title: ClassVar[str] = "a broker that is busy loses no member that lives"
    definition: ClassVar[str] = (
        "Requests wait 100 ms or longer for a thread of a node, or are refused because they wait too long, because "
        "the queue is full, or because the page cache is busy (processingTimes). That is flow control, and no "
        "violation, as long as it hits messages only. It is one where the broker refuses heartbeats, and removes a "
        "member from a group although its process runs and reaches the broker."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.BUSY_POOLS, Input.BLOCKED)
    table = FindingTable("busy_brokers", BusySpan, "a thread pool of a node was busy")

    def watch(self, inputs: SharedInputs) -> ListedMembers:  # noqa: ARG002 - it reads rows only
        """What collects members that were removed."""
        return ListedMembers()

    def find(self, inputs: SharedInputs, watched: ListedMembers) -> Iterable[BusySpan]:
        """Busy pools, those of heartbeats with the members that were lost."""
        for span in map(_span, inputs.busy_pools.found):
            refuses_heartbeats = span.pool == PoolName.HEARTBEAT and span.refused > 0
            yield _with_lost(span, watched.removals, inputs) if refuses_heartbeats else span

    def order(self, row: BusySpan) -> Any:
        """By time."""
        return row.start_ns, row.end_ns, row.node, row.pool

    def summary(self, rows: Sequence[BusySpan]) -> str:
        """How many requests, and members."""
        refused, lost = sum(row.refused for row in rows), sum(row.lost_members for row in rows)
        return f"{count(refused, 'request')} refused, {count(lost, 'member')} lost"

    def amount(self, row: BusySpan) -> float:
        """Members, then requests."""
        return row.lost_members * 1e9 + row.refused

    def describe(self, row: BusySpan, context: Context) -> str:  # noqa: ARG002
        """The pool, what was refused, and who was lost."""
        text = (
            f"{row.node}: its {row.pool} threads were busy {span_words(row)}, {count(row.refused, 'request')} refused"
        )
        if row.reasons:
            text += f" ({', '.join(row.reasons)})"
        text += f", longest wait {seconds(row.waited_max_ms * NS_PER_MS)}"
        if row.lost_members:
            text += f"; it removed {count(row.lost_members, 'member')} of {row.lost_group} that ran"
        return text

    def questions(self, row: BusySpan, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """The group that lost members, or the broker."""
        yield _question(row)

    def symptoms(self, rows: Sequence[BusySpan], context: Context) -> Iterator[Symptom]:
        """Nodes that refuse requests for a while, or let one wait for as long."""
        for row in rows:
            limits = context.limits
            severity = max(row.refusing_ns / NS_PER_MS, row.waited_max_ms) / limits.busy_ms
            if row.lost_members:
                severity = max(severity, 2.0 * limits.paging_times)
            text = self.describe(row, context).replace(span_words(row), f"for {seconds(row.end_ns - row.start_ns)}")
            yield Symptom(SymptomKind.BUSY, severity, row.start_ns, text, f"{row.node} {row.pool}", _question(row))


def _span(busy: BusyPool) -> BusySpan:
    return BusySpan(
        node=busy.node,
        pool=busy.pool,
        start_ns=busy.start_ns,
        end_ns=busy.end_ns,
        censored=busy.censored,
        refused=busy.refused.total(),
        reasons=tuple(sorted(busy.refused)),
        refusing_ns=busy.refusing_ns,
        waited_max_ms=busy.waited_max_ms,
        lost_members=0,
        lost_group="",
    )


def _question(span: BusySpan) -> Words:
    if span.lost_members:
        return about_group(span.lost_group, inside(span))
    return about_node(span.node, instant(span.start_ns))


def _with_lost(span: BusySpan, removals: Iterable[_Removal], inputs: SharedInputs) -> BusySpan:
    """The span with the most members that a group lost at once."""
    until_ns = span.end_ns + _SCAN_MS * NS_PER_MS
    during = [item for item in removals if item.node == span.node and span.start_ns <= item.t_ns <= until_ns]
    lost = [(len(_running(inputs.presence, item)) - item.listed, item.group) for item in during]
    members, group = max(lost, default=(0, ""))
    if members <= 0:
        return span
    violation = any(_reaching(inputs, item) > item.listed for item in during)
    return attrs.evolve(span, lost_members=members, lost_group=group, violation=violation)


def _running(presence: Presence, removal: _Removal) -> list[Process]:
    """Members of the group that run at the instant of a removal."""
    members = presence.processes_of(removal.group, removal.t_ns)
    return [process for process in members if presence.processes.is_awake(process, removal.t_ns)]


def _reaching(inputs: SharedInputs, removal: _Removal) -> int:
    """How many of them reach the broker: no fault keeps them from it, nor it from its work."""
    reaches, running = inputs.blocked.reaches, _running(inputs.presence, removal)
    return sum(reaches(process, removal.node, removal.t_ns) for process in running)


BUSY_BROKERS = BusyBrokers()
