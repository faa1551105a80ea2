"""The hub: fires timers, carries frames and hands them to nodes.

It is no task: the clock gives it a turn whenever no task can run, so a node is
woken in the same pass of trio in which its answer arrives. A turn: fire what is
due, carry the frames that are due now to their ends in one go, hand them over
in the order in which they fell due, repeat until quiet. Handlers run inline, so
a request and its answer over a link without latency need a single turn. The
order depends on the timeline alone, never on the kernel: `fast` and `sim` agree.
"""

from collections.abc import Callable
from typing import Protocol

import trio

from emulator.network.endpoint import Endpoint
from emulator.time.timeline import Entry, Timeline
from nodes.cause import NO_CAUSE
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


class _Bucket(Entry):
    """The frames that arrive at one instant, as one entry of the timeline."""

    __slots__ = ("_due_ns", "_hub", "arrivals")

    def __init__(self, hub: "Hub", due_ns: int) -> None:
        super().__init__(_nothing, None, NO_CAUSE)
        self._hub = hub
        self._due_ns = due_ns
        self.arrivals: list[Arrival] = []

    def fire(self) -> None:
        """Have them handed over."""
        hub = self._hub
        del hub._buckets[self._due_ns]  # noqa: SLF001 - a part of the hub
        hub.ready.extend(self.arrivals)


def _nothing() -> None:
    """A bucket is not called."""


class Hub:
    """Fires, carries and hands over, one turn at a time."""

    def __init__(self, timeline: Timeline, carrier: Carrier, hand_over: Callable[[Arrival], None]) -> None:
        self.timeline = timeline
        self.ready: list[Arrival] = []
        """Frames that arrive now."""
        self.outlets: list[Callable[[], None]] = []
        """Called once, when the turn is over: by them leaves together what arrived for a program outside."""
        self.on_left: Callable[[], None] = lambda: None
        """Called when it has left."""
        self._buckets: dict[int, _Bucket] = {}
        self._carrier = carrier
        self._hand_over = hand_over
        self._firing = False
        self._error: Exception | None = None
        self._guard: trio.lowlevel.Task | None = None

    def post(self, sender: Endpoint, command: Command | None, now_ns: int, latency_ns: int) -> None:
        """Have a frame, or None for a FIN, arrive `latency_ns` from now, behind those that `sender` sent before."""
        due_ns = now_ns + latency_ns
        if due_ns < sender.last_due_ns:  # noqa: PLR1730 - max() would be a call in the hottest path
            due_ns = sender.last_due_ns
        sender.last_due_ns = due_ns
        arrival = (sender, command, now_ns)
        # While timers fire, an earlier frame may wait among them: what is sent now takes its turn there.
        if due_ns <= now_ns and not self._firing:
            self.ready.append(arrival)
            return
        bucket = self._buckets.get(due_ns)
        if bucket is None:
            bucket = self._buckets[due_ns] = _Bucket(self, due_ns)
            self.timeline.add(due_ns, bucket)
        bucket.arrivals.append(arrival)

    def turn(self) -> bool:
        """Do what is due; returns whether all is quiet, which a chain of answers may prevent for many turns."""
        try:
            quiet = self._rounds()
            if self.outlets:
                outlets, self.outlets = self.outlets, []
                for leave in outlets:
                    leave()
                self.on_left()
                quiet = quiet and not self.ready
        except Exception as error:  # noqa: BLE001 - trio must not meet it in the middle of its loop
            self.fail(error)
            return False
        return quiet

    def _rounds(self) -> bool:
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

    def fail(self, error: Exception) -> None:
        """End the emulation with an error."""
        self._error = self._error or error
        if self._guard is not None:
            trio.lowlevel.reschedule(self._guard)
            self._guard = None

    async def guard(self) -> None:
        """Wait until the emulation fails, and raise what it failed with."""
        while self._error is None:
            self._guard = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._forget_guard)
        raise self._error

    def in_flight(self) -> list[Arrival]:
        """Frames that have been sent and have not arrived, by the instant of their arrival."""
        later = [a for due_ns in sorted(self._buckets) for a in self._buckets[due_ns].arrivals]
        return [*self.ready, *later]

    def _forget_guard(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self._guard = None
        return trio.lowlevel.Abort.SUCCEEDED
