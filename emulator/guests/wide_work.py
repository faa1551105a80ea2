"""Work that guests ask for and that concerns all members of a group, or a whole table, in one queue.

A thousand members that join at once make a thousand times a thousand notifications, and as many leave. Real brokers
have threads of their own for such requests, so nothing else waits for them. Here all nodes share one thread: a few of
these requests are carried out at a time, so that everything else is served in between.
"""

from collections.abc import Callable

import trio

from emulator.network.hub import Hub
from nodes.parking import park_among, unpark
from nodes.protocol.registry import codes_where

_BATCH_S = 0.01
"""CPU time that a batch should take."""
_AT_ONCE_MAX = 8
"""A batch that costs more than expected takes as long as so many departures from a large group."""
_OLD_SHARE = 0.8
"""Weight of what earlier batches cost, where the latest one cost less."""

WIDE_REQUESTS = codes_where(lambda exchange: exchange.is_wide)
"""Codes of the requests that ask for such work."""


class WideWork:
    """Lets guests begin such work, a batch at a time, in the order in which they asked.

    How many requests make a batch depends on what the latest ones cost.

    Args:
        hub: carries the requests.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._waiting: dict[trio.lowlevel.Task, None] = {}
        self._begun = 0
        """Requests of this batch."""
        self._arrives_ns = 0
        """When the last one of them arrives at its node."""
        self._cost_s = _BATCH_S
        """CPU time of one request, as far as is known; at first unknown, so one makes a batch."""
        self._charged_s = 0.0

    async def carry_out(self, act: Callable[[], int]) -> None:
        """Do this as a part of a batch; `act` returns the instant at which the request arrives, in ns."""
        if self._waiting or self._begun >= self._at_once():
            await park_among(self._waiting)
        else:
            self._begun += 1
            if self._begun == 1:
                self._look_again_at(self._hub.timeline.now_ns)
        self._arrives_ns = max(self._arrives_ns, act())

    def charge(self, took_s: float) -> None:
        """Note CPU time that such work took."""
        self._charged_s += took_s

    def _at_once(self) -> int:
        return max(1, min(_AT_ONCE_MAX, int(_BATCH_S / self._cost_s)))

    def _look_again_at(self, instant_ns: int) -> None:
        """Go on at the end of the turn of the hub that begins at an instant."""
        self._hub.timeline.call_at(instant_ns, lambda: self._hub.flushes.append(self._next_batch))

    def _next_batch(self) -> None:
        if self._hub.timeline.now_ns < self._arrives_ns:
            self._look_again_at(self._arrives_ns)
            return
        if self._charged_s:
            cost_s, self._charged_s = self._charged_s / self._begun, 0.0
            self._cost_s = max(cost_s, self._cost_s * _OLD_SHARE + cost_s * (1 - _OLD_SHARE))
        woken = list(self._waiting)[: self._at_once()]
        self._begun = len(woken)
        for task in woken:
            del self._waiting[task]
            unpark(task)
        if woken:
            self._look_again_at(self._hub.timeline.now_ns + 1)
