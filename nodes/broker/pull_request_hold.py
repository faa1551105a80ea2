"""Pulls that wait for a message: who wakes them, and when the broker gives up on them."""

from collections.abc import Callable

import attrs

from nodes.broker.context import BrokerContext
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.command import Command
from nodes.protocol.model import Message

_LONG_POLLING_CHECK_MS = 5_000
_BEHIND_MS = 1
"""A look begins its wait when the one before has ended and no wait ends early, so the looks fall behind whatever keeps
its instants, as the scan for silent clients does. Here once, by enough to put them in that order."""


@attrs.define(eq=False)
class HeldPull:
    """A pull that found nothing."""

    channel: Channel
    request: Command
    header: headers.PullMessageRequestHeader
    matches: Callable[[Message], bool] | None
    """What its subscription lets through; None: everything."""
    suspended_until_ms: int
    """By the wall clock of the broker."""
    looked_at: int
    """Messages of its queue below this offset did not wake it."""


class PullRequestHoldService:
    """Pulls wait until a message arrives that they ask for, or until a look at all of them finds their time up.

    The broker looks every 5 s, so an idle pull is answered up to 5 s later than its client allows; with long polling
    off it looks every `short_polling_time_mills`, and nothing that arrives wakes a pull. A look does not ask for tags:
    it also ends the wait of a pull whose queue has got messages that it does not want.

    Args:
        broker: whose queues they wait for.
        answer: answers a pull, with no further suspension.

    Mirrors:
        `org.apache.rocketmq.broker.longpolling.PullRequestHoldService`, and what
        `org.apache.rocketmq.store.DefaultMessageStore#notifyMessageArriveIfNecessary` asks.
    """

    def __init__(self, broker: BrokerContext, answer: Callable[[HeldPull], None]) -> None:
        self._broker = broker
        self._answer = answer
        self._held: dict[tuple[str, int], list[HeldPull]] = {}

    def start(self) -> None:
        """Begin to look."""
        self._broker.host.start_soon(self._run, name="PullRequestHoldService")

    def suspend(
        self,
        channel: Channel,
        request: Command,
        header: headers.PullMessageRequestHeader,
        matches: Callable[[Message], bool] | None,
    ) -> None:
        """Hold a pull for as long as its client allows, or for the time of short polling."""
        config = self._broker.config
        hold_ms = header.suspend_timeout_millis if config.long_polling_enable else config.short_polling_time_mills
        until_ms = self._broker.host.clock.now_ms() + hold_ms
        held = HeldPull(channel, request, header, matches, until_ms, header.queue_offset)
        self._held.setdefault((header.topic, header.queue_id), []).append(held)

    def on_message_arrived(self, topic: str, queue_id: int) -> None:
        """Answer the pulls that want what has arrived in a queue."""
        if self._broker.config.long_polling_enable and (topic, queue_id) in self._held:
            self._answer_where(lambda held: self._is_awaited(held) or self._is_over(held), [(topic, queue_id)])

    def on_master_online(self) -> None:
        """Answer every pull that waits, of whatever queue."""
        self._answer_where(lambda _: True, list(self._held))

    async def _run(self) -> None:
        host = self._broker.host
        await host.sleep_ms(_BEHIND_MS)
        while True:
            config = self._broker.config
            await host.sleep_ms(
                _LONG_POLLING_CHECK_MS if config.long_polling_enable else config.short_polling_time_mills
            )
            if any(self._is_due(held) for waiting in self._held.values() for held in waiting):
                # Only here: to look in vain begins nothing.
                host.begin_cause("PullRequestHoldService")
                self._answer_where(self._is_due, list(self._held))

    def _is_awaited(self, held: HeldPull) -> bool:
        """Whether a message has arrived that a pull asks for; each is looked at once."""
        header, store = held.header, self._broker.store
        count = store.max_offset(header.topic, header.queue_id) - held.looked_at
        arrived = store.messages(header.topic, header.queue_id, held.looked_at, count)
        held.looked_at += max(0, count)
        return bool(arrived) and (held.matches is None or any(held.matches(message) for message in arrived))

    def _is_due(self, held: HeldPull) -> bool:
        header = held.header
        end = self._broker.store.max_offset(header.topic, header.queue_id)
        return end > header.queue_offset or self._is_over(held)

    def _is_over(self, held: HeldPull) -> bool:
        return self._broker.host.clock.now_ms() >= held.suspended_until_ms

    def _answer_where(self, is_meant: Callable[[HeldPull], bool], queues: list[tuple[str, int]]) -> None:
        """Answer pulls of some queues; they no longer wait when the first of them is answered."""
        meant: list[HeldPull] = []
        for queue in queues:
            kept: list[HeldPull] = []
            for held in self._held.pop(queue):
                (meant if is_meant(held) else kept).append(held)
            if kept:
                self._held[queue] = kept
        for held in meant:
            self._answer(held)
