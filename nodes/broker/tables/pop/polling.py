"""Pops that a broker holds until a message arrives or their time is over.

A pop of all queues waits under queue -1. An arrival wakes one waiter of queue -1 and one of its own queue, per group.

Mirrors:
    `org.apache.rocketmq.broker.longpolling.PopLongPollingService`.
"""

from bisect import insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Generic, TypeVar

from nodes.allocation.for_pop import ALL_QUEUES
from nodes.protocol.java import hash_ordered
from nodes.protocol.names import build_polling_key, is_pop_retry_topic_v2, parse_normal_topic
from nodes.values import frozen

SCAN_INTERVAL_MS = 20
_EARLY_MS = 50
"""A pop is carried out again so long before its time is over."""
_BUCKETS = 32
"""Of RocketMQ's table at first, whose order is that of the scan."""
R = TypeVar("R")
A = TypeVar("A")


class PollingResult(StrEnum):
    """Whether a pop is held."""

    POLLING_SUC = "POLLING_SUC"
    POLLING_FULL = "POLLING_FULL"
    POLLING_TIMEOUT = "POLLING_TIMEOUT"
    NOT_POLLING = "NOT_POLLING"


@frozen
class HeldPop(Generic[R, A]):
    """A pop that waits."""

    expired_ms: int
    number: int
    request: R
    matches: Callable[[A], bool] | None = None
    """Whether its filter lets a message through; None: it has no filter."""

    def is_timeout(self, now_ms: int) -> bool:
        """Whether its time is over, or nearly."""
        return now_ms > self.expired_ms - _EARLY_MS


_BY_END = attrgetter("expired_ms", "number")


@frozen
class PopPollingOptions:
    """Options of the broker under their names."""

    pop_polling_size: int = 1024
    """A key that has more takes no more, so one more than this fit."""
    max_pop_polling_size: int = 100_000
    pop_long_polling_force_notify_interval: int = 800
    """A message at a multiple of this offset wakes whatever the filter says; 0: none does."""


class PopLongPolling(Generic[R, A]):
    """The held pops of one broker.

    Args:
        options: of the broker.
        is_active: whether the channel of a request is open.
        notify_last: whether an arrival takes the waiter with the longest time left, as for notifications.
    """

    def __init__(
        self, options: PopPollingOptions, is_active: Callable[[R], bool], *, notify_last: bool = False
    ) -> None:
        self._options = options
        self._is_active = is_active
        self._notify_last = notify_last
        self._held: dict[str, list[HeldPop[R, A]]] = {}
        self._groups: dict[str, dict[str, None]] = {}
        self._number = 0
        self.total = 0
        """How many are held, as far as was counted: it may be less than none."""

    @property
    def held(self) -> Mapping[str, Sequence[HeldPop[R, A]]]:
        """`topic@group@queue id` -> pops, in the order of their end."""
        return self._held

    @property
    def groups_of_topic(self) -> Mapping[str, tuple[str, ...]]:
        """Topic -> groups that ever waited for it."""
        return {topic: tuple(groups) for topic, groups in self._groups.items()}

    def polling(
        self,
        request: R,
        topic: str,
        group: str,
        queue_id: int,
        *,
        born_ms: int,
        poll_ms: int,
        now_ms: int,
        matches: Callable[[A], bool] | None = None,
    ) -> PollingResult:
        """Hold a pop that found nothing."""
        if poll_ms <= 0:
            return PollingResult.NOT_POLLING
        self._groups.setdefault(topic, {})[group] = None
        made = HeldPop(born_ms + poll_ms, self._number, request, matches)
        self._number += 1
        if self.total >= self._options.max_pop_polling_size:
            return PollingResult.POLLING_FULL
        if made.is_timeout(now_ms):
            return PollingResult.POLLING_TIMEOUT
        waiters = self._held.setdefault(build_polling_key(topic, group, queue_id), [])
        if len(waiters) > self._options.pop_polling_size:
            return PollingResult.POLLING_FULL
        insort(waiters, made, key=_BY_END)
        self.total += 1
        return PollingResult.POLLING_SUC

    def is_waited_for(self, topic: str) -> bool:
        """Whether any group ever waited for a topic, or for the one of which it is the retry topic."""
        return topic in self._groups or (is_pop_retry_topic_v2(topic) and parse_normal_topic(topic) in self._groups)

    def message_arriving(self, topic: str, queue_id: int, offset: int, arrived: A | None) -> Iterator[R]:
        """The requests to carry out again because of a message.

        A retry topic of the old form wakes nobody: no one waits under its name.

        Args:
            arrived: what filters look at; None: they let it through.
        """
        waited_for = parse_normal_topic(topic) if is_pop_retry_topic_v2(topic) else topic
        interval = self._options.pop_long_polling_force_notify_interval
        if interval > 0 and offset % interval == 0:
            arrived = None
        for group in tuple(self._groups.get(waited_for, ())):
            for queue in (ALL_QUEUES, queue_id) if queue_id >= 0 else (queue_id,):
                yield from self.notify(waited_for, group, queue, arrived)

    def notify(self, topic: str, group: str, queue_id: int, arrived: A | None = None) -> Iterator[R]:
        """The request of one key to carry out again; one whose filter does not match is put back, and no other tried.

        Args:
            arrived: what its filter looks at; None: do not ask it.
        """
        waiters = self._held.get(build_polling_key(topic, group, queue_id), [])
        found = self._poll(waiters)
        if found is None:
            return
        if arrived is not None and found.matches is not None and not found.matches(arrived):
            insort(waiters, found, key=_BY_END)
            self.total += 1
            return
        yield found.request

    def next_timeout_ms(self) -> int | None:
        """From when on a scan finds a request whose time is over; None: nothing is held."""
        ends = [waiters[0].expired_ms for waiters in self._held.values() if waiters]
        return min(ends) - _EARLY_MS + 1 if ends else None

    def release_all(self) -> Iterator[R]:
        """All requests, to carry out again because the service stops."""
        for waiters in self._held.values():
            held, waiters[:] = waiters[:], []
            yield from (found.request for found in held if self._is_active(found.request))

    def timed_out(self, now_ms: int) -> Iterator[R]:
        """The requests to carry out again because their time is over; those of closed channels are only dropped."""
        for key in hash_ordered(self._held, buckets=_BUCKETS):
            waiters = self._held[key]
            while waiters and waiters[0].is_timeout(now_ms):
                self.total -= 1
                found = waiters.pop(0)
                if self._is_active(found.request):
                    yield found.request

    def recount(self) -> None:
        """Count again, as happens every 100 scans."""
        self.total = sum(map(len, self._held.values()))

    def clean_unused(self, topic_exists: Callable[[str], bool], group_exists: Callable[[str], bool]) -> None:
        """Forget unknown topics and groups; their pops are never answered."""
        for key in list(self._held):
            named = key.split("@")
            if len(named) == 3 and not (topic_exists(named[0]) and group_exists(named[1])):
                del self._held[key]
        self._groups = {
            topic: {group: None for group in groups if group_exists(group)}
            for topic, groups in self._groups.items()
            if topic_exists(topic)
        }

    def _poll(self, waiters: list[HeldPop[R, A]]) -> HeldPop[R, A] | None:
        """The next waiter whose channel is open; each try counts, also the one that finds no waiter any more."""
        if not waiters:
            return None
        while True:
            self.total -= 1
            if not waiters:
                return None
            found = waiters.pop(-1 if self._notify_last else 0)
            if self._is_active(found.request):
                return found
