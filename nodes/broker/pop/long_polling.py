"""Held requests: what wakes them, and when their time is over."""

from collections.abc import Awaitable, Callable
from functools import partial

from nodes.broker.context import BrokerContext
from nodes.broker.tables.pop.polling import SCAN_INTERVAL_MS, PollingResult, PopLongPolling, PopPollingOptions
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol.command import Command
from nodes.protocol.headers_pop import NotificationRequestHeader, PopMessageRequestHeader
from nodes.protocol.model import Message
from nodes.protocol.names import build_pop_retry_topic
from nodes.rpc.server import Wake
from nodes.threads import ScanThread
from nodes.values import frozen

_RECOUNT_SCANS = 100
_CLEAN_INTERVAL_MS = 5 * 60 * 1000
_SPIN_MS = 1
"""How long RocketMQ takes, here, to carry a request out that is woken as soon as it is held."""

PollingHeader = PopMessageRequestHeader | NotificationRequestHeader


@frozen(eq=False)
class HeldRequest:
    """A request that found no message and is held."""

    channel: Channel
    request: Command
    header: PollingHeader
    """Of the request, with the time at which it arrived if the client did not say when it was born."""


class PopLongPollingService:
    """Holds pops or notifications of a broker, and carries them out again.

    RocketMQ's thread scans every 20 ms for requests whose time is over; here a timer waits for the scan that finds the
    next one. A request whose time is over is carried out once more, so it may still find messages.

    Args:
        broker: whose messages they wait for.
        carry_out: answers a request; None: it is held again.
        wake: gives a woken request to a thread; if no more may wait, it is never answered. None: it is carried out at
            once.
        notify_last: whether a message takes the request with the longest time left.

    Mirrors:
        `org.apache.rocketmq.broker.longpolling.PopLongPollingService`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        carry_out: Callable[[HeldRequest], Awaitable[Command | None]],
        wake: Wake | None = None,
        *,
        notify_last: bool = False,
    ) -> None:
        self._broker = broker
        self._wake = wake
        self._carry_out = carry_out
        config = broker.config
        options = PopPollingOptions(
            config.pop_polling_size, config.max_pop_polling_size, config.pop_long_polling_force_notify_interval
        )
        self._table: PopLongPolling[HeldRequest, Message] = PopLongPolling(
            options, lambda held: not held.channel.closed, notify_last=notify_last
        )
        self._thread = ScanThread(broker.host, "PopLongPollingService", SCAN_INTERVAL_MS, self._scan)
        self._recounted = 0
        self._cleaned_ms = 0
        self._checked: dict[tuple[str, int], int] = {}
        self._stopped = False
        self.is_used = False
        """Whether a request was ever held, so that messages matter."""

    def start(self) -> None:
        """Begin to count scans; none happens before the first request is held."""
        self._thread.start()

    def stop(self) -> None:
        """Hold nothing any more, and carry all held requests out."""
        self._stopped = True
        self._wake_all(list(self._table.release_all()))

    def polling_num(self, key: str) -> int:
        """How many requests are held under `topic@group@queue id`."""
        return len(self._table.held.get(key, ()))

    def hold(self, held: HeldRequest, matches: Callable[[Message], bool] | None = None) -> PollingResult:
        """Hold a request that found nothing."""
        header, now_ms = held.header, self._broker.host.clock.now_ms()
        if self._stopped:
            return PollingResult.NOT_POLLING
        if self._thread.scans // _RECOUNT_SCANS > self._recounted:
            self._recounted = self._thread.scans // _RECOUNT_SCANS
            self._table.recount()
        self.is_used = True
        self._watch(header.topic, header.consumer_group)
        result = self._table.polling(
            held,
            header.topic,
            header.consumer_group,
            header.queue_id,
            born_ms=header.born_time,
            poll_ms=header.poll_time,
            now_ms=now_ms,
            matches=matches,
        )
        if result is PollingResult.POLLING_SUC:
            self._schedule(now_ms)
        return result

    def notify(self, topic: str, group: str, queue_id: int) -> bool:
        """Carry out the next request of a queue, whatever its filter; returns whether there was one."""
        woken = list(self._table.notify(topic, group, queue_id))
        self._wake_all(woken)
        return bool(woken)

    def notify_after_hold(self, header: PollingHeader) -> None:
        """Carry out the next request of a queue that was held although there are messages.

        They may be those that it could not get, so RocketMQ spins; here a turn takes a millisecond.
        """
        woken = list(self._table.notify(header.topic, header.consumer_group, header.queue_id))
        self._wake_all(woken, after_ms=_SPIN_MS)

    def notify_arrival(self, topic: str, queue_id: int) -> None:
        """Carry out requests because somebody says that a queue has messages."""
        self._wake_all(list(self._table.message_arriving(topic, queue_id, -1, None)))

    def on_message_arrived(self, topic: str, queue_id: int) -> None:
        """Carry out requests because of the messages that a queue has got, one after the other."""
        if not self._table.is_waited_for(topic):
            return
        store, queue = self._broker.store, (topic, queue_id)
        begin, end = self._checked.get(queue, 0), store.max_offset(topic, queue_id)
        self._checked[queue] = end
        for message in store.messages(topic, queue_id, begin, end - begin):
            woken = list(self._table.message_arriving(topic, queue_id, message.queue_offset, message))
            if woken:
                self._wake_all(woken)

    def _watch(self, topic: str, group: str) -> None:
        """From now on look at the messages of a topic and of its retry topic."""
        if group in self._table.groups_of_topic.get(topic, ()):
            return
        broker = self._broker
        for name in (topic, build_pop_retry_topic(topic, group, v2=True)):
            config = broker.topics.select_topic_config(name)
            for queue_id in range(0 if config is None else max(config.read_queue_nums, config.write_queue_nums)):
                self._checked[name, queue_id] = broker.store.max_offset(name, queue_id)

    async def _scan(self) -> None:
        """Carry out requests whose time is over; every five minutes forget those of unknown topics and groups."""
        now_ms = self._broker.host.clock.now_ms()
        clean = now_ms - self._cleaned_ms > _CLEAN_INTERVAL_MS
        self._wake_all(list(self._table.timed_out(now_ms)))
        if clean:
            self._cleaned_ms = now_ms
            topics, groups = self._broker.topics, self._broker.groups
            self._table.clean_unused(
                lambda topic: topics.select_topic_config(topic) is not None, groups.contains_subscription_group
            )
        self._schedule(now_ms)

    def _schedule(self, now_ms: int) -> None:
        due_ms = self._table.next_timeout_ms()
        if due_ms is not None:
            self._thread.scan_in_ms(max(0, due_ms - now_ms))

    def _wake_all(self, woken: list[HeldRequest], after_ms: int = 0) -> None:
        for held in woken:
            if self._wake is None:
                self._broker.host.start_soon(self._answer, held, cause.get(), after_ms, name="PullMessageThread")
            elif after_ms:
                self._broker.host.call_later_ms(after_ms, partial(self._submit, held))
            else:
                self._submit(held)

    def _submit(self, held: HeldRequest) -> None:
        """Give a request to a thread, which is busy with it until it is answered or held again."""

        def process(_channel: Channel, _request: Command, done: Callable[[], None]) -> None:
            self._broker.host.start_soon(self._answer_in_thread, held, cause.get(), done, name="PullMessageThread")

        assert self._wake is not None
        if not self._wake(held.channel, held.request, process):
            self._broker.host.log.error("PopLongPollingService failed when a request was woken")

    async def _answer_in_thread(self, held: HeldRequest, began: int, done: Callable[[], None]) -> None:
        try:
            await self._answer(held, began, 0)
        finally:
            done()

    async def _answer(self, held: HeldRequest, began: int, after_ms: int) -> None:
        if after_ms:
            await self._broker.host.sleep_ms(after_ms)
        cause.set(began)
        answer = await self._carry_out(held)
        if answer is not None and not held.channel.closed and not held.request.is_oneway:
            held.channel.send(answer)
