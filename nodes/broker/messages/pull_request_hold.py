"""Held pulls: what wakes them, and when their time is up."""

from collections.abc import Callable, Hashable

import attrs

from nodes.broker.context import BrokerContext
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.command import Command
from nodes.protocol.model import Message

_LONG_POLLING_CHECK_MS = 5_000
_BEHIND_MS = 1
"""RocketMQ's scan waits after each round, so it falls behind tasks at a fixed rate, such as the scan for silent
clients. One delay at the start is enough to put the scans in that order."""


@attrs.define(eq=False)
class HeldPull:
    """A pull that found no message and is held."""

    channel: Channel
    request: Command
    header: headers.PullMessageRequestHeader
    matches: Callable[[Message], bool] | None
    """The filter of its subscription; None: everything matches."""
    suspended_until_ms: int
    """Wall clock of the broker."""
    checked_until: int
    """Messages of its queue below this offset were checked already."""


class PullRequestHoldService:
    """Holds pulls until a matching message arrives, or until a scan finds that their time is up.

    The scan runs every 5 s, so an idle pull is answered up to 5 s later than its client allows; with long polling
    off it runs every `short_polling_time_mills`, and no arrival wakes a pull. The scan does not filter: it
    also answers a pull whose queue has new messages that do not match.

    Args:
        broker: whose queues the pulls wait for.
        answer: answers a pull without holding it again.

    Mirrors:
        `org.apache.rocketmq.broker.longpolling.PullRequestHoldService`, and what
        `org.apache.rocketmq.store.DefaultMessageStore#notifyMessageArriveIfNecessary` asks.
    """

    def __init__(self, broker: BrokerContext, answer: Callable[[HeldPull], None]) -> None:
        self._broker = broker
        self._answer = answer
        self._held: dict[tuple[str, int], list[HeldPull]] = {}

    def start(self) -> None:
        """Start the scan."""
        self._broker.host.start_soon(self._run, name="PullRequestHoldService")

    def suspend(
        self,
        channel: Channel,
        request: Command,
        header: headers.PullMessageRequestHeader,
        matches: Callable[[Message], bool] | None,
    ) -> None:
        """Hold a pull for as long as its client allows, or for the short polling time."""
        config = self._broker.config
        hold_ms = header.suspend_timeout_millis if config.long_polling_enable else config.short_polling_time_mills
        until_ms = self._broker.host.clock.now_ms() + hold_ms
        held = HeldPull(channel, request, header, matches, until_ms, header.queue_offset)
        self._held.setdefault((header.topic, header.queue_id), []).append(held)

    def on_message_arrived(self, topic: str, queue_id: int) -> None:
        """Answer the pulls of a queue that match its new messages."""
        if self._broker.config.long_polling_enable and (topic, queue_id) in self._held:
            self._answer_if(self._is_woken, [(topic, queue_id)])

    def on_activated(self, topic: str, queue_id: int, channel: Hashable) -> None:
        """Answer the pull of the consumer that is the active one of a queue now."""
        if (topic, queue_id) in self._held:
            self._answer_if(lambda held: held.channel.id == channel, [(topic, queue_id)])

    def on_master_online(self) -> None:
        """Answer all held pulls."""
        self._answer_if(lambda _: True, list(self._held))

    async def _run(self) -> None:
        host = self._broker.host
        await host.sleep_ms(_BEHIND_MS)
        while True:
            config = self._broker.config
            await host.sleep_ms(
                _LONG_POLLING_CHECK_MS if config.long_polling_enable else config.short_polling_time_mills
            )
            if any(self._is_due(held) for waiting in self._held.values() for held in waiting):
                # Only here: a scan without result starts no chain of causes.
                host.begin_cause("PullRequestHoldService")
                self._answer_if(self._is_due, list(self._held))

    def _is_woken(self, held: HeldPull) -> bool:
        """Whether a matching message has arrived, or the time is up; each message is checked once."""
        store, topic, queue_id = self._broker.store, held.header.topic, held.header.queue_id
        begin, end = held.checked_until, store.max_offset(topic, queue_id)
        held.checked_until = max(begin, end)
        if held.matches is None:
            arrived = max(begin, store.min_offset(topic, queue_id)) < end
        else:
            arrived = any(map(held.matches, store.messages(topic, queue_id, begin, end - begin)))
        return arrived or self._is_over(held)

    def _is_due(self, held: HeldPull) -> bool:
        header = held.header
        end = self._broker.store.max_offset(header.topic, header.queue_id)
        return end > header.queue_offset or self._is_over(held)

    def _is_over(self, held: HeldPull) -> bool:
        return self._broker.host.clock.now_ms() >= held.suspended_until_ms

    def _answer_if(self, is_answered: Callable[[HeldPull], bool], queues: list[tuple[str, int]]) -> None:
        """Answer pulls of some queues; all of them are removed before the first one is answered."""
        answered: list[HeldPull] = []
        for queue in queues:
            retained: list[HeldPull] = []
            for held in self._held.pop(queue):
                (answered if is_answered(held) else retained).append(held)
            if retained:
                self._held[queue] = retained
        for held in answered:
            self._answer(held)
