"""What every message passes on its way into a broker's own log."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import attrs

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.broker.broker_stats import StatsName
from nodes.broker.commit_log import write_commit_log
from nodes.broker.context import BrokerContext
from nodes.broker.delay_levels import DelayLevels
from nodes.protocol.model import MASTER_ID, Message


class PutMessageStatus(StrEnum):
    """What became of a message; the names are RocketMQ's."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    PUT_TO_REMOTE_BROKER_FAIL = "PUT_TO_REMOTE_BROKER_FAIL"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


@attrs.frozen
class PutMessageResult:
    """What became of a message, and how it lies in this broker's log."""

    status: PutMessageStatus
    stored: Message | None = None
    """None: not in this log."""


class PutMessage:
    """Puts messages into the log of this broker; one that asks for a delay goes where it waits.

    Args:
        on_stored: told topic and queue id of each message.

    Mirrors:
        `org.apache.rocketmq.store.DefaultMessageStore#putMessage`, with the hooks `HookUtils#checkBeforePutMessage`
        and `#handleScheduleMessage`.

    Emits:
        STORED for each message.
    """

    def __init__(self, broker: BrokerContext, levels: DelayLevels, on_stored: Callable[[str, int], None]) -> None:
        self._broker = broker
        self._levels = levels
        self._on_stored = on_stored

    def put(self, message: Message) -> PutMessageResult:
        """Append a message; a slave takes none."""
        (result,) = self.put_all((message,))
        return result

    def put_due(self, message: Message) -> PutMessageResult:
        """Append a message that has waited as long as it asks for, or asks for nothing."""
        (result,) = self._put_all((message,))
        return result

    def put_as(self, message: Message, topic: str, queue_id: int, properties: Mapping[str, str]) -> PutMessageResult:
        """Append a copy of a message to another queue, with other properties."""
        return self.put(attrs.evolve(message, topic=topic, queue_id=queue_id, properties=properties))

    def put_all(self, messages: Sequence[Message]) -> tuple[PutMessageResult, ...]:
        """Append messages one behind the other, before anybody is told of the first; all or none.

        Mirrors:
            `org.apache.rocketmq.store.DefaultMessageStore#putMessages`.
        """
        return self._put_all([self._levels.put_aside(message) for message in messages])

    def _put_all(self, messages: Sequence[Message]) -> tuple[PutMessageResult, ...]:
        broker = self._broker
        if broker.broker_id != MASTER_ID:
            return tuple(PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE) for _ in messages)
        stored = [self._append(message) for message in messages]
        for queue in dict.fromkeys((message.topic, message.queue_id) for message in stored):
            self._on_stored(*queue)
        return tuple(PutMessageResult(PutMessageStatus.PUT_OK, message) for message in stored)

    def _append(self, message: Message) -> Message:
        broker = self._broker
        now_ms = broker.host.clock.now_ms()
        stored = broker.store.put_message(message, now_ms=now_ms)
        write_commit_log(broker.host.disk, stored)
        topic, queue_id, offset = stored.topic, stored.queue_id, stored.queue_offset
        broker.stats.inc(StatsName.TOPIC_PUT_NUMS, topic, 1, now_ms)
        broker.host.record(MessageRecord(MessageEvent.STORED, "", topic, broker.broker_name, queue_id, offset))
        return stored
