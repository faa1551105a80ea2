"""The files of a broker: its tables, and the log, which is mapped into memory.

With `SYNC_FLUSH`, the default here, a message is on the disk before its producer
has the answer: neither a kill nor a loss of power takes what was acknowledged. With
`ASYNC_FLUSH`, RocketMQ's default, a loss of power takes what was stored since the last flush.

Mirrors:
    `org.apache.rocketmq.common.ConfigManager`; `org.apache.rocketmq.store.DefaultMessageStore`.
"""

from collections.abc import Callable, Iterable
from functools import partial

from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.broker.tables.clients.assignments import MessageRequestModeManager, RebalanceSettings
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.pop.consumer_records import PopConsumerStore, decode_pop_records, encode_pop_records
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.timer.delay_offsets import DelayOffsets, TimerCheckPoint, encode_delay_offsets
from nodes.broker.tables.timer.timer_log import encode_timer_metrics
from nodes.broker.tables.timer.timer_store import TimerStore
from nodes.protocol.bodies import DelayOffsetSerializeWrapper
from nodes.protocol.model import Message
from nodes.protocol.registry import encode_body

CONSUME_QUEUE_FILE = "consumequeue"
"""Says of the queues only up to where the log could be read: they are built from the log."""
TOPIC_FILE = "topics"
GROUP_FILE = "subscriptionGroups"
DELAY_OFFSET_FILE = "delayOffset.json"
MESSAGE_REQUEST_MODE_FILE = "messageRequestMode.json"
REBALANCE_SETTINGS_FILE = "rebalanceSettings.json"
TIMER_LOG_FILE = "timerlog"
TIMER_CHECK_POINT_FILE = "timercheckpoint"
TIMER_METRICS_FILE = "timermetrics"
ORDER_INFO_FILE = "consumerOrderInfo.json"
POP_RECORDS_FILE = "kvStore"


def persist_topics(broker: BrokerContext) -> None:
    """Write all topics."""
    broker.host.disk.write(TOPIC_FILE, partial(encode_body, broker.topics.wrapper()))


def persist_groups(broker: BrokerContext) -> None:
    """Write all consumer groups."""
    broker.host.disk.write(GROUP_FILE, partial(encode_body, broker.groups.wrapper()))


class TopicAndGroupFiles(Part):
    """The files of topics and consumer groups, which all parts use."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker

    def load(self) -> None:
        """Read what is there; a first process begins with what it was set up with."""
        topics, groups = self._broker.host.disk.read(TOPIC_FILE), self._broker.host.disk.read(GROUP_FILE)
        if topics is not None:
            self._broker.topics.decode(topics)
        if groups is not None:
            self._broker.groups.decode(groups)

    def persist(self) -> None:
        """Write both."""
        persist_topics(self._broker)
        persist_groups(self._broker)


def persist_consumer_offsets(broker: BrokerContext, table: ConsumerOffsetManager) -> None:
    """Write all consumer offsets."""
    broker.host.disk.write(table.file_name, table.encode())


def persist_delay_offsets(broker: BrokerContext, offsets: DelayOffsetSerializeWrapper) -> None:
    """Write delay offsets: the broker's own, or copied ones."""
    broker.host.disk.write(DELAY_OFFSET_FILE, encode_delay_offsets(offsets))


def persist_message_request_modes(broker: BrokerContext, table: MessageRequestModeManager) -> None:
    """Write the message request modes."""
    broker.host.disk.write(MESSAGE_REQUEST_MODE_FILE, table.encode())


def persist_rebalance_settings(broker: BrokerContext, table: RebalanceSettings) -> None:
    """Write who allocates the queues of each group."""
    broker.host.disk.write(REBALANCE_SETTINGS_FILE, table.encode())


def persist_timer_check_point(broker: BrokerContext, wheel: TimerStore) -> None:
    """Write the timer's check point."""
    broker.host.disk.write(TIMER_CHECK_POINT_FILE, wheel.progress.check_point.encode())


def persist_timer(broker: BrokerContext, wheel: TimerStore) -> None:
    """Write all files of the timer; there are none before its first message."""
    if wheel.has_messages:
        broker.host.disk.flush(TIMER_LOG_FILE)
        persist_timer_check_point(broker, wheel)
        persist_timer_metrics(broker, wheel)


def persist_timer_metrics(broker: BrokerContext, wheel: TimerStore) -> None:
    """Write how many timed messages each topic has."""
    broker.host.disk.write(TIMER_METRICS_FILE, partial(encode_timer_metrics, wheel.metrics.wrapper()))


def persist_pop_records(broker: BrokerContext, table: PopConsumerStore) -> None:
    """Write all records of pops that are in the database."""
    broker.host.disk.write(POP_RECORDS_FILE, partial(encode_pop_records, table.records))


def load_pop_records(broker: BrokerContext, table: PopConsumerStore) -> None:
    """Read the records of pops."""
    records = broker.host.disk.read(POP_RECORDS_FILE)
    if records is not None:
        table.write_records(decode_pop_records(records))


def load_delay_offsets(broker: BrokerContext, table: DelayOffsets) -> None:
    """Read the delay offsets."""
    delays = broker.host.disk.read(DELAY_OFFSET_FILE)
    if delays is not None:
        table.decode(delays, now_ms=broker.host.clock.now_ms())


def load_timer_check_point(broker: BrokerContext, wheel: TimerStore) -> None:
    """Read the timer's check point."""
    check_point = broker.host.disk.read(TIMER_CHECK_POINT_FILE)
    if check_point is not None:
        wheel.progress.check_point = TimerCheckPoint.decode(check_point)


def load_timer(broker: BrokerContext, wheel: TimerStore) -> None:
    """Read the files of the timer, and rebuild its wheel; to be called when the log is loaded."""
    now_ms = broker.host.clock.now_ms()
    metrics = broker.host.disk.read(TIMER_METRICS_FILE)
    if metrics is not None:
        wheel.metrics.decode(metrics, now_ms=now_ms)
    wheel.recover(now_ms)


def append_to_commit_log(store: MessageStore, messages: Iterable[Message], on_appended: Callable[[], None]) -> None:
    """Append messages of another log, with the offsets that they have there.

    Args:
        store: the own log.
        messages: the next ones.
        on_appended: called after each message; sees to it that it gets to the disk.

    Mirrors:
        `org.apache.rocketmq.store.DefaultMessageStore#appendToCommitLog`.
    """
    for message in messages:
        store.restore(message)
        on_appended()
