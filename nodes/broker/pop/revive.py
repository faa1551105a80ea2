"""Reviving: the threads that read the revive topic, and copy messages that no consumer acknowledged to retry topics."""

from collections.abc import Callable

from nodes.beliefs import MessageEvent
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.pop.records import ReviveLog, record_pop
from nodes.broker.pop.revive_message import MessageReviver
from nodes.broker.tables.pop.check_point import REVIVE_GROUP, PopCheckPoint, PopOutcome
from nodes.broker.tables.pop.revive import (
    IDLE_SLEEP_MS,
    REVIVE_BATCH,
    UNFINISHED_MAX,
    InflightRevives,
    ReviveOptions,
    ReviveRecord,
    ReviveScan,
    is_of_use,
    unacked_offsets,
)
from nodes.broker.tables.pop.revive_cadence import ReviveCadence
from nodes.cause import cause
from nodes.protocol.model import MASTER_ID, Message
from nodes.protocol.properties import TAGS, TIMER_DELIVER_MS
from nodes.threads import WakeUp
from nodes.units import NS_PER_MS

_UNFINISHED_WAIT_MS = 100


class PopReviveService:
    """One queue of the revive topic.

    While a pass would find nothing to do there is neither task nor timer; the task that a record starts looks when
    RocketMQ's thread would look. A pass that waits for acknowledgements sleeps until a look may find something.

    Args:
        reviver: copies messages, and writes check points again.
        timer_behind: whether records that are due may still be on their way.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PopReviveService`.

    Emits:
        COMMITTED for the offset of the revive group, LOST for messages whose topic or group is unknown here.
    """

    def __init__(
        self,
        broker: BrokerContext,
        log: ReviveLog,
        offsets: OffsetManage,
        reviver: MessageReviver,
        queue_id: int,
        timer_behind: Callable[[], bool],
    ) -> None:
        config = broker.config
        self._broker = broker
        self._topic = log.topic
        self._offsets = offsets
        self._reviver = reviver
        self._queue_id = queue_id
        self._timer_behind = timer_behind
        self._options = ReviveOptions(
            broker.broker_name,
            config.revive_scan_time,
            config.revive_ack_wait_ms,
            config.enable_skip_long_awaiting_ack,
        )
        self.is_running = broker.broker_id == MASTER_ID
        """Whether it may revive; at first the configured id decides, also for a master that is isolated."""
        self.in_flight = InflightRevives()
        """Check points whose messages are being fetched."""
        self.revive_offset = -1
        """Of the last record that was handled, as far as this process knows."""
        self._cadence = self._new_cadence()
        self._arrived = WakeUp(broker.host)
        self._busy = False
        self._seen = 0
        self._is_of_use = False
        """Whether a record from the next pass on may make it do something."""

    def _new_cadence(self) -> ReviveCadence:
        config = self._broker.config
        times = (config.revive_interval, config.revive_max_slow, config.revive_scan_time)
        return ReviveCadence(self._broker.host.clock.monotonic_ns(), *times, running=self.is_running)

    def start(self) -> None:
        """Start the thread: it has a task only if an earlier process has left something to do."""
        self._cadence = self._new_cadence()
        self._look_for_use()
        self._go_on()

    def change(self, *, running: bool) -> None:
        """Allow to revive, or forbid it."""
        if running is self.is_running:
            return
        self.is_running = running
        if not self._busy:
            self._cadence.change(self._broker.host.clock.monotonic_ns(), running=running)
            self._look_for_use()
            self._go_on()

    def on_message_arrived(self) -> None:
        """A record was stored or replicated."""
        if self._busy:
            self._arrived.wake()
            return
        self._look_at_new_records()
        if self._is_of_use:
            self._go_on()
        else:
            self._cadence.on_record(self._broker.host.clock.monotonic_ns())

    # --- rounds ---------------------------------------------------------------------

    def _go_on(self) -> None:
        if self._is_of_use and self.is_running and not self._busy:
            self._busy = True
            self._broker.host.start_soon(self._run, name=f"PopReviveService_{self._queue_id}")

    async def _run(self) -> None:
        host = self._broker.host
        while self._may_do_something():
            await host.sleep_until_ns(self._cadence.next_look_ns(host.clock.monotonic_ns()))
            if not self._may_do_something():
                break
            host.begin_cause(f"PopReviveService_{self._queue_id}")
            found = await self._pass_or_log()
            if self.is_running:
                self._cadence.pass_ended(host.clock.monotonic_ns(), found=found)
            self._look_for_use()
        self._busy = False
        if not self.is_running:
            self._cadence.broken_off(host.clock.monotonic_ns())

    def _may_do_something(self) -> bool:
        return self.is_running and self._is_of_use

    async def _pass_or_log(self) -> bool:
        """A pass; RocketMQ's thread survives every error, and finds the same record again in its next pass."""
        try:
            return bool((await self.revive_pass()).check_points) and self.is_running
        except Exception as error:  # noqa: BLE001 - as RocketMQ does
            self._broker.host.log.warning("reviveMessage failed", queue=self._queue_id, error=str(error))
            return True

    async def revive_pass(self) -> ReviveScan:
        """Read check points and acknowledgements, then handle the check points that are due."""
        scan = await self._scan()
        if self.is_running:
            await self._merge_and_revive(scan)
        return scan

    def _look_for_use(self) -> None:
        """See whether the next pass may do something."""
        committed = self._committed
        self._seen, self._is_of_use = max(self.revive_offset, committed) + 1, False
        low, high = self._bounds
        if high and not low <= self._seen <= high and committed != high - 1:
            self._is_of_use = True
        self._look_at_new_records()

    def _look_at_new_records(self) -> None:
        skips = self._options.enable_skip_long_awaiting_ack
        store, seen = self._broker.store, self._seen
        high = store.max_offset(self._topic, self._queue_id)
        if high <= seen:
            return
        self._seen = high
        for record in store.messages(self._topic, self._queue_id, seen, high - seen):
            if is_of_use(record.properties.get(TAGS), enable_skip_long_awaiting_ack=skips):
                self._is_of_use = True

    @property
    def _bounds(self) -> tuple[int, int]:
        store = self._broker.store
        return store.min_offset(self._topic, self._queue_id), store.max_offset(self._topic, self._queue_id)

    @property
    def _committed(self) -> int:
        return self._offsets.table.query_offset(REVIVE_GROUP, self._topic, self._queue_id)

    @property
    def _next_offset(self) -> int:
        """Of the first record that a pass reads."""
        return max(self.revive_offset, self._committed) + 1

    # --- scan -----------------------------------------------------------------------

    async def _scan(self) -> ReviveScan:
        """Read records until there was nothing new for a while, or for too long."""
        now_ms = self._broker.host.clock.now_ms
        scan = ReviveScan(self._next_offset - 1, now_ms(), self._options)
        while self.is_running:
            records = self._records(scan.offset)
            if records:
                if not scan.read(records, now_ms()):
                    break
            elif scan.nothing_read(now_ms(), timer_behind=self._timer_behind()):
                break
            else:
                await self._idle(scan)
                if scan.is_idle_too_long:
                    break
        return scan

    async def _idle(self, scan: ReviveScan) -> None:
        """Sleep until a look may find something, or until the look after a record has come."""
        host = self._broker.host
        began_ns, look_ns = host.clock.monotonic_ns(), IDLE_SLEEP_MS * NS_PER_MS
        sleeps = scan.idle_sleeps(host.clock.now_ms())
        if await self._arrived.sleep_ms(sleeps * IDLE_SLEEP_MS):
            passed_ns = host.clock.monotonic_ns() - began_ns
            sleeps = min(sleeps, max(1, -(-passed_ns // look_ns)))
            await host.sleep_until_ns(began_ns + sleeps * look_ns)
        scan.slept(sleeps)

    def _records(self, offset: int) -> list[ReviveRecord]:
        """Up to 32 records; an offset outside the queue is corrected for a later pass."""
        if offset == self._broker.store.max_offset(self._topic, self._queue_id):
            return []
        low, high = self._bounds
        if high and not low <= offset <= high:
            follows = self._broker.broker_id != MASTER_ID and not self._broker.config.offset_check_in_slave
            corrected = low if offset < low else high
            self._commit((offset if follows else corrected) - 1)
            return []
        return list(map(_record, self._broker.store.messages(self._topic, self._queue_id, offset, REVIVE_BATCH)))

    # --- merge ----------------------------------------------------------------------

    async def _merge_and_revive(self, scan: ReviveScan) -> None:
        broker, new_offset = self._broker, scan.old_offset
        for ck, is_known in scan.due(self._has_topic, self._has_group):
            if not self.is_running:
                break
            if is_known:
                await self._wait_for_unfinished()
                await self._revive(ck)
            else:
                for offset in unacked_offsets(ck):
                    unknown = PopOutcome.UNKNOWN
                    record_pop(broker, MessageEvent.LOST, ck, offset, self._queue_id, outcome=unknown)
            new_offset = ck.revive_offset
        if new_offset > scan.old_offset:
            if not self.is_running:
                return
            self._commit(new_offset)
        self.revive_offset = new_offset

    async def _wait_for_unfinished(self) -> None:
        """Wait until few enough check points are being handled; one that takes too long is rewritten, uselessly."""
        while len(self.in_flight) > UNFINISHED_MAX:
            await self._broker.host.sleep_ms(_UNFINISHED_WAIT_MS)
            overdue = self.in_flight.overdue(self._broker.host.clock.now_ms()) if len(self.in_flight) else None
            if overdue is not None:
                self._reviver.re_put(*overdue, self._queue_id)

    async def _revive(self, ck: PopCheckPoint) -> None:
        """Copy what is not acknowledged; messages of other brokers are fetched at the same time, and not waited for."""
        if not self.is_running:
            return
        self.in_flight.begin(ck, self._broker.host.clock.now_ms())
        offsets = unacked_offsets(ck)
        failed: dict[int, bool] = {}

        def done(offset: int, *, revived: bool) -> None:
            failed[offset] = not revived
            if len(failed) == len(offsets):
                self._finish(ck, [at for at in offsets if failed[at]])

        store = self._reviver.store(ck)
        for offset in offsets:
            if store is not None:
                done(offset, revived=await self._reviver.revive(ck, offset, self._queue_id, store))
                continue
            address = await self._reviver.address(ck)
            if address is None:
                done(offset, revived=False)
            else:
                begin = (ck, offset, address, done, cause.get())
                self._broker.host.start_soon(self._revive_foreign, *begin, name="reviveForeignMessage")
        if not offsets:
            self._finish(ck, [])

    async def _revive_foreign(
        self, ck: PopCheckPoint, offset: int, address: str, done: Callable[..., None], began: int
    ) -> None:
        cause.set(began)
        done(offset, revived=await self._reviver.revive_foreign(ck, offset, self._queue_id, address))

    def _finish(self, ck: PopCheckPoint, failed: list[int]) -> None:
        """Write check points again for what could not be revived; what this commits may be a smaller offset."""
        for offset in failed:
            self._reviver.re_put(ck, offset, self._queue_id)
        for offset in self.in_flight.complete(ck):
            self._commit(offset)

    def _commit(self, offset: int) -> None:
        self._offsets.commit(REVIVE_GROUP, self._topic, self._queue_id, offset, "")

    def _has_topic(self, topic: str) -> bool:
        return self._broker.topics.select_topic_config(topic) is not None

    def _has_group(self, group: str) -> bool:
        now_ms = self._broker.host.clock.now_ms()
        return self._broker.groups.find_subscription_group_config(group, now_ms=now_ms) is not None


class PopReviveServices:
    """All revive queues of a broker; only one member of a group revives.

    Mirrors:
        What `AckMessageProcessor` does for `PopReviveService`.
    """

    def __init__(self, services: tuple[PopReviveService, ...], topic: str) -> None:
        self.services = services
        self._topic = topic

    @property
    def is_running(self) -> bool:
        """Whether any of them may revive."""
        return any(service.is_running for service in self.services)

    def start(self) -> None:
        """Start all threads."""
        for service in self.services:
            service.start()

    def change(self, *, running: bool) -> None:
        """Allow all of them to revive, or forbid it."""
        for service in self.services:
            service.change(running=running)

    def on_message_arrived(self, queue_id: int) -> None:
        """A record was stored or replicated; anybody may send one to a queue that has no thread."""
        if 0 <= queue_id < len(self.services):
            self.services[queue_id].on_message_arrived()


def _record(message: Message) -> ReviveRecord:
    properties = message.properties
    deliver_ms = int(properties.get(TIMER_DELIVER_MS, 0))
    return ReviveRecord(properties.get(TAGS), message.body.decode(), message.queue_offset, deliver_ms)
