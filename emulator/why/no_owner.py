"""Why a queue has no owner: what each member of the group works from, and which absent members it counts."""

from collections import Counter
from collections.abc import Iterable

import attrs

from emulator.history.processes import AWAY
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, LIFECYCLE, PASSES, RPC
from emulator.why.holders import STAGES, end_of
from emulator.why.question import QueueQuestion
from emulator.why.unreachable import unreachable
from emulator.why.words import NodeNames, answer_words, listed_nodes, request_words, seconds, value_of
from nodes.beliefs import BeliefKind, LifecycleEvent, PassOutcome
from nodes.protocol.codes import RequestCode

_MEMBERS_MAX = 5
_LISTS = (int(RequestCode.GET_CONSUMER_LIST_BY_GROUP), int(RequestCode.QUERY_ASSIGNMENT))
_FAILED = ("timed_out", "refused", "dropped", "lost", "broken")


def subscribed_groups(trace: TraceRows, topic: str) -> tuple[str, ...]:
    """The groups that ever subscribed to a topic."""
    rows = trace.select(BELIEFS, kind=BeliefKind.SUBSCRIPTION.value)
    subjects = dict.fromkeys(row.text("subject") for row in rows)
    return tuple(subject.removesuffix(f"/{topic}") for subject in subjects if subject.endswith(f"/{topic}"))


def no_owner_lines(trace: TraceRows, group: str, requested: QueueQuestion, names: NodeNames) -> list[str]:
    """Why no member of a group owns a queue: lines about its members, those who should have taken it first.

    Args:
        trace: of the run.
        group: the consumer group.
        requested: the queue, and when.
        names: of the nodes.

    Returns:
        No lines if the group never subscribed to the topic.
    """
    about = _Members(trace, group, requested, names)
    members = about.living()
    if not members:
        return [f"  {line}" for line in about.no_node()]
    reported = sorted(filter(None, map(about.why_not, members)), key=lambda item: (item.rank, item.node))
    same = Counter(item.text for item in reported)
    lines = [f"  {listed_nodes(_who(reported, text))}: {text}" for text in same]
    more = len(reported) - sum(list(same.values())[:_MEMBERS_MAX])
    return [*lines[:_MEMBERS_MAX], *([f"  {more} more members, each with another reason"] if more else [])]


def newest_view(trace: TraceRows, group: str, requested: QueueQuestion, names: NodeNames) -> TraceRow | None:
    """The newest view of the queues of a topic that a living member of a group has; None: there is none."""
    return _Members(trace, group, requested, names).view()


@attrs.frozen
class _WhyNot:
    """Why one member does not own a queue."""

    rank: int
    """The lower, the nearer the member is to owning the queue."""
    node: str
    text: str


def _who(why_nots: Iterable[_WhyNot], text: str) -> tuple[str, ...]:
    return tuple(item.node for item in why_nots if item.text == text)


class _Members:
    """The members of a group at an instant, as the trace knows them."""

    def __init__(self, trace: TraceRows, group: str, requested: QueueQuestion, names: NodeNames) -> None:
        self._trace = trace
        self._group = group
        self._requested = requested
        self._names = names
        self._subject = f"{group}/{requested.topic}"

    def living(self) -> list[TraceRow]:
        """The subscriptions of the members whose process has not ended."""
        return [row for row in self._subscriptions() if self._ended(row) is None]

    def no_node(self) -> list[str]:
        """Why there is no member at all; empty if there never was one."""
        ends = [(row.text("node"), end) for row in self._subscriptions() if (end := self._ended(row)) is not None]
        text = [f"{node} at {seconds(end.t_ns)} ({end.text('event').replace('_', ' ')})" for node, end in ends]
        return [f"{self._group} has no member: the process of {listed_nodes(text)} ended"] if text else []

    def why_not(self, member: TraceRow) -> _WhyNot | None:
        """Why a member does not own the queue; None: it has begun to."""
        node, requested = member.text("node"), self._requested
        stage = self._stage(node)
        if stage is not None and stage.text("event") == LifecycleEvent.SUSPENDED:
            return _WhyNot(1, node, f"suspended since {seconds(stage.t_ns)}, so it makes no pass")
        assigned, view = self._newest(member, BeliefKind.ASSIGNMENT), self._newest(member, BeliefKind.VIEW)
        if assigned is not None and [requested.broker_name, requested.queue_id] in (value_of(assigned) or []):
            text = f"it should have the queue since {seconds(assigned.t_ns)}, and has not taken it"
            return _WhyNot(0, node, f"{text}; {self._outcome(member)}")
        if view is None or value_of(view) is None:
            text = f"no queues of {requested.topic} to allocate; {self._outcome(member)}"
            unreached = unreachable(self._trace, node, self._names, requested.at_ns)
            return _WhyNot(2, node, "; ".join((text, *unreached[:1])))
        if value_of(view)["queues"].get(requested.broker_name, 0) <= requested.queue_id:
            return _WhyNot(3, node, self._unknown(view))
        return _WhyNot(4, node, f"it leaves the queue to others; {self._counted(view)}")

    def _unknown(self, view: TraceRow) -> str:
        queues = value_of(view)["queues"]
        has = ", ".join(f"{count} of {name}" for name, count in queues.items()) or "none"
        return f"it does not know the queue; since {seconds(view.t_ns)} it allocates {has}"

    def _counted(self, view: TraceRow) -> str:
        """The members that it counts; by name those that cannot take the queue."""
        nodes = [self._names.node(cid) for cid in value_of(view)["cids"]]
        text = f"since {seconds(view.t_ns)} it counts {len(nodes)} {'member' if len(nodes) == 1 else 'members'}"
        absent = [word for node in dict.fromkeys(nodes) if (word := self._absent(node))]
        return f"{text}, also {listed_nodes(absent)}" if absent else text

    def view(self) -> TraceRow | None:
        """The newest view of any living member."""
        views = [view for row in self.living() if (view := self._newest(row, BeliefKind.VIEW)) is not None]
        return max(views, key=lambda view: view.seq, default=None)

    def _absent(self, node: str) -> str:
        stage = self._stage(node)
        if stage is not None and stage.text("event") in AWAY:
            return f"{node} ({stage.text('event').replace('_', ' ')} at {seconds(stage.t_ns)})"
        subscribed = any(row.text("node") == node for row in self._subscriptions())
        return "" if subscribed else f"{node} (which does not consume {self._requested.topic})"

    def _outcome(self, member: TraceRow) -> str:
        """How its last pass ended."""
        row = self._trace.newest(
            PASSES,
            node=member.text("node"),
            incarnation=member.number("incarnation"),
            group=self._group,
            topic=self._requested.topic,
            until_ns=self._requested.at_ns,
        )
        if row is None:
            return "no pass has ended"
        why = self._why_kept(row) if row.text("event") == PassOutcome.RETAINED else ""
        return f"the last pass, at {seconds(row.t_ns)}, was {row.text('event').replace('_', ' ')}{why}"

    def _why_kept(self, row: TraceRow) -> str:
        """Which broker did not list the members, and what it answered."""
        answer = self._trace.newest(
            RPC,
            dst=row.text("node"),
            kind="response",
            code=_LISTS,
            event="delivered",
            after_ns=row.number("began_ns") - 1,
            until_ns=row.t_ns,
        )
        if answer is not None and answer.number("status"):
            return f", since {answer.text('src')} answered {request_words(answer.number('code'))}{answer_words(answer)}"
        failed = self._trace.newest(
            RPC,
            src=row.text("node"),
            code=_LISTS,
            event=_FAILED,
            after_ns=row.number("began_ns") - 1,
            until_ns=row.t_ns,
        )
        if failed is None:
            return ""
        event = failed.text("event").replace("_", " ")
        return (
            f", since its {request_words(failed.number('code'))} to {self._names.node(failed.text('dst'))} was {event}"
        )

    def _subscriptions(self) -> list[TraceRow]:
        """The newest subscription of each node."""
        kind = BeliefKind.SUBSCRIPTION.value
        rows = self._trace.select(BELIEFS, kind=kind, subject=self._subject, until_ns=self._requested.at_ns)
        newest = {row.text("node"): row for row in rows}
        return [row for row in newest.values() if value_of(row) is not None]

    def _newest(self, member: TraceRow, kind: BeliefKind) -> TraceRow | None:
        return self._trace.newest(
            BELIEFS,
            kind=kind.value,
            subject=self._subject,
            node=member.text("node"),
            incarnation=member.number("incarnation"),
            until_ns=self._requested.at_ns,
        )

    def _stage(self, node: str) -> TraceRow | None:
        return self._trace.newest(LIFECYCLE, node=node, event=STAGES, until_ns=self._requested.at_ns)

    def _ended(self, row: TraceRow) -> TraceRow | None:
        return end_of(self._trace, row, self._requested.at_ns)
