"""The hub: the one task that fires timers, carries frames and hands them to nodes.

A turn: fire what is due, carry the frames that are due now to their ends in one
go, hand them over in the order in which they fell due, repeat until quiet. Handlers run inline,
so a request and its answer over a link without latency need a single turn.
The order depends on the timeline alone, never on the kernel: `fast` and `sim` agree.
"""

from collections.abc import Callable
from typing import Protocol

import trio

from emulator.network.endpoint import Endpoint
from emulator.time.timeline import Timeline
from nodes.protocol.command import Command

Arrival = tuple[Endpoint, Command | None, int]
"""(end that sent, frame or None for a FIN, instant of sending in ns)."""

_ROUNDS_PER_TURN = 8


class Carrier(Protocol):
    """What brings frames from one end of a connection to the other."""

    def carry(self, arrivals: list[Arrival]) -> list[Arrival]:
        """Carry each frame; returns what came out at the other ends, in the same order."""

    def listen(self, ip: str, port: int) -> object:
        """Open a listener for the emulated address; returns what `close_listener` takes."""

    def close_listener(self, listener: object) -> None:
        """Close it."""

    def open(self, client: Endpoint, server: Endpoint, listener: object) -> None:
        """Connect the two ends through the listener."""

    def close(self, endpoint: Endpoint) -> None:
        """Release what this end holds; called once per end."""


class Hub:
    """Fires, carries and hands over; parks when nothing is due."""

    def __init__(self, timeline: Timeline, carrier: Carrier, hand_over: Callable[[Arrival], None]) -> None:
        self.timeline = timeline
        self.ready: list[Arrival] = []
        """Frames that arrive now."""
        self._buckets: dict[int, list[Arrival]] = {}
        self._carrier = carrier
        self._hand_over = hand_over
        self._task: trio.lowlevel.Task | None = None
        self._firing = False
        self._error: Exception | None = None

    def post(self, arrival: Arrival, due_ns: int) -> None:
        """Have a frame arrive at `due_ns`."""
        # While timers fire, an earlier frame may wait among them: what is sent now takes its turn there.
        if due_ns <= self.timeline.now_ns and not self._firing:
            self.ready.append(arrival)
            if self._task is not None:
                self.wake()
            return
        bucket = self._buckets.get(due_ns)
        if bucket is None:
            self._buckets[due_ns] = [arrival]
            self.timeline.call_at(due_ns, lambda: self.ready.extend(self._buckets.pop(due_ns)))
        else:
            bucket.append(arrival)

    def wake(self) -> None:
        """End the hub's rest, if it rests."""
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)
            self._task = None

    def fail(self, error: Exception) -> None:
        """Make `run` raise at its next turn."""
        self._error = error
        self.wake()

    async def run(self) -> None:
        """Work for ever."""
        while True:
            if self._error is not None:
                raise self._error
            if self._turn():
                await self._rest()
            else:
                await trio.lowlevel.cancel_shielded_checkpoint()

    def in_flight(self) -> list[Arrival]:
        """Frames that have been sent and have not arrived, by the instant of their arrival."""
        later = [a for due_ns in sorted(self._buckets) for a in self._buckets[due_ns]]
        return [*self.ready, *later]

    def _turn(self) -> bool:
        """Do what is due; returns whether all is quiet."""
        for _ in range(_ROUNDS_PER_TURN):
            self._firing = True
            self.timeline.fire_due()
            self._firing = False
            if not self.ready:
                return True
            arrivals, self.ready = self.ready, []
            hand_over = self._hand_over
            for arrival in self._carrier.carry(arrivals):
                hand_over(arrival)
        return False

    async def _rest(self) -> None:
        self._task = trio.lowlevel.current_task()

        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
