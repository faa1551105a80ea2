"""Waiting until what was written is on the disk, as a broker with synchronous flush does before it answers."""

from nodes.broker.context import BrokerContext

_NS_PER_MS = 1_000_000


class Flush:
    """One wait, which begins when the message has been written.

    Mirrors:
        `org.apache.rocketmq.store.CommitLog.GroupCommitRequest`.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._host = broker.host
        busy_ms, timeout_ms = broker.host.disk.busy_ms(), broker.config.sync_flush_timeout
        self.at_once = not busy_ms
        """Everything is on the disk already: only a slow one makes anybody wait."""
        self._in_time = busy_ms <= timeout_ms
        self._over_ns = broker.host.clock.monotonic_ns() + int(min(busy_ms, timeout_ms) * _NS_PER_MS)

    async def wait(self) -> bool:
        """Returns when it is on the disk, or too late; whether it was in time."""
        if not self.at_once:
            await self._host.sleep_until_ns(self._over_ns)
        return self._in_time
