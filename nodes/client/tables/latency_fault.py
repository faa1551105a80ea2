"""Avoidance of brokers that were slow or failed, by producers.

Mirrors:
    `org.apache.rocketmq.client.latency.{MQFaultStrategy,LatencyFaultToleranceImpl}`.
"""

import attrs

from nodes.protocol.java import hash_ordered
from nodes.protocol.model import MessageQueue
from nodes.routes import SendWhichQueue

LATENCY_MAX_MS = (50, 100, 550, 1_800, 3_000, 5_000, 15_000)
NOT_AVAILABLE_DURATION_MS = (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000)
_ISOLATION_LATENCY_MS = 10_000
"""Latency that a failed send counts as."""


def compute_not_available_duration_ms(latency_ms: int) -> int:
    """How long a broker with this latency is avoided.

    Mirrors:
        `MQFaultStrategy#computeNotAvailableDuration`.
    """
    steps = zip(LATENCY_MAX_MS, NOT_AVAILABLE_DURATION_MS, strict=True)
    return max((duration_ms for min_ms, duration_ms in steps if latency_ms >= min_ms), default=0)


@attrs.define
class FaultItem:
    """Latency and isolation of one broker."""

    current_latency_ms: int
    """Latency of the last send."""
    start_timestamp: int
    """End of its isolation, wall clock; 0: it was never isolated."""
    reachable: bool
    check_stamp: int = 0
    """From when on a detector may ask the broker again, wall clock."""


class LatencyFaultTolerance:
    """Broker name -> latency and isolation; an unknown broker is available."""

    def __init__(self) -> None:
        self._items: dict[str, FaultItem] = {}

    def item(self, broker_name: str) -> FaultItem | None:
        """Latency and isolation of a broker."""
        return self._items.get(broker_name)

    def update_fault_item(
        self, broker_name: str, latency_ms: int, not_available_duration_ms: int, *, reachable: bool, now_ms: int
    ) -> None:
        """Record the latency of a send.

        The isolation can only be extended: a fast answer neither ends nor shortens it.
        """
        item = self._items.setdefault(broker_name, FaultItem(latency_ms, 0, reachable))
        item.current_latency_ms = latency_ms
        item.reachable = reachable
        if not_available_duration_ms > 0:
            item.start_timestamp = max(item.start_timestamp, now_ms + not_available_duration_ms)

    def begin_detection(self, broker_name: str, now_ms: int, interval_ms: int) -> bool:
        """Whether a detector asks a broker now; the next time it may is an interval later.

        Mirrors:
            `LatencyFaultToleranceImpl#detectByOneRound`.
        """
        item = self._items.get(broker_name)
        if item is None or now_ms < item.check_stamp:
            return False
        item.check_stamp = now_ms + interval_ms
        return True

    def on_detected(self, broker_name: str) -> None:
        """A broker has answered a detector."""
        item = self._items.get(broker_name)
        if item is not None:
            item.reachable = True

    def remove(self, broker_name: str) -> None:
        """Forget a broker, which is available and reachable then."""
        self._items.pop(broker_name, None)

    def broker_names(self) -> list[str]:
        """The brokers in the order in which Java iterates them."""
        return hash_ordered(self._items)

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """Whether a broker is not isolated."""
        item = self._items.get(broker_name)
        return item is None or now_ms >= item.start_timestamp

    def is_reachable(self, broker_name: str) -> bool:
        """Whether the last send reached a broker."""
        item = self._items.get(broker_name)
        return item is None or item.reachable


class MQFaultStrategy:
    """Chooses the queue of a send.

    Args:
        send_latency_enable: avoid brokers that were slow or failed; else only that of the last attempt.
    """

    def __init__(self, *, send_latency_enable: bool) -> None:
        self.send_latency_enable = send_latency_enable
        self.tolerance = LatencyFaultTolerance()

    def select_one_message_queue(
        self, queues: tuple[MessageQueue, ...], which: SendWhichQueue, last_broker_name: str | None, now_ms: int
    ) -> MessageQueue:
        """The next queue; after an attempt, the next one of another broker.

        With `send_latency_enable`: of an available broker, else of a reachable one, else the next of all. A pass
        without result advances the turn by one per queue.
        """
        if last_broker_name is None and not self.send_latency_enable:
            return which.next_of(queues)

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
        """Record how a send went; does nothing without `send_latency_enable`.

        Args:
            isolation: whether it failed.
        """
        if self.send_latency_enable:
            duration_ms = compute_not_available_duration_ms(_ISOLATION_LATENCY_MS if isolation else latency_ms)
            self.tolerance.update_fault_item(broker_name, latency_ms, duration_ms, reachable=reachable, now_ms=now_ms)
