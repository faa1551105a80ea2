"""KAFKA_ROUND_ROBIN: the queues of all topics of a group merged and dealt out in one circle, as Kafka does."""

from collections.abc import Mapping, Sequence

import attrs

from nodes.allocation.strategy import Divisions, is_member
from nodes.protocol.java import java_sorted
from nodes.protocol.model import MessageQueue
from nodes.values import frozen

_Shares = Mapping[str, Sequence[MessageQueue]]


def allocate_round_robin(
    queues: Mapping[str, Sequence[MessageQueue]], topics: Mapping[str, Sequence[str]]
) -> dict[str, list[MessageQueue]]:
    """Deal out the queues of all topics, one by one, to the members that subscribe to their topic.

    Topics t and u with three queues each; a and b subscribe to both; then c joins, which subscribes to u only::

        a  t0 t2 u1       a  t0 t2 u2
        b  t1 u0 u2       b  t1 u0
                          c  u1

    Topic by topic, as RocketMQ allocates, a would have two queues of each topic and b one. With unequal subscriptions
    the circle is not always balanced.

    Args:
        queues: topic -> its queues, in the order in which they are dealt out.
        topics: member -> the topics that it subscribes to.

    Returns:
        Member -> its queues, in Java's order of texts; a topic that no one subscribes to is left out.

    Mirrors:
        `org.apache.kafka.clients.consumer.RoundRobinAssignor`.
    """
    members = java_sorted(topics)
    subscribed = {cid: dict.fromkeys(topics[cid]) for cid in members}
    wanted = dict.fromkeys(topic for cid in members for topic in topics[cid])
    shares: dict[str, list[MessageQueue]] = {cid: [] for cid in members}
    turn = 0
    for topic in java_sorted(topic for topic in queues if topic in wanted):
        for queue in queues[topic]:
            while topic not in subscribed[members[turn]]:
                turn = (turn + 1) % len(members)
            shares[members[turn]].append(queue)
            turn = (turn + 1) % len(members)
    return shares


@frozen
class AllocateKafkaRoundRobin:
    """Allocate the queues of several topics, as if every member subscribed to all of them.

    RocketMQ sends a member the ids of the others, not their topics. So a member merges the topics of its own, and the
    shares fit only if all members subscribe to the same topics and know the same routes. Retry topics are not merged
    but allocated alone. A member listed twice counts once; apart from that, one topic alone is allocated as by
    AVG_BY_CIRCLE.
    """

    _shares: Divisions[_Shares] = attrs.field(init=False, eq=False, repr=False)

    @_shares.default
    def _make_shares(self) -> Divisions[_Shares]:
        return Divisions(_allocate_queues)

    def __call__(
        self,
        consumer_group: str,  # noqa: ARG002
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
        /,
    ) -> list[MessageQueue]:
        """The queues of one member, of all topics.

        Args:
            consumer_group: not used.
            current_cid: the member that asks.
            mq_all: all queues of all topics, those of each topic sorted.
            cid_all: all members.

        Raises:
            AllocationError: an argument is empty.
        """
        if not is_member(current_cid, mq_all, cid_all):
            return []
        return list(self._shares.of(mq_all, cid_all)[current_cid])


def _allocate_queues(mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> _Shares:
    queues: dict[str, list[MessageQueue]] = {}
    for queue in mq_all:
        queues.setdefault(queue.topic, []).append(queue)
    return allocate_round_robin(queues, dict.fromkeys(cid_all, tuple(queues)))
