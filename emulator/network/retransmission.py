"""TCP retransmission of lost segments: with exponential backoff, and given up after a number of attempts."""

from collections.abc import Callable

import attrs

from emulator.network.endpoint import Endpoint
from emulator.time.timeline import Timeline
from nodes.cause import cause
from nodes.protocol.command import Command
from nodes.units import NS_PER_MS

RTO_MIN_MS = 200
RTO_MAX_MS = 120_000
RETRIES_MAX = 15
"""Linux: TCP_RTO_MIN, TCP_RTO_MAX, net.ipv4.tcp_retries2; together 924.6 s."""


def rto_ms(attempt: int) -> int:
    """Retransmission timeout in ms after the `attempt`-th transmission, from 1."""
    return min(RTO_MIN_MS << (attempt - 1), RTO_MAX_MS)


@attrs.define
class UnacknowledgedFrames:
    """Unacknowledged frames of one end, the lost one first."""

    unacknowledged: list[tuple[Command | None, int]]
    """(frame, or None for a FIN; sent_ns)."""
    attempt: int = 1


Transmit = Callable[[Endpoint, Command | None, int], None]


class Retransmission:
    """Retransmission in the kernels of all machines.

    A kernel retransmits also while the process is stopped or dead, since the connection belongs to the kernel. Later
    frames of the connection wait, since TCP keeps their order.

    Args:
        transmit: sends a frame whose segment has come through; takes end, frame, sent_ns.
        has_power: whether the machine of an IP address has power.
        give_up: called with an end that is given up, and its unacknowledged frames.
    """

    def __init__(
        self,
        timeline: Timeline,
        transmit: Transmit,
        has_power: Callable[[str], bool],
        give_up: Callable[[Endpoint, list[tuple[Command | None, int]]], None],
    ) -> None:
        self._timeline = timeline
        self._transmit = transmit
        self._has_power = has_power
        self._give_up = give_up
        self.backlogs: dict[Endpoint, UnacknowledgedFrames] = {}
        """Ends with unacknowledged frames, also on links without a fault."""

    def takes(self, end: Endpoint, command: Command | None, now_ns: int) -> bool:
        """Whether a frame must wait for a retransmission, its own or an earlier one; keeps it if so."""
        backlog = self.backlogs.get(end)
        if backlog is not None:
            backlog.unacknowledged.append((command, now_ns))
            return True
        if not end.link.loses_segment():
            return False
        self.backlogs[end] = UnacknowledgedFrames([(command, now_ns)])
        self._wait(end, 1)
        return True

    def in_flight(self) -> list[tuple[Endpoint, Command | None, int]]:
        """The waiting frames: (end, frame, sent_ns)."""
        return [(end, *sent) for end, backlog in self.backlogs.items() for sent in backlog.unacknowledged]

    def lose_power(self, ip: str) -> None:
        """Drop all that the kernel of a machine would retransmit."""
        for end in [end for end in self.backlogs if end.process.ip == ip]:
            self._give_up(end, self.backlogs.pop(end).unacknowledged)

    def _wait(self, end: Endpoint, attempt: int) -> None:
        due_ns = self._timeline.now_ns + rto_ms(attempt) * NS_PER_MS
        self._timeline.call_at(due_ns, lambda: self._repeat(end), None, cause.get())

    def _repeat(self, end: Endpoint) -> None:
        backlog = self.backlogs.get(end)
        if backlog is None:
            return
        if not self._has_power(end.process.ip) or backlog.attempt > RETRIES_MAX:
            del self.backlogs[end]
            self._give_up(end, backlog.unacknowledged)
        elif end.link.loses_segment():
            backlog.attempt += 1
            self._wait(end, backlog.attempt)
        else:
            del self.backlogs[end]
            for command, sent_ns in backlog.unacknowledged:
                self._transmit(end, command, sent_ns)
