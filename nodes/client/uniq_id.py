"""The ids that a producer gives its messages."""

from datetime import UTC, datetime

from nodes.host import Host

_LOADER_HASH = 0
"""Tells apart the class loaders of one JVM."""
_COUNTERS = 1 << 16
_INTS = 1 << 32


class UniqIds:
    """Ids of 16 bytes: address, process, time since the month began, counter.

    Mirrors:
        `org.apache.rocketmq.common.message.MessageClientIDSetter`.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._process = f"{bytes(map(int, host.ip.split('.'))).hex()}{host.pid % _COUNTERS:04x}{_LOADER_HASH:08x}"
        self._counter = 0

    def create(self) -> str:
        """The next one, 32 hexadecimal digits."""
        now_ms = self._host.clock.now_ms()
        now = datetime.fromtimestamp(now_ms // 1_000, UTC)
        month_began = now.replace(day=1, hour=0, minute=0, second=0)
        since_ms = now_ms - int(month_began.timestamp()) * 1_000
        made = f"{self._process}{since_ms % _INTS:08x}{self._counter:04x}".upper()
        self._counter = (self._counter + 1) % _COUNTERS
        return made
