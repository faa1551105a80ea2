"""What a kernel does about lost segments: repeats them, each time after twice as long, and gives up in the end."""

from collections.abc import Callable

import attrs

from emulator.network.endpoint import Endpoint
from emulator.time.timeline import Timeline
from nodes.cause import cause
from nodes.protocol.command import Command

_NS_PER_MS = 1_000_000
RTO_MIN_MS = 200
RTO_MAX_MS = 120_000
RETRIES_MOST = 15
"""Linux: TCP_RTO_MIN, TCP_RTO_MAX, net.ipv4.tcp_retries2; together 924.6 s."""


def rto_ms(attempt: int) -> int:
    """How long a kernel waits for the acknowledgement of a segment that it sends for the `attempt`-th time."""
    return min(RTO_MIN_MS << (attempt - 1), RTO_MAX_MS)


@attrs.define
class Backlog:
    """What one end has sent and its kernel still has to bring over, the lost segment first."""

    unacknowledged: list[tuple[Command | None, int]]
    """(frame, or None for a FIN; when it was sent)."""
    attempt: int = 1


Leave = Callable[[Endpoint, Command | None, int], None]


class Retransmission:
    """The kernels of all machines, as far as they repeat segments.

    A lost segment is repeated whatever the process does meanwhile, also when it is stopped or dead: the connection
    belongs to the kernel. What is sent behind it waits, since a connection never changes the order.

    Args:
        leave: puts a frame on its way once its segment has come through; end, frame, when it was sent.
        has_power: whether the machine of an address runs.
        give_up: told of a connection whose segment was repeated for the last time, and what never arrived.
    """

    def __init__(
        self,
        timeline: Timeline,
        leave: Leave,
        has_power: Callable[[str], bool],
        give_up: Callable[[Endpoint, list[tuple[Command | None, int]]], None],
    ) -> None:
        self._timeline = timeline
        self._leave = leave
        self._has_power = has_power
        self._give_up = give_up
        self.backlogs: dict[Endpoint, Backlog] = {}
        """Ends that have something to repeat, also on links that are well again."""

    def takes(self, end: Endpoint, command: Command | None, now_ns: int) -> bool:
        """Whether a frame has to wait for a repetition: its own, or that of one before it."""
        backlog = self.backlogs.get(end)
        if backlog is not None:
            backlog.unacknowledged.append((command, now_ns))
            return True
        if not end.link.loses_segment():
            return False
        self.backlogs[end] = Backlog([(command, now_ns)])
        self._wait(end, 1)
        return True

    def in_flight(self) -> list[tuple[Endpoint, Command | None, int]]:
        """What waits: end, frame, when it was sent."""
        return [(end, *sent) for end, backlog in self.backlogs.items() for sent in backlog.unacknowledged]

    def lose_power(self, ip: str) -> None:
        """What the kernel of a machine had to repeat is gone, also when the machine has power again."""
        for end in [end for end in self.backlogs if end.process.ip == ip]:
            self._give_up(end, self.backlogs.pop(end).unacknowledged)

    def _wait(self, end: Endpoint, attempt: int) -> None:
        due_ns = self._timeline.now_ns + rto_ms(attempt) * _NS_PER_MS
        self._timeline.call_at(due_ns, lambda: self._repeat(end), None, cause.get())

    def _repeat(self, end: Endpoint) -> None:
        backlog = self.backlogs.get(end)
        if backlog is None:
            return
        if not self._has_power(end.process.ip) or backlog.attempt > RETRIES_MOST:
            del self.backlogs[end]
            self._give_up(end, backlog.unacknowledged)
        elif end.link.loses_segment():
            backlog.attempt += 1
            self._wait(end, backlog.attempt)
        else:
            del self.backlogs[end]
            for command, sent_ns in backlog.unacknowledged:
                self._leave(end, command, sent_ns)
