"""Producers of a scenario: what they send, how often, and to which topics."""

import attrs

from emulator.spec.tables.bounds import DELAY_LEVEL_MAX, GROUP_NAME, NODE_NAME, RATE_MAX
from nodes.client.producer.keys import MessageKeys, TopicPartitions
from nodes.client.producer.local_transactions import LocalTransactions
from nodes.client.tables.queue_selectors import SelectorName
from nodes.config import ProducerConfig
from nodes.config.client5 import Producer5Config
from nodes.fields import TEXTS, checked, flag, span, text, whole


@attrs.frozen
class ProducerSpec:
    """One producer that sends at a steady rate."""

    name: str = checked(NODE_NAME)
    """Name of the node; if none is given, `producer-` and its number in the file."""
    group: str = checked(GROUP_NAME)
    """Producer group."""
    topic: str | None = text(None)
    """Topic that it sends to; needed without `partitions`."""
    rate_per_s: int = whole(10, minimum=1, limit=RATE_MAX)
    """Messages that it sends per second."""
    config: ProducerConfig = ProducerConfig()
    tags: tuple[str, ...] = checked(TEXTS, ())
    """Tags of its messages, in turn; empty: no tags."""
    keys: MessageKeys | None = None
    """Keys of its messages; None: no keys."""
    select: SelectorName | None = None
    """How it chooses the queue of a message; None: queues take turns."""
    partitions: TopicPartitions | None = None
    """Topics of which each message goes to one, by its key; None: all go to `topic`."""
    transactions: LocalTransactions | None = None
    """None: it sends ordinary messages."""
    messages: int = whole(0, minimum=0)
    """After so many messages that a broker has accepted it sends no more; 0: without end."""
    delay_level: int = whole(0, minimum=0, limit=DELAY_LEVEL_MAX)
    """Delay level of its messages; 0: none."""
    timer_ms: int = 0
    """How much later its messages are delivered, as timed messages; 0: at once."""
    endpoints: tuple[str, ...] = checked(TEXTS, ())
    """The proxies of its access point, which makes it a client of RocketMQ 5; empty: it is none."""
    fifo: bool = flag(default=False)
    """With `endpoints`: the key of each message is its message group, too."""
    config5: Producer5Config | None = None
    """The options of a client of RocketMQ 5; None: it is none."""
    start_after_ms: int = span(0)
    """Start this much later than the other clients, in ms after brokers are ready; the start spread comes on top."""

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics that it sends to."""
        if self.partitions is not None:
            return self.partitions.topics
        return () if self.topic is None else (self.topic,)
