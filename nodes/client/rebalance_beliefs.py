"""What a consumer tells the trace of its rebalance: what it saw, what it was given, what it took and let go of."""

from collections import Counter
from collections.abc import Callable, Iterable

from nodes.beliefs import Belief, BeliefKind, Json, Ownership, OwnershipEvent
from nodes.host import Host
from nodes.protocol.model import MessageQueue


class RebalanceBeliefs:
    """The rows of one group.

    Args:
        reached: the offset that memory holds for a queue, -1 where there is none.

    Emits:
        VIEW and ASSIGNMENT whenever they change; every acquired and dropped queue.
    """

    def __init__(self, host: Host, group: str, reached: Callable[[MessageQueue], int]) -> None:
        self._host = host
        self._group = group
        self._reached = reached
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._viewed: dict[str, tuple[tuple[str, ...], tuple[MessageQueue, ...]]] = {}

    def view(self, topic: str, client_ids: tuple[str, ...], queues: tuple[MessageQueue, ...], asked: str) -> None:
        """A pass allocates from these members and queues; `asked` gave the members."""
        if self._viewed.get(topic) != (client_ids, queues):
            self._viewed[topic] = (client_ids, queues)
            counts = Counter(queue.broker_name for queue in queues)
            self._believe(BeliefKind.VIEW, topic, {"cids": list(client_ids), "queues": dict(counts)}, asked)

    def assignment(self, topic: str, queues: Iterable[MessageQueue], asked: str = "") -> None:
        """A pass was given these queues; `asked`: by whom, where it did not allocate them itself."""
        self._believe(BeliefKind.ASSIGNMENT, topic, [[q.broker_name, q.queue_id] for q in sorted(queues)], asked)

    def acquired(self, queue: MessageQueue, offset: int) -> None:
        """A queue came into the table, to be consumed from an offset on."""
        self._record(OwnershipEvent.ACQUIRED, queue, offset)

    def dropped(self, queue: MessageQueue) -> None:
        """A queue was marked dropped."""
        self._record(OwnershipEvent.DROPPED, queue, self._reached(queue))

    def _record(self, event: OwnershipEvent, queue: MessageQueue, offset: int) -> None:
        self._host.record(Ownership(event, self._group, queue.topic, queue.broker_name, queue.queue_id, offset))

    def _believe(self, kind: BeliefKind, topic: str, value: Json, source: str = "") -> None:
        if self._believed.get((kind, topic)) != value:
            self._believed[kind, topic] = value
            self._host.record(Belief(kind, f"{self._group}/{topic}", value, source))
