"""How much may be cached before a consumer stops pulling for a moment."""

import attrs

from nodes.client.process_queue import ProcessQueue
from nodes.config import ConsumerConfig

_MIB = 1024 * 1024
_NO_THRESHOLD = -1


@attrs.define
class PullThresholds:
    """The thresholds of a consumer; those for a whole topic make it change the ones for a queue.

    Mirrors:
        `DefaultMQPushConsumerImpl#pullMessage`, `RebalancePushImpl#messageQueueChanged`.
    """

    config: ConsumerConfig
    for_queue: int = attrs.field(init=False)
    """Messages of one queue."""
    size_for_queue_mib: int = attrs.field(init=False)
    """Whole MiB of their bodies."""

    def __attrs_post_init__(self) -> None:
        self.for_queue = self.config.pull_threshold_for_queue
        self.size_for_queue_mib = self.config.pull_threshold_size_for_queue

    def divide(self, queue_count: int) -> None:
        """Give every queue its part of what a topic may hold; with no queue at all, everything stays as it is.

        Args:
            queue_count: entries of the process queue table: of all topics, the retry topic and dropped ones included.
        """
        if queue_count == 0:
            return
        if self.config.pull_threshold_for_topic != _NO_THRESHOLD:
            self.for_queue = max(1, self.config.pull_threshold_for_topic // queue_count)
        if self.config.pull_threshold_size_for_topic != _NO_THRESHOLD:
            self.size_for_queue_mib = max(1, self.config.pull_threshold_size_for_topic // queue_count)

    def is_flow_controlled(self, process_queue: ProcessQueue) -> bool:
        """Whether enough of a queue is cached; looked at before a pull, so a batch may overshoot."""
        return (
            process_queue.msg_count > self.for_queue
            or process_queue.msg_size_bytes // _MIB > self.size_for_queue_mib
            or (not self.config.consume_orderly and process_queue.max_span > self.config.consume_concurrently_max_span)
        )
