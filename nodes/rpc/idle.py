"""Detection of idle connections."""

from collections.abc import Callable

from nodes.host import Channel, Host
from nodes.units import MS_PER_S, NS_PER_MS


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

    def watch(self, channel: Channel) -> None:
        """Watch a channel until it is closed."""
        self._channels[channel] = None
        if not self._armed:
            self._armed = True
            self._host.call_later_ms(self._max_idle_ms, self._check)

    def _check(self) -> None:
        """The one timer for all channels: it fires when the least recently used channel may have become idle."""
        now_ns = self._host.clock.monotonic_ns()
        longest_ms = 0
        for channel in list(self._channels):
            idle_ms = (now_ns - channel.last_used_ns) // NS_PER_MS
            if channel.closed:
                del self._channels[channel]
            elif idle_ms < self._max_idle_ms:
                longest_ms = max(longest_ms, idle_ms)
            else:
                del self._channels[channel]
                self._host.begin_cause("allIdle")
                self._on_idle(channel)
        self._armed = bool(self._channels)
        if self._armed:
            self._host.call_later_ms(self._max_idle_ms - longest_ms, self._check)
