"""How often messages of a broker's log were asked for, second by second.

Mirrors:
    `org.apache.rocketmq.store.StoreStatsService`.
"""

from collections import deque

_MS_PER_S = 1_000
_SECONDS_MAX = 601
"""RocketMQ has as many samples, one a second."""
_FOUND, _MISSED, _TRANSFERRED = 1, 2, 3


class StoreStats:
    """Counts of reads; lost with the process."""

    def __init__(self) -> None:
        self._seconds: deque[list[int]] = deque(maxlen=_SECONDS_MAX)
        """[second, reads that found messages, reads that found none, messages], the newest last."""
        self._newest = [-1, 0, 0, 0]

    def found(self, messages: int, now_ms: int) -> None:
        """Count a read that found messages."""
        number, second = now_ms // _MS_PER_S, self._newest
        if second[0] < number:
            second = self._begin(number)
        second[_FOUND] += 1
        second[_TRANSFERRED] += messages

    def missed(self, now_ms: int) -> None:
        """Count a read that found none."""
        number, second = now_ms // _MS_PER_S, self._newest
        if second[0] < number:
            second = self._begin(number)
        second[_MISSED] += 1

    def _begin(self, number: int) -> list[int]:
        """The counts of another second; while the wall clock is behind the newest one, that goes on."""
        self._newest = [number, 0, 0, 0]
        self._seconds.append(self._newest)
        return self._newest

    def found_tps(self, span_s: int, now_ms: int) -> float:
        """Reads per second that found messages, in the whole seconds before the present one."""
        return self._tps(_FOUND, span_s, now_ms)

    def missed_tps(self, span_s: int, now_ms: int) -> float:
        """The same of reads that found none."""
        return self._tps(_MISSED, span_s, now_ms)

    def transferred_tps(self, span_s: int, now_ms: int) -> float:
        """The same of the messages found."""
        return self._tps(_TRANSFERRED, span_s, now_ms)

    def _tps(self, count: int, span_s: int, now_ms: int) -> float:
        present = now_ms // _MS_PER_S
        return sum(each[count] for each in self._seconds if present - span_s <= each[0] < present) / span_s
