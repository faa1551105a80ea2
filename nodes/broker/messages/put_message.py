"""Appending messages to the broker's log, and the wait until they are on the disk."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.broker.context import BrokerContext
from nodes.broker.tables.store.broker_stats import StatsName
from nodes.broker.tables.store.copied_messages import copy_record
from nodes.broker.tables.store.put_message_result import PutMessageResult, PutMessageStatus
from nodes.broker.tables.store.transaction_messages import HALF_TOPIC, half_record
from nodes.broker.tables.timer.delay_levels import DelayLevels
from nodes.broker.tables.timer.timer_messages import ASKING, admit_timer_message
from nodes.broker.tables.timer.timer_store import TimerStore
from nodes.broker.tables.timer.waiting_messages import wait_of
from nodes.config import BrokerRole
from nodes.protocol.command import new_tuple
from nodes.protocol.model import MASTER_ID, Message
from nodes.protocol.properties import KEYS, ORIGIN_MESSAGE_ID, TAGS, UNIQ_KEY
from nodes.units import NS_PER_MS


class MessageArrivals:
    """Notifies the parts of a broker that a queue has a new message, stored by this broker or replicated.

    Mirrors:
        `org.apache.rocketmq.store.MessageArrivingListener`.
    """

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[str, int], None], ...] = ()
        self._of_topics: dict[str, Callable[[str, int], None]] = {}

    def listen(self, *listeners: Callable[[str, int], None]) -> None:
        """Add listeners; they are called with topic and queue id, in this order."""
        self._listeners += listeners

    def listen_to(self, topic: str, listener: Callable[[str, int], None]) -> None:
        """Add a listener that only cares for one topic; it is called after the others."""
        self._of_topics[topic] = listener

    def notify(self, topic: str, queue_id: int) -> None:
        """Call the listeners."""
        for listener in self._listeners:
            listener(topic, queue_id)
        of_topic = self._of_topics.get(topic)
        if of_topic is not None:
            of_topic(topic, queue_id)


class LogRoom(Protocol):
    """Room in a log: one append at a time, and none while the page cache is busy."""

    def before_append(self) -> PutMessageStatus | None:
        """Make room for a message in the log; returns why there is none."""

    async def in_turn(self, put: Callable[[], PutMessageResult]) -> PutMessageResult:
        """Call `put` when the appends before it have ended, and the disk has taken what was written."""


class PutMessage:
    """Appends messages to the log of this broker; one that has to wait goes to the queue of its level or of the timer.

    Args:
        wheel: refuses timed messages while it is full; None: there is no timer.
        arrivals: notified of each queue that has a new message.
        on_stored: called when the log has grown.
        room: what a message waits for, or is refused by; None: each append ends at once.

    Mirrors:
        `org.apache.rocketmq.store.DefaultMessageStore#putMessage`, with the hooks `HookUtils#checkBeforePutMessage`
        and `#handleScheduleMessage`.

    Emits:
        STORED for each message; DELAYED, RECALLED and DELIVERED for messages that wait; HALF for half messages; RETRIED
        and DEAD_LETTERED for copies of messages that consumers send back.
    """

    def __init__(
        self,
        broker: BrokerContext,
        levels: DelayLevels,
        wheel: TimerStore | None,
        arrivals: MessageArrivals,
        on_stored: Callable[[], None],
        room: LogRoom | None,
    ) -> None:
        self._broker = broker
        self._wheel = wheel
        self._levels = levels
        self._arrivals = arrivals
        self._on_stored = on_stored
        self._room = room
        self._chance = broker.host.rng("timerFlowControl")

    def put(self, message: Message) -> PutMessageResult:
        """Append a message; a slave refuses it."""
        (result,) = self.put_all((message,))
        return result

    def put_due(self, message: Message) -> PutMessageResult:
        """Append a message that waits for no delay level any more; it waits for its time if it asks for one."""
        (result,) = self._put_all((message,), _as_it_is)
        return result

    async def put_in_turn(self, message: Message) -> PutMessageResult:
        """Append a message of the broker's own, which waits for the lock of the log as messages of clients do."""
        return self.put(message) if self._room is None else await self._room.in_turn(partial(self.put, message))

    async def put_due_in_turn(self, message: Message) -> PutMessageResult:
        """The same of a message that waits for no delay level any more."""
        put = partial(self.put_due, message)
        return put() if self._room is None else await self._room.in_turn(put)

    def put_as(self, message: Message, topic: str, queue_id: int, properties: Mapping[str, str]) -> PutMessageResult:
        """Append a copy of a message to another queue, with other properties."""
        return self.put(message._replace(topic=topic, queue_id=queue_id, properties=properties))

    def put_all(self, messages: Sequence[Message], *, in_batch: bool = False) -> tuple[PutMessageResult, ...]:
        """Append all messages or none, at one instant; listeners are called after the last one.

        Args:
            messages: in order.
            in_batch: whether they are those of a batch, even of one message.

        Mirrors:
            `org.apache.rocketmq.store.DefaultMessageStore#putMessages`.
        """
        return self._put_all(messages, self._levels.put_aside, in_batch=in_batch)

    def _put_all(
        self, messages: Sequence[Message], put_aside: Callable[[Message], Message], *, in_batch: bool = False
    ) -> tuple[PutMessageResult, ...]:
        broker = self._broker
        config = broker.config
        is_named_slave = config.broker_role is BrokerRole.SLAVE and not config.is_elected
        if broker.broker_id != MASTER_ID or broker.is_fenced or is_named_slave:
            return tuple(PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE) for _ in messages)
        refusal = None if self._room is None else self._room.before_append()
        if refusal is not None:
            return tuple(PutMessageResult(refusal) for _ in messages)
        now_ms = broker.host.clock.now_ms()
        admitted: list[Message] = []
        for message in messages:
            found = message if ASKING.isdisjoint(message.properties) else self._admit(message, now_ms)
            if isinstance(found, PutMessageStatus):
                return tuple(PutMessageResult(found) for _ in messages)
            admitted.append(put_aside(found))
        results: list[PutMessageResult] = []
        grown: dict[tuple[str, int], int] = {}
        for message in admitted:
            stored = self._append(message, now_ms, in_batch=in_batch)
            results.append(new_tuple(PutMessageResult, (PutMessageStatus.PUT_OK, stored)))
            queue = stored.topic, stored.queue_id
            grown[queue] = grown.get(queue, 0) + 1
        broker.flush.on_appended()
        for (topic, queue_id), count in grown.items():
            broker.stats.inc(StatsName.TOPIC_PUT_NUMS, topic, count, now_ms)
            self._arrivals.notify(topic, queue_id)
            self._on_stored()
        if broker.store.multi_dispatch is not None:
            self._notify_further(results)
        return tuple(results)

    def _notify_further(self, results: Sequence[PutMessageResult]) -> None:
        """Notify of the queues that have messages besides their own.

        Mirrors:
            `DefaultMessageStore.ReputMessageService#notifyMessageArrive4MultiQueue`.
        """
        for result in results:
            if result.stored is not None:
                for topic, queue_id in self._broker.store.queues_of(result.stored)[1:]:
                    self._arrivals.notify(topic, queue_id)

    def _admit(self, message: Message, now_ms: int) -> Message | PutMessageStatus:
        """A timed message as it is stored, or why it is not."""
        wheel, draw = self._wheel, self._chance.randrange

        def is_reject(slot_ms: int) -> bool:
            return wheel is not None and wheel.is_reject(slot_ms, draw)

        return admit_timer_message(message, now_ms, self._broker.config, is_reject)

    def _append(self, message: Message, now_ms: int, *, in_batch: bool) -> Message:
        broker = self._broker
        stored = broker.store.put_message(message, now_ms=now_ms, in_batch=in_batch)
        topic, queue_id, offset = stored.topic, stored.queue_id, stored.queue_offset
        place = (topic, broker.broker_name, queue_id, offset)
        tags, key = stored.properties.get(TAGS, ""), stored.properties.get(KEYS, "")
        fields = (MessageEvent.STORED, "", *place, "", stored.store_timestamp, tags, key)
        broker.host.record(new_tuple(MessageRecord, fields))
        if UNIQ_KEY in stored.properties:
            name = broker.broker_name
            reported = half_record(stored, name) if topic == HALF_TOPIC else wait_of(stored, name, self._levels)
            if reported is not None:
                broker.host.record(reported)
        if ORIGIN_MESSAGE_ID in stored.properties:
            copied = copy_record(stored, broker.broker_name, broker.store.look_message)
            if copied is not None:
                broker.host.record(copied)
        return stored


def _as_it_is(message: Message) -> Message:
    return message


class Flush:
    """The wait of one sender for the disk; it begins when the message has been written.

    Mirrors:
        `org.apache.rocketmq.store.CommitLog.GroupCommitRequest`.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._host = host = broker.host
        self._busy_ms = busy_ms = broker.flush.wait_ms
        self._timeout_ms = broker.config.sync_flush_timeout
        self.at_once = not busy_ms
        """Everything is on the disk already, or need not be: only a slow disk causes a wait, with SYNC_FLUSH."""
        self._begin_ns = 0 if self.at_once else host.clock.monotonic_ns()

    async def wait(self) -> bool:
        """Wait until the message is on the disk or the time is up; returns whether it was in time."""
        if not self.at_once:
            wait_ns = int(min(self._busy_ms, self._timeout_ms) * NS_PER_MS)
            await self._host.sleep_until_ns(self._begin_ns + wait_ns)
        return self._busy_ms <= self._timeout_ms
