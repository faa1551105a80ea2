"""The timer of one broker: it takes messages from the timer's topic into the wheel, and releases them slot by slot.

RocketMQ's threads move the two times of the wheel on in every unit, also where nothing waits. Here they are moved on
when somebody looks (`catch_up`): over empty slots at once, and never past a slot that holds messages.

Mirrors:
    `org.apache.rocketmq.store.timer.TimerMessageStore`.
"""

from collections.abc import Callable

import attrs

from nodes.broker.tables.store.commit_log import size_bytes
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.timer.delay_offsets import TimerCheckPoint, TimerProgress
from nodes.broker.tables.timer.timer_log import TimerLog, TimerMetrics, TimerRecord
from nodes.broker.tables.timer.timer_messages import (
    MAGIC_DEFAULT,
    MAGIC_DELETE,
    MAGIC_ROLL,
    NEVER_ENQUEUED,
    TIMER_TOPIC,
    build_delete_key,
    is_congested,
    place_in_wheel,
)
from nodes.broker.tables.timer.timer_wheel import DAY_SLOTS, NO_POSITION, Slot, TimerWheel
from nodes.config.timer import TimerConfig
from nodes.protocol.model import Message
from nodes.protocol.properties import (
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_DEL_UNIQKEY,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
    UNIQ_KEY,
)
from nodes.protocol.widths import INT64_MAX, int64_of
from nodes.values import frozen

_BLANK_SLOTS = 60
"""The wheel never holds a message for this part of its round."""
_REJECT_PARTS = 1000
_ROLL_WINDOW_MIN = 2


@frozen
class TimerRequest:
    """A message of the timer's topic on its way into the wheel, or out of it."""

    message: Message
    slot_ms: int
    enqueue_time_ms: int
    magic: int = MAGIC_DEFAULT

    @property
    def needs_roll(self) -> bool:
        """Whether it is stored in the timer's topic once more, because its time is still far away."""
        return bool(self.magic & MAGIC_ROLL)

    @property
    def is_dropped_delete(self) -> bool:
        """Whether it is a delete that came too late for its target: no consumer consumes it."""
        return not self.needs_roll and TIMER_DEL_UNIQKEY in self.message.properties


class TimerStore:
    """Wheel, log, counts and progress.

    Args:
        store: the messages of the broker.
        progress: what other brokers copy.
        options: the options of this moment; precision and size of the files are those of the start.
        log: content of the file of the timer log.
        is_master: whether the broker is a master now.
    """

    def __init__(
        self,
        store: MessageStore,
        progress: TimerProgress,
        options: Callable[[], TimerConfig],
        log: bytearray,
        is_master: Callable[[], bool],
        *,
        now_ms: int,
    ) -> None:
        self._store = store
        self.progress = progress
        """What other brokers copy."""
        self._options = options
        self.precision_ms = options().precision_ms
        """Unit of the wheel; a changed option counts after the next start."""
        self._is_master = is_master
        self._was_master = is_master()
        self.wheel = TimerWheel(precision_ms=self.precision_ms)
        self._log = TimerLog(log, file_size=options().mapped_file_size_timer_log)
        self.metrics = TimerMetrics(now_ms=now_ms)
        self.curr_read_time_ms = 0
        """The slot that is released next."""
        self.curr_write_time_ms = 0
        """The present, as the wheel has it: slots before it may be released."""
        self.curr_queue_offset = 0
        """Of the next message of the timer's topic to take."""
        self.commit_queue_offset = 0
        """Messages before this one are in the wheel, or delivered."""
        self.is_enqueuing = False
        """Whether messages are between the topic and the wheel: then the present stands still."""
        self._last_commit = (0, 0)
        """Read time and offset of the last check point with a version of its own."""
        self._prepared_ms = now_ms
        """When the check point was last written, in steps of the flush interval."""
        self._lost_deletes: dict[str, Message] = {}
        """Delete key -> the delete, of the slot that was released last."""
        self._in_round = True

    @property
    def config(self) -> TimerConfig:
        """The options of this moment."""
        return self._options()

    # --- start, and progress --------------------------------------------------------

    def recover(self, now_ms: int) -> None:
        """Rebuild the wheel from the log of an earlier process, and go on from its check point.

        A longer time than the wheel covers is skipped, with the messages in it.
        """
        for position, record in self._log.load():
            self._link(record, position, self.wheel.get_slot(record.slot_ms))
        point = self.progress.check_point
        newest = None if self._log.last_pos is None else self._log.record(self._log.last_pos)
        message = None if newest is None else self._store.look_message(newest.offset)
        taken = point.last_timer_queue_offset if message is None else message.queue_offset + 1
        taken = min(taken, point.master_timer_queue_offset)
        low, high = self._store.min_offset(TIMER_TOPIC, 0), self._store.max_offset(TIMER_TOPIC, 0)
        self.curr_queue_offset = self.commit_queue_offset = max(low, min(taken, high))
        earliest_ms = self._format_time(now_ms) - (DAY_SLOTS - _BLANK_SLOTS) * self.precision_ms
        self.curr_read_time_ms = max(point.last_read_time_ms, earliest_ms)
        self.move_write_time(now_ms)
        self.prepare_check_point(now_ms)

    @property
    def has_messages(self) -> bool:
        """Whether the timer's topic has ever had a message; before that, no file is written, and no version made."""
        return self._store.max_offset(TIMER_TOPIC, 0) > 0

    def change_dequeue(self, *, running: bool) -> None:
        """Begin to deliver messages, or stop; either way from the check point on."""
        self.sync_last_read_time()
        self.progress.should_running_dequeue = running

    def sync_last_read_time(self) -> None:
        """Take the read time from the check point."""
        self.curr_read_time_ms = self.progress.check_point.last_read_time_ms

    def dequeue_behind_ms(self, now_ms: int) -> int:
        """How long ago the slot was due that is released next, which is less than a unit where nothing is late."""
        self.catch_up(now_ms)
        return now_ms - self.curr_read_time_ms

    @property
    def enqueue_behind_messages(self) -> int:
        """Messages of the timer's topic that are not in the wheel."""
        return self._store.max_offset(TIMER_TOPIC, 0) - self.curr_queue_offset

    @property
    def all_congest_num(self) -> int:
        """Messages in the wheel."""
        return self.wheel.get_all_num(self.curr_read_time_ms)

    def move_write_time(self, now_ms: int) -> None:
        """Move the present on; it never goes back."""
        self.curr_write_time_ms = max(self.curr_write_time_ms, self._format_time(now_ms))

    def catch_up(self, now_ms: int) -> None:
        """Do what RocketMQ's threads have done by now without anything to deliver."""
        if not self.is_enqueuing:
            self.commit(self.curr_queue_offset, now_ms)
        if not self.progress.should_running_dequeue:
            self.sync_last_read_time()
        elif self.curr_read_time_ms < self.curr_write_time_ms and not self._options().timer_stop_dequeue:
            next_ms = self.wheel.next_time(self.curr_read_time_ms)
            end_ms = self.curr_write_time_ms if next_ms is None else min(next_ms, self.curr_write_time_ms)
            self.curr_read_time_ms = max(self.curr_read_time_ms, end_ms)

    def catch_up_check_point(self, now_ms: int, *, flushes_min: int = 0) -> TimerCheckPoint:
        """The check point as it was last written, which happens once in each flush interval.

        Before the first message its read time moves on, for slaves follow it, and nothing else.

        Args:
            flushes_min: how often it was written at least, whatever the clock says.
        """
        passed = max(0, (now_ms - self._prepared_ms) // self.config.timer_flush_interval_ms)
        flushes = max(passed, flushes_min)
        if flushes:
            self.catch_up(now_ms)
            if self.has_messages:
                self.prepare_check_point(now_ms, flushes=flushes)
            else:
                self.progress.move(self.curr_read_time_ms)
        self._prepared_ms += passed * self.config.timer_flush_interval_ms
        return self.progress.check_point

    def prepare_check_point(self, now_ms: int, *, flushes: int = 1) -> None:
        """Bring the check point up to date; one that delivers makes a version of each change.

        Args:
            flushes: how often RocketMQ has done this since the last time; each of them has found another read time.
        """
        point, commit = self.progress.check_point, (self.curr_read_time_ms, self.commit_queue_offset)
        master_offset, version = point.master_timer_queue_offset, point.data_version
        if self.progress.should_running_dequeue:
            master_offset = self.commit_queue_offset
            if commit != self._last_commit:
                moved = (self.curr_read_time_ms - self._last_commit[0]) // self.precision_ms
                version = version.next_version(now_ms)
                more = max(0, min(flushes, moved) - 1)
                version = attrs.evolve(version, counter=(version.counter or 0) + more)
                self._last_commit = commit
        self.progress.check_point = attrs.evolve(
            point,
            last_read_time_ms=self.curr_read_time_ms,
            last_timer_log_flush_pos=self._log.end,
            last_timer_queue_offset=min(self.commit_queue_offset, master_offset),
            master_timer_queue_offset=master_offset,
            data_version=version,
        )

    # --- from the topic into the wheel ----------------------------------------------

    def is_reject(self, slot_ms: int, draw: Callable[[int], int]) -> bool:
        """Whether the slot of an instant takes no more messages.

        Args:
            draw: random number from 0 to below its argument.
        """
        num, maximum = self.wheel.get_num(slot_ms), self._options().timer_congest_num_each_slot
        return num > maximum and is_congested(num, maximum, draw(_REJECT_PARTS))

    @property
    def may_enqueue(self) -> bool:
        """Whether there is a message that the wheel may take."""
        behind = self.curr_queue_offset < self._store.max_offset(TIMER_TOPIC, 0)
        return behind and self.curr_queue_offset < self._enqueue_end()

    def enqueue(self, now_ms: int, count_max: int) -> tuple[TimerRequest, ...]:
        """Take messages from the timer's topic, which are to be put into the wheel.

        A follower takes one message more than its master has, and does not count it: so it takes that one twice.
        """
        options, end = self._options(), self._enqueue_end()
        if options.timer_stop_enqueue or self.curr_queue_offset >= end:
            return ()
        self.curr_queue_offset = max(self.curr_queue_offset, self._store.min_offset(TIMER_TOPIC, 0))
        taken: list[TimerRequest] = []
        for message in self._store.messages(TIMER_TOPIC, 0, self.curr_queue_offset, count_max):
            try:
                taken.append(_request(message, now_ms))
            except (KeyError, ValueError):
                if not options.timer_skip_unknown_error:
                    break  # it is in the way of all others
            if self.curr_queue_offset >= end:
                break
            self.curr_queue_offset = message.queue_offset + 1
        return tuple(taken)

    def put_into_wheel(self, request: TimerRequest, now_ms: int) -> TimerRequest | None:
        """Put a message into its slot; if that was released already, it is returned, to be delivered at once."""
        if self.progress.should_running_dequeue and request.slot_ms < self.curr_write_time_ms:
            return attrs.evolve(request, enqueue_time_ms=NEVER_ENQUEUED)
        message = request.message
        place = place_in_wheel(
            request.slot_ms,
            self.curr_write_time_ms,
            is_delete=TIMER_DEL_UNIQKEY in message.properties,
            roll_window_slots=self._roll_window_slots,
            precision_ms=self.precision_ms,
        )
        slot = self.wheel.get_slot(place.slot_ms)
        written = (self.curr_write_time_ms, place.slot_ms, message.commit_log_offset, size_bytes(message))
        record = TimerRecord(slot.last_pos, place.magic, *written)
        self._link(record, self._log.append(record), slot)
        self._count(message, place.delta, now_ms)
        return None

    def commit(self, offset: int, now_ms: int) -> None:
        """Note that all messages before an offset are in the wheel or delivered, and move the present on."""
        self.commit_queue_offset = offset
        if now_ms - self.curr_write_time_ms >= self.precision_ms:
            self.move_write_time(now_ms)

    # --- out of the wheel -----------------------------------------------------------

    @property
    def next_slot_ms(self) -> int | None:
        """The next slot with messages."""
        return self.wheel.next_time(self.curr_read_time_ms)

    def release(self, now_ms: int) -> tuple[TimerRequest, ...] | None:
        """The messages of the slot that is due, without those that are deleted.

        Returns:
            None: no slot is due.
        """
        self.catch_up(now_ms)
        if self._options().timer_stop_dequeue or not self.progress.should_running_dequeue:
            return None
        slot = self.wheel.get_slot(self.curr_read_time_ms)
        if self.curr_read_time_ms >= self.curr_write_time_ms or slot.time_ms == NO_POSITION:
            return None
        deletes: list[TimerRequest] = []
        others: list[TimerRequest] = []
        position = slot.last_pos
        while position != NO_POSITION:
            record = self._log.record(position)
            position = record.prev_pos
            message = self._store.look_message(record.offset)
            if message is None:
                continue
            request = TimerRequest(message, record.slot_ms, record.write_time_ms, record.magic)
            is_delete = record.magic & MAGIC_DELETE and not request.needs_roll
            (deletes if is_delete else others).append(request)
        keys = self._delete_keys(deletes, now_ms)
        return tuple(request for request in reversed(others) if not self._is_deleted(request, keys))

    def move_read_time(self) -> None:
        """Go on to the next slot."""
        self.curr_read_time_ms += self.precision_ms

    def take_out(self, request: TimerRequest, now_ms: int) -> Message:
        """A message as it is put into its own topic, or once more into the timer's topic.

        Mirrors:
            `TimerMessageStore#convert`, `#convertMessage`.
        """
        message = request.message
        if request.enqueue_time_ms != NEVER_ENQUEUED:
            self._count(message, -1, now_ms)
        properties = {**message.properties, TIMER_ENQUEUE_MS: str(request.enqueue_time_ms)}
        if request.needs_roll:
            properties[TIMER_ROLL_TIMES] = str(int(properties.get(TIMER_ROLL_TIMES, 0)) + 1)
        properties[TIMER_DEQUEUE_MS] = str(now_ms)
        if request.needs_roll:
            return message._replace(properties=properties)
        topic, queue_id = properties.pop(REAL_TOPIC), int(properties.pop(REAL_QUEUE_ID))
        return message._replace(topic=topic, queue_id=queue_id, properties=properties)

    # --- parts ------------------------------------------------------------------------

    @property
    def _roll_window_slots(self) -> int:
        maximum, window = DAY_SLOTS - _BLANK_SLOTS, self._options().timer_roll_window_slot
        return window if _ROLL_WINDOW_MIN <= window <= maximum else maximum

    def _format_time(self, time_ms: int) -> int:
        return time_ms // self.precision_ms * self.precision_ms

    def _enqueue_end(self) -> int:
        """The first offset of the timer's topic that is not taken: a follower takes what its master has taken."""
        is_master = self._is_master()
        if self._was_master is not is_master:
            self._change_role(is_master=is_master)
        follows = not self.progress.should_running_dequeue and not is_master
        return self.progress.check_point.master_timer_queue_offset if follows else INT64_MAX

    def _change_role(self, *, is_master: bool) -> None:
        """A slave that has become a master takes what its master had not yet, and reads on from the check point."""
        self._was_master = is_master
        if is_master:
            masters = self.progress.check_point.master_timer_queue_offset
            self.curr_queue_offset = self.commit_queue_offset = min(self.curr_queue_offset, masters)
            self.prepare_check_point(self._prepared_ms)
            self.sync_last_read_time()

    def _link(self, record: TimerRecord, position: int, slot: Slot) -> None:
        """Make a record the newest one of its slot."""
        first = position if slot.first_pos == NO_POSITION else slot.first_pos
        delta = -1 if record.magic & MAGIC_DELETE else 1
        self.wheel.put_slot(record.slot_ms, first, position, slot.num + delta, slot.magic)

    def _count(self, message: Message, value: int, now_ms: int) -> None:
        if message.properties.get(TIMER_ENQUEUE_MS) != str(NEVER_ENQUEUED):
            self.metrics.add_and_get(message.properties[REAL_TOPIC], value, now_ms)

    def _delete_keys(self, deletes: list[TimerRequest], now_ms: int) -> dict[str, Message]:
        """The keys of the deletes of a slot; the first of them counts those of the slot before as never made.

        RocketMQ means to keep those that have found their target out of this, and does not find them by their keys.
        """
        keys: dict[str, Message] = {}
        for request in deletes:
            if not self._in_round:
                self._in_round = True
                for message in self._lost_deletes.values():
                    self._count(message, 1, now_ms)
                self._lost_deletes = {}
            key = request.message.properties.get(TIMER_DEL_UNIQKEY)
            if key is not None:
                keys[key] = self._lost_deletes[key] = request.message
        return keys

    def _is_deleted(self, request: TimerRequest, keys: dict[str, Message]) -> bool:
        self._in_round = False
        properties = request.message.properties
        return build_delete_key(properties[REAL_TOPIC], properties.get(UNIQ_KEY, "")) in keys


def _request(message: Message, now_ms: int) -> TimerRequest:
    """What is taken from the timer's topic.

    Raises:
        KeyError, ValueError: the message was not admitted by a broker.
    """
    properties = message.properties
    int64_of(properties[REAL_QUEUE_ID])
    if TIMER_ROLL_TIMES in properties:
        int64_of(properties[TIMER_ROLL_TIMES])
    if REAL_TOPIC not in properties:
        raise KeyError(REAL_TOPIC)
    return TimerRequest(message, int64_of(properties[TIMER_OUT_MS]), now_ms)
