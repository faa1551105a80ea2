"""Reviving what was popped and not acknowledged: one pass over a queue of the revive topic.

A pass reads check points and acknowledgements, sets bits, and then handles the check points in the order of the log,
as far as the scan has seen what was due two seconds behind them.

Mirrors:
    `org.apache.rocketmq.broker.processor.PopReviveService`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from nodes.broker.tables.pop.check_point import (
    ACK_TAG,
    ACK_TIME_INTERVAL_MS,
    BATCH_ACK_TAG,
    CK_TAG,
    AckMsg,
    PopCheckPoint,
    ack_from_json,
    batch_ack_from_json,
    check_point_from_json,
    set_bit,
)
from nodes.protocol.model import RETRY_TOPIC_PREFIX, Message
from nodes.protocol.names import build_pop_retry_topic, parse_normal_topic
from nodes.protocol.properties import FIRST_POP_TIME
from nodes.values import frozen

REVIVE_BATCH = 32
"""Records read at a time."""
IDLE_SLEEP_MS = 100
DONE_AFTER_MS = ACK_TIME_INTERVAL_MS + 1000
"""How far behind a check point the scan must have come before it is handled."""
UNFINISHED_MAX = 3
CK_REWRITE_INTERVALS_S = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
_IDLE_SLEEPS_MS = 4000
_END_TIME_LAG_MS = 3000
_OVERDUE_MS = 30_000


@frozen
class ReviveRecord:
    """A message of the revive topic."""

    tag: str | None
    body: str
    queue_offset: int
    deliver_time_ms: int


@frozen
class ReviveOptions:
    """Options of the broker under their names."""

    broker_name: str
    revive_scan_time_ms: int = 10_000
    revive_ack_wait_ms: int = 180_000
    enable_skip_long_awaiting_ack: bool = False


class ReviveScan:
    """What one pass has read.

    Args:
        old_offset: of the last record that an earlier pass has handled.
        now_ms: when the pass begins.
        options: of the broker.
    """

    def __init__(self, old_offset: int, now_ms: int, options: ReviveOptions) -> None:
        self._options = options
        self._started_ms = now_ms
        self._first_revive_ms = 0
        self._idle_ms = 0
        self._found: dict[str, PopCheckPoint] = {}
        self._mocks: dict[str, PopCheckPoint] = {}
        self.old_offset = old_offset
        self.offset = old_offset + 1
        """The next record to read."""
        self.end_time_ms = 0
        """The latest time at which a record was due; 0: none was read."""

    @property
    def check_points(self) -> Mapping[str, PopCheckPoint]:
        """Merge key -> check point; one that stands for an acknowledgement alone replaces a real one."""
        return self._found | self._mocks

    def nothing_read(self, now_ms: int, *, timer_behind: bool) -> bool:
        """There is no record; True: the scan ends, False: it sleeps for `IDLE_SLEEP_MS` and looks again.

        Args:
            timer_behind: whether records that are due may still be on their way, so that time stands still.
        """
        if self.end_time_ms and now_ms - self.end_time_ms > _END_TIME_LAG_MS and not timer_behind:
            self.end_time_ms = now_ms
        return self.end_time_ms - self._first_revive_ms > DONE_AFTER_MS

    def idle_sleeps(self, now_ms: int) -> int:
        """After how many sleeps a look may find something, if no record comes by then."""
        left = (_IDLE_SLEEPS_MS - self._idle_ms) // IDLE_SLEEP_MS + 1
        if not self.end_time_ms:
            return left
        moves_in_ms = self.end_time_ms + _END_TIME_LAG_MS + 1 - now_ms
        return max(1, min(left, -(-moves_in_ms // IDLE_SLEEP_MS)))

    def slept(self, sleeps: int) -> None:
        """Note sleeps without a record."""
        self._idle_ms += sleeps * IDLE_SLEEP_MS

    @property
    def is_idle_too_long(self) -> bool:
        """Whether it has slept often enough; asked after the sleep."""
        return self._idle_ms > _IDLE_SLEEPS_MS

    def read(self, records: Sequence[ReviveRecord], now_ms: int) -> bool:
        """Take records; False: the scan lasts too long, so they are left for the next one.

        Raises:
            ValueError: a body is no JSON.
        """
        self._idle_ms = 0
        if now_ms - self._started_ms > self._options.revive_scan_time_ms:
            return False
        for record in records:
            if self._take(record, now_ms):
                self.end_time_ms = max(self.end_time_ms, record.deliver_time_ms)
        self.offset += len(records)
        return True

    def _take(self, record: ReviveRecord, now_ms: int) -> bool:
        """Whether the time of the record counts: not that of an acknowledgement whose check point is unknown."""
        if record.tag == CK_TAG:
            return self._take_check_point(record)
        if record.tag == ACK_TAG:
            return self._take_ack(ack_from_json(record.body), record, now_ms)
        if record.tag == BATCH_ACK_TAG:
            return self._take_ack(batch_ack_from_json(record.body), record, now_ms)
        return True

    def _take_check_point(self, record: ReviveRecord) -> bool:
        read = check_point_from_json(record.body)
        if not read.topic or not read.cid:
            return False
        self._found[read.merge_key] = read.changed(read.bit_map, record.queue_offset)
        self._first_revive_ms = self._first_revive_ms or read.revive_time_ms
        return True

    def _take_ack(self, ack: AckMsg, record: ReviveRecord, now_ms: int) -> bool:
        key = ack.merge_key(self._options.broker_name)
        found = self._found.get(key)
        if found is None:
            return self._miss(key, ack, record, now_ms)
        for offset in ack.ack_offsets:
            index = found.index_of_ack(offset)
            if index >= 0:
                found = found.changed(set_bit(found.bit_map, index), found.revive_offset)
        self._found[key] = found
        return True

    def _miss(self, key: str, ack: AckMsg, record: ReviveRecord, now_ms: int) -> bool:
        if not self._options.enable_skip_long_awaiting_ack:
            return False
        if now_ms - record.deliver_time_ms > self._options.revive_ack_wait_ms:
            mock = PopCheckPoint(
                ack.topic, ack.consumer_group, ack.queue_id, ack.start_offset, ack.pop_time_ms, 0, 0, ack.broker_name
            )
            self._mocks[key] = attrs.evolve(mock, revive_offset=record.queue_offset)
            self._first_revive_ms = self._first_revive_ms or mock.revive_time_ms
        return True

    def due(
        self, topic_exists: Callable[[str], bool], group_exists: Callable[[str], bool]
    ) -> Iterator[tuple[PopCheckPoint, bool]]:
        """The check points to handle, in the order of the log, up to the first whose time has not come.

        Returns:
            Check point, and whether to revive it: one of a topic or group that is unknown here is passed over, and
            its messages are lost.
        """
        for ck in sorted(self.check_points.values(), key=lambda found: found.revive_offset):
            if self.end_time_ms - ck.revive_time_ms <= DONE_AFTER_MS:
                return
            yield ck, topic_exists(parse_normal_topic(ck.topic, ck.cid)) and group_exists(ck.cid)


def is_of_use(tag: str | None, *, enable_skip_long_awaiting_ack: bool) -> bool:
    """Whether a record may make a pass do anything, if no check point stands before it."""
    return tag == CK_TAG or (enable_skip_long_awaiting_ack and tag in (ACK_TAG, BATCH_ACK_TAG))


def unacked_offsets(ck: PopCheckPoint) -> tuple[int, ...]:
    """The messages to copy to the retry topic."""
    return tuple(ck.ack_offset_by_index(index) for index in range(ck.num) if not ck.is_acked(index))


def revived_message(ck: PopCheckPoint, message: Message, *, v2: bool) -> Message:
    """The copy of a message for the retry topic, queue 0.

    Args:
        v2: whether retry topics have names of the new form.
    """
    is_retry = ck.topic.startswith(RETRY_TOPIC_PREFIX)
    properties = dict(message.properties)
    if message.reconsume_times == 0 or FIRST_POP_TIME not in properties:
        properties[FIRST_POP_TIME] = str(ck.pop_time_ms)
    return message._replace(
        topic=ck.topic if is_retry else build_pop_retry_topic(ck.topic, ck.cid, v2=v2),
        queue_id=0,
        reconsume_times=message.reconsume_times + 1,
        properties=properties,
    )


def re_put_ck(ck: PopCheckPoint, offset: int, now_ms: int, *, skip_at_max: bool = False) -> PopCheckPoint | None:
    """The check point to write again for one message that could not be revived; None: it is given up.

    Its invisible time grows by a step of the table, so the steps add up from the instant of the pop on.

    Args:
        skip_at_max: give up after the whole table, `skipWhenCKRePutReachMaxTimes`.
    """
    times = ck.parse_re_put_times()
    if times >= len(CK_REWRITE_INTERVALS_S) and skip_at_max:
        return None
    added_s = CK_REWRITE_INTERVALS_S[min(times, len(CK_REWRITE_INTERVALS_S) - 1)] if ck.revive_time_ms <= now_ms else 0
    return attrs.evolve(
        ck,
        start_offset=offset,
        invisible_time_ms=ck.invisible_time_ms + added_s * 1000,
        num=1,
        bit_map=0,
        revive_offset=0,
        queue_offset_diff=(0,),
        re_put_times=str(times + 1),
    )


@frozen
class _Unfinished:
    ck: PopCheckPoint
    begun_ms: int
    done: bool = False


class InflightRevives:
    """Check points whose messages are being fetched and copied, in the order of their start offsets.

    Two with the same start offset share an entry, also those of different queues.
    """

    def __init__(self) -> None:
        self._entries: dict[int, _Unfinished] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def begin(self, ck: PopCheckPoint, now_ms: int) -> None:
        """The first message of a check point is fetched; an entry that is shared keeps its check point."""
        known = self._entries.get(ck.start_offset)
        self._entries[ck.start_offset] = _Unfinished(ck if known is None else known.ck, now_ms)

    def complete(self, ck: PopCheckPoint) -> tuple[int, ...]:
        """All its messages are handled.

        Returns:
            Offsets of the revive topic to commit, one after the other: the last one need not be the largest.
        """
        found = self._entries.get(ck.start_offset)
        if found is not None:
            self._entries[ck.start_offset] = _Unfinished(found.ck, found.begun_ms, done=True)
        commits = []
        for start_offset in sorted(self._entries):
            if not self._entries[start_offset].done:
                break
            commits.append(self._entries.pop(start_offset).ck.revive_offset)
        return tuple(commits)

    def overdue(self, now_ms: int) -> tuple[PopCheckPoint, int] | None:
        """The first check point, if it takes longer than 30 s; it is forgotten, and the caller writes it again once.

        Returns:
            Check point, and what RocketMQ writes as the offset of its message: the time at which it was begun.
        """
        first = self._entries[min(self._entries)]
        if first.done or now_ms - first.begun_ms <= _OVERDUE_MS:
            return None
        del self._entries[first.ck.start_offset]
        return first.ck, first.begun_ms
