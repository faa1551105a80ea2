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

    def watch(self, channel: Channel) -> None:
        """Look after a channel until it is closed."""
        idle_ms = (self._host.clock.monotonic_ns() - channel.last_used_ns) // _NS_PER_MS
        if idle_ms < self._max_idle_ms:
            self._host.call_later_ms(self._max_idle_ms - idle_ms, lambda: self._look(channel))
        else:
            self._host.begin_cause("allIdle")
            self._on_idle(channel)

    def _look(self, channel: Channel) -> None:
        if not channel.closed:
            self.watch(channel)
