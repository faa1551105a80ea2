"""Why a belief lacks something: since when, which process is gone or stands still, which node reported it, and signals.

A belief lacks an item either because it had it and lost it, which is a row with a
chain of causes, or because the item never came, which is no row at all. Then the
search goes from the node to whoever sent it, up to the node that should have heard
of the item itself, by a heartbeat or a registration.
"""

from collections.abc import Iterator, Mapping

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, LIFECYCLE
from emulator.why.holders import STAGES, Finding, end_of, kind_of, why_no_belief
from emulator.why.missing_signals import Silence
from emulator.why.question import AbsenceQuestion, WhyError, no_such
from emulator.why.words import NodeNames, listed_nodes, parts_of, seconds, value_of
from nodes.beliefs import PROCESS_ENDS, BeliefKind, LifecycleEvent

_REPORTED_BY = {
    BeliefKind.VIEW: BeliefKind.CONSUMER_IDS,
    BeliefKind.ROUTE: BeliefKind.ROUTE,
    BeliefKind.MEMBER_GROUP: BeliefKind.LIVE_BROKERS,
}
"""Mapping kind of a belief -> kind of the belief from which another node sent it."""
_QUEUES_OF = "queues of "
_HOLDERS_MAX = 5


@attrs.frozen
class _Holder:
    """A node that holds a belief of the kind that was asked about."""

    node: str
    newest: TraceRow
    came: TraceRow | None
    """The row with which it got the item that it has; None: it lacks the item."""
    lost: TraceRow | None
    """The row with which it lost the item last; None: it has the item, or never had it."""


def absence(trace: TraceRows, requested: AbsenceQuestion, names: NodeNames) -> Finding:
    """Find why a belief lacks an item.

    Raises:
        WhyError: no consumer holds such a belief, or the item is unknown.
    """
    return _Search(trace, requested, names).found()


class _Search:
    """The way from a node that lacks an item to the one that should have heard of it."""

    def __init__(self, trace: TraceRows, requested: AbsenceQuestion, names: NodeNames) -> None:
        self._trace = trace
        self._names = names
        self._item = requested.item
        self._kind = kind_of(trace, requested.belief)
        self._requested = requested.belief
        self._at_ns = requested.belief.at_ns
        self._silent = tuple(self._nodes_of_item())
        self._lines: list[str] = []
        self._rows: list[TraceRow] = []

    def found(self) -> Finding:
        holders = self._holders(self._kind, self._requested.subject, self._requested.node)
        if not holders:
            raise WhyError(why_no_belief(self._trace, self._requested, self._kind))
        self._check_item()
        lacking = [item for item in holders if item.came is None]
        if not lacking:
            return self._no_node_lacks_it(holders)
        holder = max(lacking, key=lambda item: (item.lost or item.newest).seq)
        self._lines.append(f"{self._when()}{holder.node} does not have {self._item} in {self._what(holder.newest)}")
        origin = self._follow(holder)
        self._lines += [f"  {line}" for line in self._states()]
        at_ns = self._trace.end_ns() if self._at_ns is None else self._at_ns
        silences = [Silence(node, origin, at_ns) for node in self._silent if node != origin]
        return Finding(tuple(self._lines), tuple(self._rows), tuple(silences))

    def _no_node_lacks_it(self, holders: list[_Holder]) -> Finding:
        since = [f"{holder.node} since {seconds(holder.came.t_ns)}" for holder in holders if holder.came is not None]
        more = f", and {len(since) - _HOLDERS_MAX} more nodes" if len(since) > _HOLDERS_MAX else ""
        subject = self._what(holders[0].newest)
        text = f"{self._when()}{self._item} is in {subject}: {', '.join(since[:_HOLDERS_MAX])}{more}"
        return Finding((text,), tuple(holder.came for holder in holders[-1:] if holder.came is not None))

    def _follow(self, holder: _Holder) -> str:
        """Report of a node that lacks the item, then of the one that sent it, and so on; returns the last one."""
        reported = self._reported_by(holder)
        if holder.lost is not None:
            self._rows.append(holder.lost)
            self._lines.append(f"  {holder.node} had it until {seconds(holder.lost.t_ns)}")
        else:
            self._lines.append(f"  {holder.node} never had it")
        if reported is None:
            return holder.node
        requested = f"  {reported.node}, which sent {holder.node} its value at {seconds(holder.newest.t_ns)},"
        if reported.came is not None:
            self._rows.append(reported.came)
            self._lines.append(
                f"{requested} has it since {seconds(reported.came.t_ns)}: {holder.node} has not heard since"
            )
            self._silent = (holder.node,)
            return reported.node
        self._lines.append(f"{requested} does not have it either")
        return self._follow(reported)

    def _reported_by(self, holder: _Holder) -> _Holder | None:
        """The node from which another one has its belief; None: it found out by itself."""
        row = holder.newest
        kind, source = _REPORTED_BY.get(BeliefKind(row.text("kind"))), row.text("source")
        teller = self._names.node(source)
        if kind is None or not source or teller == holder.node:
            return None
        subject = row.text("subject").partition("/")[0]
        return next(iter(self._holders(kind, subject, teller)), None)

    def _holders(self, kind: BeliefKind, subject: str, node: str | None) -> list[_Holder]:
        """The processes that live and hold such a belief, in order of their last change."""
        rows = self._trace.select(BELIEFS, kind=kind.value, subject=subject, until_ns=self._at_ns)
        of_nodes: dict[str, list[TraceRow]] = {}
        for row in rows:
            if node in (None, row.text("node")):
                of_nodes.setdefault(row.text("node"), []).append(row)
        found = [self._holder(name, held) for name, held in of_nodes.items()]
        return sorted((item for item in found if self._lives(item.newest)), key=lambda item: item.newest.seq)

    def _holder(self, node: str, rows: list[TraceRow]) -> _Holder:
        came: TraceRow | None = None
        lost: TraceRow | None = None
        for row in rows:
            if self._has(row):
                came, lost = came or row, None
            elif came is not None:
                came, lost = None, row
        return _Holder(node, rows[-1], came, lost)

    def _lives(self, row: TraceRow) -> bool:
        return end_of(self._trace, row, self._at_ns) is None

    def _has(self, row: TraceRow) -> bool:
        return self._item in self._parts(row)

    def _parts(self, row: TraceRow) -> dict[str, None]:
        """What a belief contains, under each of its names."""
        kind, value = row.text("kind"), value_of(row)
        parts = dict.fromkeys(parts_of(kind, value))
        if kind == BeliefKind.ROUTE and isinstance(value, Mapping):
            parts |= {address: None for group in value.values() for address in group["addrs"].values()}
        plain = {part.removeprefix(_QUEUES_OF): None for part in parts}
        return plain | {self._names.node(part): None for part in plain}

    def _check_item(self) -> None:
        """Refuse an item that is no node and never was in such a belief."""
        if self._silent:
            return
        known: dict[str, None] = {}
        for row in self._trace.select(BELIEFS, kind=self._kind.value, subject=self._requested.subject):
            known |= self._parts(row)
        if self._item not in known:
            subject = f"node, and nothing that {self._kind} {self._requested.subject} ever had, named"
            nodes = self._trace.values(LIFECYCLE, "node")
            raise WhyError(no_such(subject, self._item, tuple(sorted({**known, **dict.fromkeys(nodes)}))))

    def _nodes_of_item(self) -> Iterator[str]:
        """The nodes by whose signals others hear of the item: itself, or the members of a broker group."""
        node = self._names.node(self._item)
        if node in self._trace.values(LIFECYCLE, "node"):
            yield node
        else:
            of_group = self._trace.select(BELIEFS, kind=BeliefKind.MEMBER_GROUP.value, subject=self._item)
            yield from dict.fromkeys(row.text("node") for row in of_group)

    def _states(self) -> Iterator[str]:
        """Lines about the processes whose signals are missing, and about a consumer of another group."""
        for node in self._silent:
            row = self._trace.newest(LIFECYCLE, node=node, event=STAGES, until_ns=self._at_ns)
            if row is None:
                first = self._trace.select(LIFECYCLE, node=node)[0]
                yield f"{node} had not started: it did at {seconds(first.t_ns)}"
            elif row.text("event") in PROCESS_ENDS:
                yield f"the process of {node} ended at {seconds(row.t_ns)} ({row.text('event').replace('_', ' ')})"
            elif row.text("event") == LifecycleEvent.SUSPENDED:
                yield f"{node} stands still since {seconds(row.t_ns)}"
            elif self._kind in (BeliefKind.CONSUMER_IDS, BeliefKind.VIEW):
                yield from self._other_groups(node)

    def _other_groups(self, node: str) -> Iterator[str]:
        rows = self._trace.select(BELIEFS, kind=BeliefKind.SUBSCRIPTION.value, node=node, until_ns=self._at_ns)
        groups = dict.fromkeys(row.text("subject").partition("/")[0] for row in rows)
        requested = self._requested.subject.partition("/")[0]
        if requested not in groups:
            of = listed_nodes(tuple(groups)) if groups else "no group"
            yield f"{node} is no member of {requested}: it consumes for {of}"

    def _when(self) -> str:
        return "" if self._at_ns is None else f"at {seconds(self._at_ns)} "

    def _what(self, row: TraceRow) -> str:
        return f"{row.text('kind')} {row.text('subject')}"
