"""Detection of idle connections."""

from collections.abc import Callable

from nodes.host import Channel, Host
from nodes.units import MS_PER_S, NS_PER_MS

_FEW = 16
"""Channels that are tolerated whether they are closed or not."""


class IdleWatch:
    """Detects channels that were idle in both directions for too long.

    Args:
        max_idle_s: the limit.
        on_idle: called once per idle channel.

    Mirrors:
        `io.netty.handler.timeout.IdleStateHandler` with an all-idle time.
    """

    def __init__(self, host: Host, max_idle_s: int, on_idle: Callable[[Channel], None]) -> None:
        self._host = host
        self._max_idle_ms = max_idle_s * MS_PER_S
        self._on_idle = on_idle
        self._channels: dict[Channel, None] = {}
        self._armed = False
        self._many = _FEW
        """So many channels are worth a look at which of them are closed: they hold what both ends know."""

    def watch(self, channel: Channel) -> None:
        """Watch a channel until it is closed."""
        self._channels[channel] = None
        if len(self._channels) > self._many:
            self._channels = dict.fromkeys(self.open_channels)
            self._many = max(_FEW, 2 * len(self._channels))
        if not self._armed:
            self._armed = True
            self._host.call_later_ms(self._max_idle_ms, self._check)

    @property
    def open_channels(self) -> tuple[Channel, ...]:
        """Channels that are not closed, in the order in which they were opened."""
        return tuple(channel for channel in self._channels if not channel.closed)

    def _check(self) -> None:
        """The one timer for all channels: it fires when the least recently used channel may have become idle."""
        now_ns = self._host.clock.monotonic_ns()
        longest_ms = 0
        for channel in list(self._channels):
            idle_ms = (now_ns - channel.last_used_ns) // NS_PER_MS
            if channel.closed:
                self._channels.pop(channel, None)
            elif idle_ms < self._max_idle_ms:
                longest_ms = max(longest_ms, idle_ms)
            else:
                self._channels.pop(channel, None)
                self._host.begin_cause("allIdle")
                self._on_idle(channel)
        self._armed = bool(self._channels)
        if self._armed:
            self._host.call_later_ms(self._max_idle_ms - longest_ms, self._check)
