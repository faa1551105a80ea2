"""The hub: fires timers, carries frames and delivers them to nodes.

It is not a task: the clock calls `turn` whenever no task can run, so a node is
woken in the same pass of trio in which its answer arrives. A turn fires the due
timers, carries all frames that are due now, delivers them in the order in which
they became due, and repeats until nothing is due. Handlers run inline, so a
request and its answer over a link without latency need a single turn. The order
depends on the timeline alone, never on the kernel: `fast` and `sim` agree.
"""

from collections.abc import Callable
from time import perf_counter_ns
from typing import Protocol

from emulator.network.endpoint import Endpoint
from emulator.time.failure import Failure
from emulator.time.timeline import ScheduledCall, Timeline
from nodes.cause import NO_CAUSE
from nodes.protocol.command import Command

Arrival = tuple[Endpoint, Command | None, int]
"""(end that sent, frame or None for a FIN, instant of sending in ns)."""

_ROUNDS_PER_TURN = 8
_LINGER_NS = 250_000
"""How long after an answer the next request of a guest is awaited without sleeping."""


class Carrier(Protocol):
    """Carries frames from one end of a connection to the other."""

    def carry(self, arrivals: list[Arrival]) -> list[Arrival]:
        """Carry each frame; returns the frames as received at the other ends, in the same order."""

    def listen(self, ip: str, port: int) -> object:
        """Open a listener for an emulated address; returns the handle for `close_listener`."""

    def close_listener(self, listener: object) -> None:
        """Close a listener."""

    def open(self, client: Endpoint, server: Endpoint, listener: object) -> None:
        """Connect the two ends through the listener."""

    def close(self, endpoint: Endpoint) -> None:
        """Release the state of this end; called once per end."""


class MemoryCarrier:
    """Carries frames by reference, in mode `sim`; commands are immutable."""

    def carry(self, arrivals: list[Arrival]) -> list[Arrival]:
        """Returns the same frames."""
        return arrivals

    def listen(self, ip: str, port: int) -> object:
        """Nothing to open."""
        return (ip, port)

    def close_listener(self, listener: object) -> None:
        """Nothing to close."""

    def open(self, client: Endpoint, server: Endpoint, listener: object) -> None:
        """Nothing to connect."""

    def close(self, endpoint: Endpoint) -> None:
        """Nothing to release."""


class _Bucket(ScheduledCall):
    """The frames that arrive at one instant, as one entry of the timeline."""

    __slots__ = ("_due_ns", "_hub", "arrivals")

    def __init__(self, hub: "Hub", due_ns: int) -> None:
        # Field by field: over a link with jitter nearly each frame has a bucket of its own.
        self.callback, self.owner, self.cause = _nothing, None, NO_CAUSE
        self._hub = hub
        self._due_ns = due_ns
        self.arrivals: list[Arrival] = []

    def fire(self) -> None:
        """Pass the frames to the hub, which delivers them in this turn."""
        hub = self._hub
        del hub._buckets[self._due_ns]  # noqa: SLF001 - the bucket is a part of the hub
        hub.ready.extend(self.arrivals)


def _nothing() -> None:
    """The callback of a bucket, which overrides `fire`."""


class Hub:
    """Fires timers, carries frames and delivers them, one turn at a time.

    Args:
        deliver: hands frames over to their receivers.
        failure: gets what a turn raises, since it must not be raised inside trio's loop.
    """

    def __init__(
        self, timeline: Timeline, carrier: Carrier, deliver: Callable[[list[Arrival]], None], failure: Failure
    ) -> None:
        self.timeline = timeline
        self.ready: list[Arrival] = []
        """Frames that are due now."""
        self.flushes: list[Callable[[], None]] = []
        """Called once at the end of the turn; each sends a guest all frames that arrived for it in the turn."""
        self._buckets: dict[int, _Bucket] = {}
        self._carrier = carrier
        self._deliver = deliver
        self._failure = failure
        self._firing = False
        self._lingers_until_ns = 0

    def post(self, sender: Endpoint, command: Command | None, sent_ns: int, latency_ns: int) -> None:
        """Schedule the arrival of a frame (None: a FIN) after `latency_ns`, behind the earlier frames of `sender`."""
        sender.last_due_ns = due_ns = max(sent_ns + latency_ns, sender.last_due_ns)
        self.arrivals_at(due_ns, sent_ns).append((sender, command, sent_ns))

    def arrivals_at(self, due_ns: int, sent_ns: int) -> list[Arrival]:
        """The list to which a frame is appended that was sent at `sent_ns` and arrives at `due_ns`."""
        # While timers fire, an earlier frame may still wait among them, so this frame must queue there.
        if due_ns <= sent_ns and not self._firing:
            return self.ready
        bucket = self._buckets.get(due_ns)
        if bucket is None:
            bucket = self._buckets[due_ns] = _Bucket(self, due_ns)
            self.timeline.add(due_ns, bucket)
        return bucket.arrivals

    def turn(self) -> bool:
        """Do what is due; returns whether nothing is due any more (a chain of answers may take many turns)."""
        quiet = False
        try:
            for _ in range(_ROUNDS_PER_TURN):
                self._firing = True
                self.timeline.fire_due()
                self._firing = False
                if not self.ready:
                    quiet = True
                    break
                arrivals, self.ready = self.ready, []
                self._deliver(self._carrier.carry(arrivals))
            if self.flushes:
                flushes, self.flushes = self.flushes, []
                for flush in flushes:
                    flush()
                self._lingers_until_ns = perf_counter_ns() + _LINGER_NS
                quiet = quiet and not self.ready
        except Exception as error:  # noqa: BLE001 - see `failure`
            self._failure.report(error)
            return False
        return quiet

    def lingers(self) -> bool:
        """Whether a guest was answered a moment ago, so that its next request may come at once.

        Sleeping and waking take about as long as serving a request.
        """
        return perf_counter_ns() < self._lingers_until_ns

    def in_flight(self) -> list[Arrival]:
        """Frames that have been sent and have not arrived, ordered by arrival."""
        later = [a for due_ns in sorted(self._buckets) for a in self._buckets[due_ns].arrivals]
        return [*self.ready, *later]
