"""Queue balance at the end of a run: idle consumers, and members with more queues than others over several topics.

* idle: live members of a group without a queue of a topic. With the strategies averagely and by circle, members beyond
  the number of queues are always idle.
* balance: the queues of a member over all topics of its group except retry topics. With averagely the remainder of each
  topic goes to the first members, so with several topics the same members get all remainders.
"""

from collections.abc import Iterable, Mapping

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.owners import Hold
from emulator.history.presence import Presence
from emulator.history.processes import NEVER
from nodes.protocol.model import RETRY_TOPIC_PREFIX

QueuesOfMembers = Mapping[tuple[str, str], Mapping[str, int]]
"""Group and topic -> mapping node of each live member -> number of its queues."""


@attrs.frozen
class Idle:
    """Members of a group without a queue of a topic at the end of the run."""

    group: str
    topic: str
    members: int
    """Live members of the group."""
    queues: int
    """Queues of the topic that have an owner."""
    idle: int
    """Members without a queue."""
    unavoidable: int
    """Members beyond the number of queues."""


@attrs.frozen
class QueueBalance:
    """The fewest and the most queues of a member over all topics at the end of the run."""

    group: str
    topics: int
    """Topics of the group, without its retry topic."""
    members: int
    """Live members of the group."""
    minimum: int
    """Fewest queues of a member."""
    maximum: int
    """Most queues of a member."""


IDLE = FindingTable("idle", Idle, "members of a group without a queue of a topic at the end")
QUEUE_BALANCE = FindingTable("queue_balance", QueueBalance, "the fewest and the most queues of a member at the end")


def queues_of_members(holds: Iterable[Hold], presence: Presence, end_ns: int) -> QueuesOfMembers:
    """The number of queues of each live member in each topic of its group at the end of the run.

    A process that began with the last instant of the run, when all faults are healed, is no member yet.
    """
    found: dict[tuple[str, str], dict[str, int]] = {}
    for hold in holds:
        group, topic = hold.queue.group, hold.queue.topic
        if topic.startswith(RETRY_TOPIC_PREFIX) or presence.broadcasts(group):
            continue
        members = found.get((group, topic))
        if members is None:
            members = found[group, topic] = {
                process[0]: 0
                for process in presence.members(group, topic, end_ns)
                if not NEVER > presence.processes.begun_ns(process) >= end_ns
            }
        if hold.censored and hold.node in members:
            members[hold.node] += 1
    return dict(sorted(found.items()))


def idle(of_members: QueuesOfMembers) -> tuple[Idle, ...]:
    """Idle members per topic."""
    found = []
    for (group, topic), members in of_members.items():
        queues = sum(members.values())
        without = sum(1 for count in members.values() if not count)
        found.append(Idle(group, topic, len(members), queues, without, max(0, len(members) - queues)))
    return tuple(item for item in found if item.members)


def balance(of_members: QueuesOfMembers) -> tuple[QueueBalance, ...]:
    """How evenly the queues of all topics of a group are allocated."""
    totals: dict[str, dict[str, int]] = {}
    topics: dict[str, int] = {}
    for (group, _), members in of_members.items():
        of_group = totals.setdefault(group, {})
        topics[group] = topics.get(group, 0) + 1
        for node, count in members.items():
            of_group[node] = of_group.get(node, 0) + count
    return tuple(
        QueueBalance(group, topics[group], len(counts), min(counts.values()), max(counts.values()))
        for group, counts in totals.items()
        if counts
    )
