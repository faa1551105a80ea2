"""V8: queues with a backlog in which nothing moves."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import ClassVar

import attrs

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import Explained
from emulator.analysis.findings.questions import Words, about_queue, about_view, inside, midway
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import queue_seconds, queue_words, span_words
from emulator.analysis.inputs.applications import of_applications
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Explanation, Oracle, queues_of
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import Span
from emulator.history.steps import common
from nodes.units import NS_PER_MS, NS_PER_S


@attrs.frozen
class Stall(Explained):
    """A readable queue had a backlog, and its group made no progress for a second or more (V8)."""

    queue: GroupQueue
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    start_ns: int
    end_ns: int
    censored: bool
    backlog: int
    """Messages at its end."""

    @property
    def topic(self) -> str:
        """The topic of the queue."""
        return self.queue.topic


class _WithBacklog(Explanation[Stall]):
    """Lists of members that change all the time do not explain that nothing is consumed."""

    def __init__(self) -> None:
        super().__init__(external=True)

    def covered(self, row: Stall, inputs: SharedInputs) -> Sequence[Span]:
        """No member could or might consume it, or a listener had failed, or all its threads worked elsewhere."""
        without = inputs.blocked.without_consumer(row.queue, row.node, row.start_ns, row.end_ns)
        servers = inputs.blocked.nodes_of(row.queue.broker_name)
        refused = inputs.refused.of_members(row.queue, row.node, servers, row.start_ns)
        return (
            *without,
            *refused,
            *inputs.refused.as_members(row.queue, row.start_ns),
            *inputs.refused.keep_from(row.queue, servers, row.start_ns),
            *inputs.failing.waits(row.queue),
            *_while_busy(row, inputs),
        )

    def excess_ns(self, row: Stall, unexplained_ns: int, inputs: SharedInputs) -> int:
        """A simple consumer may be waiting at other brokers, one after the other."""
        is_of_proxies = inputs.presence.is_of_proxies(row.queue.group)
        turns_ms = inputs.facts.bounds.receive_turns_ms if is_of_proxies else 0
        return max(0, unexplained_ns - turns_ms * NS_PER_MS)

    def limit_ns(self, row: Stall, limit_ns: int, facts: RunFacts) -> int:  # noqa: ARG002
        """A listener may take long, and then for a whole batch."""
        return facts.bounds.stall_ms(facts.consume_ms.get(row.queue.group, 0)) * NS_PER_MS


def _while_busy(row: Stall, inputs: SharedInputs) -> Iterator[Span]:
    """When the consumer of a queue worked on messages of others; of a queue that no one owns, all members that pop."""
    group, span = row.queue.group, (row.start_ns, row.end_ns)
    if row.node:
        yield from inputs.busy_listeners.all_busy(group, row.node, *span)
    elif inputs.owners.has_owned(group, row.topic):
        for hold in inputs.owners.holds_of(row.queue):
            owned = max(hold.start_ns, row.start_ns), min(hold.end_ns, row.end_ns)
            yield from inputs.busy_listeners.all_busy(group, hold.node, *owned)
    else:
        members = inputs.presence.members(group, row.topic, row.start_ns)
        busy = [
            inputs.busy_listeners.all_busy(group, node, *span) for node in dict.fromkeys(name for name, _ in members)
        ]
        yield from common(busy) if busy else ()


class Stalls(Oracle[Stall, Watcher]):
    """V8: every subscribed, readable queue with a backlog advances."""

    id: ClassVar[str] = "V8"
    title: ClassVar[str] = "every subscribed, readable queue with a backlog advances"
    definition: ClassVar[str] = (
        "A readable queue has messages that a live member subscribes to, and its group neither consumes one, nor "
        "leaves one out by a filter, nor commits past one. It is a violation if that lasts longer than what happened "
        "from outside explains, and a listener may take for a batch. A fault that keeps every member from the broker "
        "of the queue, or its owner from pulling, explains it for as long as it lasts, and so does an administrator "
        "who switched the group off, a topic with fewer read queues, which no consumer reads further, brokers and "
        "proxies that refuse its members what they ask by users, permissions, or values that are not allowed, "
        "addresses that lead nowhere from where members are, a listener in order that fails, since the queue waits for "
        "that message, and one whose threads all work on messages of other queues. A receive of a simple consumer "
        "waits at one broker, so a queue may wait for as long as its calls take turns over the others."
    )
    reads: ClassVar[tuple[Input, ...]] = (
        Input.PROGRESS,
        Input.BLOCKED,
        Input.FAILING,
        Input.BUSY_LISTENERS,
        Input.REFUSED,
    )
    table = FindingTable("stalls", Stall, "a queue had a backlog, and its group made no progress for a second or more")
    explanation = _WithBacklog()

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[Stall]:  # noqa: ARG002
        """Queues that stood still."""
        return [Stall(*attrs.astuple(item, recurse=False)) for item in inputs.progress.found]

    def causes(self, row: Stall, attribution: Attribution) -> Causes:
        """What kept its messages waiting."""
        return attribution.of_stall(row.queue, row.node, (row.start_ns, row.end_ns))

    def summary(self, rows: Sequence[Stall]) -> str:
        """How long, and what waits at the end."""
        left = sum(row.backlog for row in rows if row.censored)
        return f"stalled for {queue_seconds(rows)}; {left} messages wait at the end"

    def subjects(self, violations: Sequence[Stall]) -> str:
        """The number of queues."""
        return queues_of(violations)

    def describe(self, row: Stall, context: Context) -> str:  # noqa: ARG002
        """The queue, and when."""
        return f"{queue_words(row.queue)} had a backlog and stood still {span_words(row)}"

    def questions(self, row: Stall, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """What kept it; who owned the queue; or from which view members allocated."""
        at = inside(row)
        yield about_queue(row.queue, at)
        yield about_view(row.queue.group, row.queue.topic, at)

    def symptoms(self, rows: Sequence[Stall], context: Context) -> Iterator[Symptom]:
        """The longest stall of each group."""
        stalls = sorted(of_applications(rows), key=lambda row: (row.queue, row.start_ns))
        for group, of_group in groupby(stalls, key=lambda row: row.queue.group):
            longest = max(of_group, key=lambda row: row.end_ns - row.start_ns)
            queue, lasted_s = longest.queue, (longest.end_ns - longest.start_ns) / NS_PER_S
            where = f"{queue.topic} {queue.broker_name} q{queue.queue_id}"
            text = f"{group} did not move in {where} for {lasted_s:.1f} s from {longest.start_ns / NS_PER_S:.1f} s on"
            question = ("stall", queue.name, "of", group, "at", midway(longest))
            severity = lasted_s * 1_000 / context.limits.stalled_ms
            yield Symptom(SymptomKind.STALLED, severity, longest.start_ns, text, group, question)


STALLS = Stalls()
