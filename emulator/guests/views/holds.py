"""The queues that a guest's client holds, inferred from its requests: a table with a timeout per kind of request.

The inside of a guest is not visible. A client holds a queue from its first pull on. It has dropped the queue when it
says so (the caller detects that), or when it sends no request about the queue for longer than a client of 5.3.3 that
holds it could. The timeouts follow from the client's constants:

* a client waits 30 s for the answer to a held pull (`consumerTimeoutMillisWhenSuspend`), then 3 s more
  (`pullTimeDelayMillsWhenException`) until it pulls again;
* after an answer without messages it pulls again at once, after an error within those 3 s;
* after an answer with messages it may pause if its cache is full (1000 messages of a queue,
  `pullThresholdForQueue`), until the listener has consumed some. Commits continue meanwhile;
* it commits offsets every 5 s (`persistConsumerOffsetInterval`); the Java client also commits unchanged offsets.
  Once a client has been seen to do so, it has dropped a queue that is missing in a round of commits;
* it renews the locks of ordered queues every 20 s (`rebalanceLockInterval`).

2 s are added for delays. Silence proves nothing while the client sends no request at all (it may be frozen), nor
while the broker is unreachable. A pull by another client ends no hold: that is an overlap.
"""

from collections.abc import Hashable
from enum import Enum, auto

import attrs

from emulator.history.rows.queues import GroupQueue

LATE_MS = 2_000
PULL_UNANSWERED_MS = 30_000 + 3_000 + LATE_MS
"""From an unanswered pull to the next one; also the longest pause of a full cache without a commit."""
PULL_AGAIN_MS = 3_000 + LATE_MS
"""From an answer, or the end of a connection, to the next pull, unless the cache may be full."""
FULL_FROM = 900
"""A cache may be full if the last pull was this far ahead of the last commit; a pull adds at most 32 messages."""
COMMIT_ROUND_MS = 5_000
COMMIT_MS = COMMIT_ROUND_MS + LATE_MS
"""From a commit to the next one."""
ROUNDS_ALONE_MS = 3 * COMMIT_ROUND_MS
"""How long a client that commits in every round may omit its only queue."""
LOCK_MS = 20_000 + LATE_MS
"""From a lock to its renewal."""
ROUND_SPREAD_MS = 1_000
"""The commits of a round are within this time of each other."""
_NEXT_ROUND_MS = COMMIT_ROUND_MS - 500
"""Two commits of a queue that are at least this far apart belong to two rounds."""
_REPEATS_MIN = 2
"""Repeated commits of an unchanged offset that show that a client does this; a single one may be a hand-over."""


class _Pull(Enum):
    """The outcome of the last pull of a queue."""

    WAITS = auto()
    FOUND = auto()
    NOTHING = auto()
    """No messages, an error, or the end of the connection."""


@attrs.define
class _Hold:
    """The state of one queue that is held."""

    offset: int
    """The last commit, or the offset of the first pull."""
    pulled_ms: int
    """Time of the last pull or of its answer."""
    sign_ms: int
    """Time of the last pull or commit."""
    requested: Hashable
    """Identifies the last pull."""
    pulled_offset: int
    pull: _Pull = _Pull.WAITS
    commit_until_ms: int = 0
    lock_until_ms: int = 0
    suppressed_until_ms: int = 0
    committed_ms: int = -1
    """Time of the last commit; -1: none since the queue is held."""
    round_ms: int = -1
    """Time of the last commit in a round; -1: none since the queue is held."""
    repeats: int = 0
    """Rounds in which its last offset was committed again."""

    @property
    def due_ms(self) -> int:
        """When the last timeout of the queue expires."""
        return max(self._pull_until_ms, self.commit_until_ms, self.lock_until_ms, self.suppressed_until_ms)

    @property
    def _pull_until_ms(self) -> int:
        may_be_full = self.pull is _Pull.FOUND and self.pulled_offset - self.offset >= FULL_FROM
        return self.pulled_ms + (PULL_UNANSWERED_MS if self.pull is _Pull.WAITS or may_be_full else PULL_AGAIN_MS)


class Holds:
    """The queues of one client; times are ms of one clock that never goes back."""

    def __init__(self) -> None:
        self._held: dict[GroupQueue, _Hold] = {}
        self._repeats_commits = False

    def __contains__(self, queue: GroupQueue) -> bool:
        return queue in self._held

    def queues(self) -> tuple[GroupQueue, ...]:
        """All held queues, in the order in which they were acquired."""
        return tuple(self._held)

    def offset(self, queue: GroupQueue) -> int:
        """The last commit of a held queue; -1: none."""
        hold = self._held[queue]
        return hold.offset if hold.committed_ms >= 0 else -1

    def pull(self, queue: GroupQueue, requested: Hashable, offset: int, now_ms: int) -> bool:
        """The client pulls a queue; returns whether this acquires the queue.

        Args:
            queue: of a group.
            requested: identifies the pull.
            offset: of the first requested message.
            now_ms: current time.
        """
        hold = self._held.get(queue)
        if hold is None:
            self._held[queue] = _Hold(offset, now_ms, now_ms, requested, offset)
            return True
        hold.pulled_ms = hold.sign_ms = now_ms
        hold.requested, hold.pulled_offset, hold.pull = requested, offset, _Pull.WAITS
        return False

    def answered(self, queue: GroupQueue, requested: Hashable, now_ms: int, *, with_messages: bool) -> None:
        """A pull was answered, or its connection has ended; only the last pull of a queue counts."""
        hold = self._held.get(queue)
        if hold is not None and hold.requested == requested:
            hold.pulled_ms, hold.pull = now_ms, _Pull.FOUND if with_messages else _Pull.NOTHING

    def commit(self, queue: GroupQueue, offset: int, now_ms: int) -> None:
        """The client commits an offset; ignored for a queue that is not held, since a drop also commits."""
        hold = self._held.get(queue)
        if hold is None:
            return
        if hold.committed_ms >= 0 and _NEXT_ROUND_MS <= now_ms - hold.committed_ms <= COMMIT_MS:
            hold.round_ms = now_ms
            hold.repeats = hold.repeats + 1 if offset == hold.offset else 0
            self._repeats_commits = self._repeats_commits or hold.repeats >= _REPEATS_MIN
        hold.offset, hold.committed_ms, hold.sign_ms = offset, now_ms, now_ms
        hold.commit_until_ms = now_ms + COMMIT_MS

    def lock(self, queue: GroupQueue, now_ms: int) -> None:
        """The client requests or renews the lock of a queue."""
        hold = self._held.get(queue)
        if hold is not None:
            hold.lock_until_ms = now_ms + LOCK_MS

    def suppress(self, broker_name: str, now_ms: int) -> None:
        """A broker is unreachable: extend the timeouts of its queues."""
        for queue, hold in self._held.items():
            if queue.broker_name == broker_name:
                hold.sign_ms, hold.suppressed_until_ms = now_ms, now_ms + PULL_AGAIN_MS

    def give_up(self, queue: GroupQueue) -> None:
        """Remove a queue."""
        self._held.pop(queue, None)

    def silent(self, now_ms: int, last_request_ms: int) -> tuple[GroupQueue, ...]:
        """The queues whose timeouts have expired, which the client cannot be holding any more.

        Args:
            now_ms: current time.
            last_request_ms: time of the client's last request of any kind.
        """
        return tuple(queue for queue in self._held if self._is_silent(queue, now_ms, last_request_ms))

    def _is_silent(self, queue: GroupQueue, now_ms: int, last_request_ms: int) -> bool:
        hold = self._held[queue]
        due_ms = hold.due_ms
        if self._repeats_commits and hold.committed_ms >= 0:
            round_ms = max((item.round_ms for other, item in self._held.items() if other != queue), default=-1)
            if hold.sign_ms < round_ms - ROUND_SPREAD_MS and now_ms >= round_ms + ROUND_SPREAD_MS:
                return True
            if round_ms < hold.sign_ms:
                due_ms = min(due_ms, hold.sign_ms + ROUNDS_ALONE_MS)
        return now_ms >= due_ms and last_request_ms >= due_ms - LATE_MS
