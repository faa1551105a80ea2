"""CONFIG: the configured queues, for every member."""

from collections.abc import Sequence

from nodes.protocol.model import MessageQueue
from nodes.values import frozen


@frozen
class AllocateByConfig:
    """Give every member the configured queues.

    Configured are q0 and q1 of topic t; the members are a, b::

        topic t            a  q0 q1     b  q0 q1
        any other topic    a  q0 q1     b  q0 q1

    Neither topic nor members are checked, so two members consume the same
    queues, and a pass over another topic (each group has its retry topic) gets
    queues that it can never own: it never counts as balanced.

    Mirrors:
        `org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig`.
    """

    message_queue_list: tuple[MessageQueue, ...] | None = None
    """None: not configured; then no queue is allocated."""

    def __call__(
        self,
        consumer_group: str,  # noqa: ARG002
        current_cid: str,  # noqa: ARG002
        mq_all: Sequence[MessageQueue],  # noqa: ARG002
        cid_all: Sequence[str],  # noqa: ARG002
        /,
    ) -> list[MessageQueue]:
        """The configured queues; the arguments are not used."""
        return list(self.message_queue_list or ())
