"""What the rebalance of one group writes into the trace."""

from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter

from nodes.beliefs import Belief, BeliefKind, Json, Ownership, OwnershipEvent, RebalancePass
from nodes.client.rebalance.roles import PassResult
from nodes.filter.filter_api import subscription_in_brief
from nodes.host import Host
from nodes.protocol.assigning import RebalanceMode
from nodes.protocol.model import MessageModel, MessageQueue, SubscriptionData
from nodes.routes import sort_queues


class RebalanceBeliefs:
    """Records the rebalance of one group in the trace.

    Args:
        reached: returns the offset of a queue in memory, -1 if there is none.

    Emits:
        SUBSCRIPTION, REBALANCE_MODE, VIEW, ASSIGNER, EPOCH and ASSIGNMENT whenever they change; ACQUIRED and DROPPED
        for each queue, POP_ACQUIRED and POP_DROPPED for each that is popped; a RebalancePass for each topic of a pass.
    """

    def __init__(self, host: Host, group: str, reached: Callable[[MessageQueue], int]) -> None:
        self._host = host
        self._group = group
        self._reached = reached
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._mode = RebalanceMode.CLIENT
        self._is_given: dict[str, bool] = {}
        """Topic -> whether a broker assigned the queues."""
        self._viewed: dict[str, tuple[tuple[str, ...], tuple[MessageQueue, ...]]] = {}

    def subscription(self, topic: str, data: SubscriptionData | None, model: MessageModel) -> None:
        """Record the subscription to a topic; None: it has ended."""
        value = None if data is None else subscription_in_brief(data, model)
        if data is None:
            self._forget(BeliefKind.ASSIGNER, BeliefKind.EPOCH, topic=topic)
        self._believe(BeliefKind.SUBSCRIPTION, topic, value)

    def view(self, topic: str, client_ids: tuple[str, ...], queues: tuple[MessageQueue, ...], broker_addr: str) -> None:
        """Record members and queues of a pass; `broker_addr` is the broker that returned the members."""
        is_used = self._mode is RebalanceMode.CLIENT  # the answer may have said that a broker allocates from now on
        if is_used and self._viewed.get(topic) != (client_ids, queues):
            self._viewed[topic] = (client_ids, queues)
            counts = Counter(map(_broker_name, queues))
            self._believe(BeliefKind.VIEW, topic, {"cids": client_ids, "queues": dict(counts)}, broker_addr)

    def assignment(self, topic: str, queues: Iterable[MessageQueue], broker_addr: str = "") -> None:
        """Record the queues of this member; `broker_addr` is the broker that assigned them, if one did."""
        owned = sort_queues(queues)
        if self._is_given.setdefault(topic, bool(broker_addr)) is not bool(broker_addr):
            self._is_given[topic] = bool(broker_addr)
            self._believed.pop((BeliefKind.ASSIGNMENT, topic), None)  # the same queues, for another reason
        self._believe(BeliefKind.ASSIGNMENT, topic, [[q.broker_name, q.queue_id] for q in owned], broker_addr)

    def mode(self, mode: RebalanceMode) -> None:
        """Record who allocates the queues of the group, unless its members do, as always; what they did from ends."""
        if self._mode is not mode:
            self._mode = mode
            self._host.record(Belief(BeliefKind.REBALANCE_MODE, self._group, mode.value))
            self._viewed.clear()
            self._forget(BeliefKind.VIEW, BeliefKind.ASSIGNER, BeliefKind.EPOCH)

    def assigner(self, topic: str, broker_name: str | None, broker_addr: str) -> None:
        """Record the broker that allocates the queues of a topic for all members; None: no broker can be it."""
        self._believe(BeliefKind.ASSIGNER, topic, broker_name, broker_addr)

    def epoch(self, topic: str, epoch: int, broker_addr: str) -> None:
        """Record the allocation that this member follows; two brokers of one name may each have the same epoch."""
        self._believe(BeliefKind.EPOCH, topic, {"assigner": broker_addr, "epoch": epoch}, broker_addr)

    def passed(self, topic: str, mode: str, began_ns: int, result: PassResult) -> None:
        """Record the end of a pass over a topic."""
        self._host.record(
            RebalancePass(
                result.outcome,
                self._group,
                topic,
                mode,
                began_ns,
                result.members,
                result.queues,
                result.assigned,
                result.requested.broker_addr,
                result.requested.requests,
                result.requested.bytes,
            )
        )

    def acquired(self, queue: MessageQueue, offset: int) -> None:
        """Record that a queue was added to the table, with its start offset."""
        self._record(OwnershipEvent.ACQUIRED, queue, offset)

    def dropped(self, queue: MessageQueue) -> None:
        """Record that a queue was marked dropped."""
        self._record(OwnershipEvent.DROPPED, queue, self._reached(queue))

    def pop_acquired(self, queue: MessageQueue) -> None:
        """Record that a queue is popped from now on, next to other members."""
        self._host.record(Ownership(OwnershipEvent.POP_ACQUIRED, self._group, *_place(queue), -1))

    def pop_dropped(self, queue: MessageQueue) -> None:
        """Record that a queue is popped no more."""
        self._host.record(Ownership(OwnershipEvent.POP_DROPPED, self._group, *_place(queue), -1))

    def _record(self, event: OwnershipEvent, queue: MessageQueue, offset: int) -> None:
        self._host.record(Ownership(event, self._group, *_place(queue), offset))

    def _forget(self, *kinds: BeliefKind, topic: str | None = None) -> None:
        for kind, about in [item for item in self._believed if item[0] in kinds and topic in (None, item[1])]:
            self._believe(kind, about, None)

    def _believe(self, kind: BeliefKind, topic: str, value: Json, source: str = "") -> None:
        if self._believed.get((kind, topic)) != value:
            self._believed[kind, topic] = value
            self._host.record(Belief(kind, f"{self._group}/{topic}", value, source))


_broker_name = attrgetter("broker_name")
_place = attrgetter("topic", "broker_name", "queue_id")
