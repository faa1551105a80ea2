"""Rebalances: what each change of a group's members did to its queues, and what the passes that followed cost.

A change is an instant at which members of the group begin or end; what follows within a second belongs to it. It
lasts until the next one, or until the run ends; rows of the same instant belong to it. The first one is when a member
first acquires a queue of the topic, or ends a rebalance round about it. The metrics are those of RocketMQ's mission to
optimise rebalancing, with what they leave out:

* balance degree: standard deviation of the members' numbers of queues; 0: all have the same.
* stickiness: share of the queues that have the owner that they had before. Queues of a member that left cannot, and
  nor can those that must move for balance; so the normalised stickiness divides by the most that could be retained.
* moved: queues that another member owns now. acquired: how often any queue was taken; more than moved is churn.
* settled: from the change to the last change of an owner. A rebalance is unsettled if a queue then has not exactly one.
* resumed: from the change to the first message that the new owner of a moved queue consumed, of the slowest queue.
"""

from collections.abc import Callable, Iterable, Mapping
from math import sqrt
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.finding import NO_COLUMN
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.messages import TracedMessages
from emulator.history.owners import OWNED
from emulator.history.presence import Presence
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import MessageRow, OwnershipRow, PassRow, Process
from emulator.history.rows.shares import PartitionedBy
from emulator.trace.schema import MESSAGES, OWNERSHIP, PASSES, TraceTable
from nodes.beliefs import MessageEvent, OwnershipEvent
from nodes.protocol.model import RETRY_TOPIC_PREFIX

ONE_CHANGE_NS = 1_000_000_000
"""Changes of members that are no further apart count as one."""
_DIGITS = 3


@attrs.frozen
class RebalanceCost:
    """What a change of a group's members did to the queues of one topic."""

    group: str
    topic: str
    start_ns: int
    end_ns: int
    """When the members changed again, or the run ended."""
    joined: tuple[str, ...]
    """Members that began."""
    left: tuple[str, ...]
    """Members that ended."""
    members: int
    """Live members at the end."""
    queues: int
    """Queues that any member has owned so far."""
    balance_degree: float
    """Standard deviation of the members' numbers of queues at the end."""
    stickiness: float
    """Queues with the owner that they had before, per queue; -1: nothing was owned before."""
    normalised_stickiness: float
    """The same per queue that could be retained in a balanced allocation, at most 1; -1: none could."""
    moved: int
    """Queues that had an owner before and have another one now."""
    acquired: int
    """How often a member took a queue."""
    settled_ns: int
    """From the change to the last change of an owner."""
    settled: bool
    """Whether each queue had exactly one owner then."""
    resumed_ns: int
    """From the change to the first message of the new owner, of the moved queue that waited longest; -1: none moved."""
    resumed: bool
    """Whether the new owner of each moved queue has consumed; else the time is that of the others."""
    orphan_ns: int
    """Queue time without an owner."""
    overlap_ns: int
    """Queue time with several."""
    duplicates: int
    """Messages consumed again."""
    passes: int
    """Rebalance passes of all members."""
    requests: int
    """Of the passes, for members and queues."""
    bytes: int
    """In the bodies of these requests and their answers."""
    moves: int = attrs.field(default=0, kw_only=True, repr=False, metadata=NO_COLUMN)
    """How often a member took a queue that another one had owned."""
    resumes: int = attrs.field(default=0, kw_only=True, repr=False, metadata=NO_COLUMN)
    """Of these: the new owner has consumed."""


REBALANCES = FindingTable("rebalances", RebalanceCost, "a change of a group's members, and its cost for a topic")


@attrs.define
class _RebalancedTopic:
    """A group and topic at the present instant, and what has happened since its members changed last."""

    members: tuple[Process, ...] = ()
    owners: dict[GroupQueue, dict[Process, None]] = attrs.Factory(dict)
    looked_ns: int = 0
    start_ns: int = -1
    joined: dict[str, None] = attrs.Factory(dict)
    left: dict[str, None] = attrs.Factory(dict)
    before: dict[GroupQueue, Process] = attrs.Factory(dict)
    last_change_ns: int = 0
    first_consumed_ns: dict[tuple[GroupQueue, Process], int] = attrs.Factory(dict)
    acquired: int = 0
    orphan_ns: int = 0
    overlap_ns: int = 0
    duplicates: int = 0
    passes: int = 0
    requests: int = 0
    bytes: int = 0

    def pass_time(self, t_ns: int) -> None:
        """Add up the time that queues have had no owner, or several."""
        counts = [len(owners) for owners in self.owners.values()]
        self.orphan_ns += (t_ns - self.looked_ns) * counts.count(0)
        self.overlap_ns += (t_ns - self.looked_ns) * sum(count > 1 for count in counts)
        self.looked_ns = t_ns

    def begin(self, t_ns: int) -> None:
        """The members change: forget what the last change has cost."""
        owned = {queue: next(iter(owners)) for queue, owners in self.owners.items() if owners}
        fresh = _RebalancedTopic(self.members, self.owners, t_ns, t_ns, before=owned, last_change_ns=t_ns)
        for field in attrs.fields(_RebalancedTopic):
            setattr(self, field.name, getattr(fresh, field.name))


class Rebalances(Watcher):
    """Follows the members of every group that allocates its queues.

    Args:
        presence, messages: read the same rows before.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.CONSUMED,)

    def __init__(self, presence: Presence, messages: TracedMessages) -> None:
        self._presence = presence
        self._messages = messages
        self._topics: dict[str, dict[str, _RebalancedTopic]] = {}
        self._retained: list[tuple[_RebalancedTopic, OwnershipRow | PassRow | MessageRow, bool]] = []
        """Rows of this instant, and whether a message was consumed again."""
        self._first_seen: dict[str, None] = {}
        """Groups with a topic that no row has named before this instant."""
        self.found: list[RebalanceCost] = []

    def part(self) -> list[RebalanceCost]:
        """All changes of members, with the messages of a share."""
        return self.found

    def merge(self, part: list[RebalanceCost]) -> None:
        """Add the messages of a share; all shares have the other rows."""
        known = {(element.group, element.topic, element.start_ns): element for element in self.found}
        for item in part:
            key = item.group, item.topic, item.start_ns
            known[key] = _added(known[key], item) if key in known else item
        self.found = list(known.values())

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads ownership, passes, and messages that were consumed."""
        return dict.fromkeys((OWNERSHIP, PASSES, MESSAGES), self._keep)

    def _keep(self, row: OwnershipRow | PassRow | MessageRow) -> None:
        """Keep a row until it is known whether the members change in its instant."""
        if isinstance(row, MessageRow):
            topic = self._topics.get(row.group, {}).get(row.topic)
            if topic is not None and row.event == MessageEvent.CONSUMED:
                self._retained.append((topic, row, self._is_again(row)))
            return
        is_of_dead = self._presence.processes.is_dead((row.node, row.incarnation), row.seq)
        counts = isinstance(row, PassRow) or (row.event in OWNED and not is_of_dead)
        if counts and not _is_retry(row.topic):
            self._retained.append((self._topic(row.group, row.topic), row, False))

    def _is_again(self, row: MessageRow) -> bool:
        return self._messages.times_consumed(row) > 1

    def _own(self, topic: _RebalancedTopic, row: OwnershipRow) -> None:
        process = row.node, row.incarnation
        topic.pass_time(row.t_ns)
        owners = topic.owners.setdefault(row.queue, {})
        if row.event == OwnershipEvent.ACQUIRED:
            topic.acquired += 1
            if not self._presence.processes.has_ended(process, row.t_ns):  # it may have ended in the same instant
                owners[process] = None
        else:
            owners.pop(process, None)
        topic.last_change_ns = row.t_ns

    def _topic(self, group: str, topic: str) -> _RebalancedTopic:
        topics = self._topics.setdefault(group, {})
        if topic not in topics:
            topics[topic] = _RebalancedTopic()
            self._first_seen[group] = None
        return topics[topic]

    def settle(self, t_ns: int) -> None:
        """Compare the members of each group that may have changed with those before."""
        changed = self._presence.changed
        if not (changed or self._retained or self._first_seen or self._presence.processes.stirred):
            return
        for group in self._topics if "" in changed else {**changed, **self._first_seen}:
            for name, topic in self._topics.get(group, {}).items():
                self._look(group, name, topic, t_ns)
        self._first_seen.clear()
        self._bury(t_ns)
        for topic, row, again in self._retained:
            match row:
                case OwnershipRow():
                    self._own(topic, row)
                case MessageRow():
                    topic.first_consumed_ns.setdefault((row.queue, (row.node, row.incarnation)), row.t_ns)
                    topic.duplicates += again
                case PassRow():
                    topic.passes += 1
                    topic.requests += row.requests
                    topic.bytes += row.bytes
        self._retained.clear()

    def _bury(self, t_ns: int) -> None:
        """A process that has ended owns nothing more."""
        processes = self._presence.processes
        dead = [process for process in processes.stirred if processes.has_ended(process, t_ns)]
        topics = [topic for topics in self._topics.values() for topic in topics.values()] if dead else []
        for topic in topics:
            topic.pass_time(t_ns)
            for owners in topic.owners.values():
                if any(owners.pop(process, 0) is None for process in dead):
                    topic.last_change_ns = t_ns

    def _look(self, group: str, name: str, topic: _RebalancedTopic, t_ns: int) -> None:
        members = tuple(self._presence.members(group, name, t_ns))
        if members == topic.members:
            return
        before, topic.members = topic.members, members
        topic.pass_time(t_ns)
        if topic.start_ns < 0 or t_ns - topic.start_ns > ONE_CHANGE_NS:
            self._end(group, name, topic, before, t_ns)
            topic.begin(t_ns)
        topic.joined.update((node, None) for node, number in members if (node, number) not in before)
        gone = [process for process in before if process not in members]
        topic.left.update((node, None) for node, _ in gone)

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for group, topics in self._topics.items():
            for name, topic in topics.items():
                topic.pass_time(end_ns)
                self._end(group, name, topic, topic.members, end_ns)

    def _end(self, group: str, name: str, topic: _RebalancedTopic, members: tuple[Process, ...], end_ns: int) -> None:
        """A change has had all the time that it gets; `members` are those that it led to."""
        if topic.start_ns < 0 or end_ns <= topic.start_ns or self._presence.broadcasts(group):
            return
        # A member that is gone by now owned its queues until then.
        now = {queue: tuple(owners) for queue, owners in topic.owners.items()}
        counts = [sum(process in owners for owners in now.values()) for process in members]
        retained = sum(topic.before.get(queue) in owners for queue, owners in now.items() if queue in topic.before)
        keepable = max_retained(topic.before.values(), members, len(now))
        moved = [
            (queue, process)
            for queue, owners in now.items()
            for process in owners
            if topic.before.get(queue, process) != process
        ]
        resumed = [topic.first_consumed_ns[item] - topic.start_ns for item in moved if item in topic.first_consumed_ns]
        self.found.append(
            RebalanceCost(
                group,
                name,
                topic.start_ns,
                end_ns,
                tuple(topic.joined),
                tuple(topic.left),
                len(members),
                len(now),
                round(balance_degree(counts), _DIGITS),
                round(retained / len(now), _DIGITS) if topic.before else -1.0,
                round(min(1.0, retained / keepable), _DIGITS) if keepable else -1.0,
                len(dict.fromkeys(queue for queue, _ in moved)),
                topic.acquired,
                topic.last_change_ns - topic.start_ns,
                bool(now) and all(len(owners) == 1 for owners in now.values()),
                max(resumed, default=-1),
                len(resumed) == len(moved),
                topic.orphan_ns,
                topic.overlap_ns,
                topic.duplicates,
                topic.passes,
                topic.requests,
                topic.bytes,
                moves=len(moved),
                resumes=len(resumed),
            )
        )


def _added(rebalance_cost: RebalanceCost, other: RebalanceCost) -> RebalanceCost:
    """The same change of members with the messages of two shares."""
    resumes = rebalance_cost.resumes + other.resumes
    return attrs.evolve(
        rebalance_cost,
        resumed_ns=max(rebalance_cost.resumed_ns, other.resumed_ns),
        resumed=resumes == rebalance_cost.moves,
        resumes=resumes,
        duplicates=rebalance_cost.duplicates + other.duplicates,
    )


def balance_degree(counts: Iterable[int]) -> float:
    """Standard deviation of numbers of queues; 0 without members."""
    numbers = list(counts)
    if not numbers:
        return 0.0
    mean = sum(numbers) / len(numbers)
    return sqrt(sum((number - mean) ** 2 for number in numbers) / len(numbers))


def max_retained(owners: Iterable[Process], members: Iterable[Process], queues: int) -> int:
    """How many queues could keep their owner at most if the members are to have the same numbers, or one more.

    Args:
        owners: of each queue before.
        members: after.
        queues: number of queues after.
    """
    retained = dict.fromkeys(members, 0)
    for owner in owners:
        if owner in retained:
            retained[owner] += 1
    if not retained:
        return 0
    share, longer = divmod(queues, len(retained))
    by_size = sorted(retained.values(), reverse=True)
    return sum(min(count, share + (place < longer)) for place, count in enumerate(by_size))


def _is_retry(topic: str) -> bool:
    return topic.startswith(RETRY_TOPIC_PREFIX)
