"""Connections that carry nothing for long are closed."""

from collections.abc import Callable

from nodes.host import Channel, Host

_MS_PER_S = 1_000
_NS_PER_MS = 1_000_000


class IdleWatch:
    """Tells when a channel has carried nothing in either direction for too long.

    Args:
        max_idle_s: how long that is.
        on_idle: what to do about it, once per channel.

    Mirrors:
        `io.netty.handler.timeout.IdleStateHandler` with an all-idle time.
    """

    def __init__(self, host: Host, max_idle_s: int, on_idle: Callable[[Channel], None]) -> None:
        self._host = host
        self._max_idle_ms = max_idle_s * _MS_PER_S
        self._on_idle = on_idle
        self._channels: dict[Channel, None] = {}
        self._armed = False

    def watch(self, channel: Channel) -> None:
        """Look after a channel until it is closed."""
        self._channels[channel] = None
        if not self._armed:
            self._armed = True
            self._host.call_later_ms(self._max_idle_ms, self._look)

    def _look(self) -> None:
        """One timer for all channels: it fires when the one that was used longest ago may have become idle."""
        now_ns = self._host.clock.monotonic_ns()
        longest_ms = 0
        for channel in list(self._channels):
            idle_ms = (now_ns - channel.last_used_ns) // _NS_PER_MS
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
            self._host.call_later_ms(self._max_idle_ms - longest_ms, self._look)
