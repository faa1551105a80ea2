"""Which brokers a producer avoids for a while, because they were slow or failed.

Mirrors:
    `org.apache.rocketmq.client.latency.{MQFaultStrategy,LatencyFaultToleranceImpl}`.
"""

import attrs

from nodes.client.send_which_queue import SendWhichQueue
from nodes.protocol.model import MessageQueue

LATENCY_MAX_MS = (50, 100, 550, 1_800, 3_000, 5_000, 15_000)
NOT_AVAILABLE_DURATION_MS = (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000)
_ISOLATION_LATENCY_MS = 10_000
"""What a failed send counts as, however long it took."""


def compute_not_available_duration_ms(latency_ms: int) -> int:
    """How long a broker is avoided that took this long to answer.

    Mirrors:
        `MQFaultStrategy#computeNotAvailableDuration`.
    """
    steps = zip(LATENCY_MAX_MS, NOT_AVAILABLE_DURATION_MS, strict=True)
    return max((duration_ms for least_ms, duration_ms in steps if latency_ms >= least_ms), default=0)


@attrs.define
class FaultItem:
    """What is held against one broker."""

    current_latency_ms: int
    """Of the last send."""
    start_timestamp: int
    """Wall clock from which on the broker is available; 0: it always was."""
    reachable: bool


class LatencyFaultTolerance:
    """Broker name -> what is held against it; a broker that is not there is as good as can be."""

    def __init__(self) -> None:
        self._items: dict[str, FaultItem] = {}

    def item(self, broker_name: str) -> FaultItem | None:
        """What is held against a broker."""
        return self._items.get(broker_name)

    def update_fault_item(
        self, broker_name: str, latency_ms: int, not_available_duration_ms: int, *, reachable: bool, now_ms: int
    ) -> None:
        """Hold something against a broker.

        The end of its isolation only ever moves away: a fast answer neither lifts nor shortens it.
        """
        item = self._items.setdefault(broker_name, FaultItem(latency_ms, 0, reachable))
        item.current_latency_ms = latency_ms
        item.reachable = reachable
        if not_available_duration_ms > 0:
            item.start_timestamp = max(item.start_timestamp, now_ms + not_available_duration_ms)

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """Whether its isolation is over."""
        item = self._items.get(broker_name)
        return item is None or now_ms >= item.start_timestamp

    def is_reachable(self, broker_name: str) -> bool:
        """Whether the last send got through to it."""
        item = self._items.get(broker_name)
        return item is None or item.reachable


class MQFaultStrategy:
    """Chooses the queue of an attempt.

    Args:
        send_latency_enable: avoid brokers that were slow or failed; else only that of the attempt before.
    """

    def __init__(self, *, send_latency_enable: bool) -> None:
        self.send_latency_enable = send_latency_enable
        self.tolerance = LatencyFaultTolerance()

    def select_one_message_queue(
        self, queues: tuple[MessageQueue, ...], which: SendWhichQueue, last_broker_name: str | None, now_ms: int
    ) -> MessageQueue:
        """The next queue on another broker than that of the attempt before.

        With latencies in mind: on an available broker; else on a reachable one; else the next at all. Each pass that
        finds nothing has used up one turn per queue.
        """

        def is_elsewhere(queue: MessageQueue) -> bool:
            return last_broker_name is None or queue.broker_name != last_broker_name

        def is_available(queue: MessageQueue) -> bool:
            return self.tolerance.is_available(queue.broker_name, now_ms) and is_elsewhere(queue)

        def is_reachable(queue: MessageQueue) -> bool:
            return self.tolerance.is_reachable(queue.broker_name) and is_elsewhere(queue)

        passes = (is_available, is_reachable) if self.send_latency_enable else (is_elsewhere,)
        for suits in passes:
            found = which.next_that(queues, suits)
            if found is not None:
                return found
        return which.next_of(queues)

    def update_fault_item(
        self, broker_name: str, latency_ms: int, *, isolation: bool, reachable: bool, now_ms: int
    ) -> None:
        """Tell how a send went; nobody listens unless latencies count.

        Args:
            isolation: it failed.
        """
        if self.send_latency_enable:
            duration_ms = compute_not_available_duration_ms(_ISOLATION_LATENCY_MS if isolation else latency_ms)
            self.tolerance.update_fault_item(broker_name, latency_ms, duration_ms, reachable=reachable, now_ms=now_ms)


def select_by_hash(queues: tuple[MessageQueue, ...], argument_hash: int) -> MessageQueue:
    """The queue that belongs to an application's key, as for messages in order.

    Args:
        argument_hash: Java's `hashCode` of the key, with sign.

    Mirrors:
        `org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash`.
    """
    # Java's remainder keeps the sign, which is then dropped.
    return queues[abs(argument_hash) % len(queues)]
