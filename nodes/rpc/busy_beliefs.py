"""What shows in the trace that a node is busy: requests that wait for long, and requests that it refuses."""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from functools import partial

import attrs

from nodes.beliefs import Belief, BeliefKind
from nodes.host import Host

LONG_WAIT_MS = 100
"""A request that has waited this long shows that its pool is busy; half of what a send may wait."""
_RECORD_PERIOD_MS = 1_000


class BusyReason(StrEnum):
    """Why a request is refused; the text stands at the beginning of the answer's remark."""

    REJECT_REQUEST = "REJECTREQUEST"
    """The page cache is busy, or no buffer of the log is free."""
    OVERLOAD = "OVERLOAD"
    """The queue of its pool is full."""
    TIMEOUT = "TIMEOUT_CLEAN_QUEUE"
    """It has waited for too long."""
    SYNCHRONIZED = "PC_SYNCHRONIZED"
    """The page cache became busy while a thread was busy with it."""
    PAGE_CACHE_BUSY = "PCBUSY_CLEAN_QUEUE"
    """It waited when the page cache became busy."""


@attrs.define
class _Second:
    """What has happened to a pool since the last record."""

    begun: int = 0
    waited_max_ms: int = 0
    refused: Counter[BusyReason] = attrs.field(factory=Counter)

    @property
    def is_quiet(self) -> bool:
        return not self.refused and self.waited_max_ms < LONG_WAIT_MS


class BusyBeliefs:
    """Records busy pools: at once when one becomes busy, then every second, and when it is not busy any more.

    Args:
        head_wait_ms: returns how many requests of a pool wait, and for how long the first one has.

    Emits:
        BUSY.
    """

    def __init__(self, host: Host, head_wait_ms: Callable[[StrEnum], tuple[int, int]]) -> None:
        self._host = host
        self._head_wait_ms = head_wait_ms
        self._busy: dict[StrEnum, _Second] = {}

    def on_begun(self, name: StrEnum, waited_ms: int) -> None:
        """A request that has waited is begun."""
        second = self._busy.get(name)
        if second is None and waited_ms >= LONG_WAIT_MS:
            second = self._begin(name)
        if second is not None:
            second.begun += 1
            second.waited_max_ms = max(second.waited_max_ms, waited_ms)

    def on_refused(self, name: StrEnum, reason: BusyReason, waited_ms: int = 0) -> None:
        """A request is refused, after a wait or at once."""
        second = self._busy.get(name) or self._begin(name)
        second.refused[reason] += 1
        second.waited_max_ms = max(second.waited_max_ms, waited_ms)

    def _begin(self, name: StrEnum) -> _Second:
        second = self._busy[name] = _Second()
        self._host.call_later_ms(0, partial(self._record, name))
        return second

    def _record(self, name: StrEnum) -> None:
        """Record what has happened since the last record; after a second without anything, that it is quiet again."""
        second = self._busy[name]
        waiting, head_wait_ms = self._head_wait_ms(name)
        waited_max_ms = max(second.waited_max_ms, head_wait_ms)
        if second.is_quiet and head_wait_ms < LONG_WAIT_MS:
            del self._busy[name]
            self._host.record(Belief(BeliefKind.BUSY, name.value, None))
            return
        refused = {reason.value: second.refused[reason] for reason in BusyReason if second.refused[reason]}
        value = {"waiting": waiting, "waited_max_ms": waited_max_ms, "refused": refused}
        self._host.record(Belief(BeliefKind.BUSY, name.value, value))
        self._busy[name] = _Second()
        self._host.call_later_ms(_RECORD_PERIOD_MS, partial(self._record, name))
