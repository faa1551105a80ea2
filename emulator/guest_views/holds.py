"""Which queues a client outside holds: a table of what it asks for, and of how long each request speaks for it.

Nobody sees into a program that is not ours. It holds a queue from its first pull on, and gives it up when it says so
(that is for others to find out), or when it is silent about it for longer than a client of 5.3.3 that holds it can be.
The bounds are made of the client's own constants:

* it waits 30 s for the answer to a pull that the broker holds (`consumerTimeoutMillisWhenSuspend`), then 3 s more
  (`pullTimeDelayMillsWhenException`) until it pulls again;
* a pull that was answered without messages is repeated at once, after an error within those 3 s;
* one that was answered with messages may be the last for a while if it has filled the cache (1000 of a queue,
  `pullThresholdForQueue`): nothing is pulled until the listener has made room. Commits go on meanwhile;
* offsets are committed every 5 s (`persistConsumerOffsetInterval`), by the Java client also where nothing is new.
  Of a client that was seen to do so, a queue that is left out of a round is given up;
* the locks of queues in order are renewed every 20 s (`rebalanceLockInterval`).

2 s are added for what runs late. Silence proves nothing while the client says nothing at all (it may be frozen), nor
while the broker cannot be reached. That somebody else pulls a queue ends nobody's hold: that is an overlap.
"""

from collections.abc import Hashable
from enum import Enum, auto

import attrs

from emulator.state.owners import GroupQueue

LATE_MS = 2_000
PULL_UNANSWERED_MS = 30_000 + 3_000 + LATE_MS
"""From a pull to the next one, where the answer never comes; also how long a full cache may do without a commit."""
PULL_AGAIN_MS = 3_000 + LATE_MS
"""From an answer, or the end of a connection, to the next pull, unless the cache may be full."""
FULL_FROM = 900
"""A cache may be full where the last pull was so far ahead of the last commit: it brought 32 messages more at most."""
COMMIT_ROUND_MS = 5_000
COMMIT_MS = COMMIT_ROUND_MS + LATE_MS
"""From a commit to the next one."""
ROUNDS_ALONE_MS = 3 * COMMIT_ROUND_MS
"""How long a client that commits in every round may leave its only queue out."""
LOCK_MS = 20_000 + LATE_MS
"""From a lock to its renewal."""
ROUND_SPREAD_MS = 1_000
"""Within this before and after a commit of a round are those of all other queues."""
_NEXT_ROUND_MS = COMMIT_ROUND_MS - 500
"""Two commits of a queue, at least so far apart, belong to two rounds: one at a hand-over mostly comes between."""
_REPEATS_MIN = 2
"""Rounds in which one offset was committed again, for a client to be one of that kind: one hand-over looks the same."""


class _Pull(Enum):
    """What became of the last pull of a queue."""

    WAITS = auto()
    FOUND = auto()
    NOTHING = auto()
    """Also an error, and the end of the connection."""


@attrs.define
class _Hold:
    """What is known of one queue."""

    offset: int
    """From which the next message is to be committed: the last commit, or where it began to pull."""
    pulled_ms: int
    """When it was last pulled, or that pull was answered."""
    sign_ms: int
    """When it was last pulled or committed."""
    asked: Hashable
    """The last pull."""
    pulled_offset: int
    pull: _Pull = _Pull.WAITS
    commit_until_ms: int = 0
    lock_until_ms: int = 0
    excused_until_ms: int = 0
    committed_ms: int = -1
    """-1: never since it is held."""
    round_ms: int = -1
    """When it was last committed in a round; -1: never since it is held."""
    repeats: int = 0
    """Rounds so far in which its last offset was committed again."""

    @property
    def due_ms(self) -> int:
        """When silence begins to mean something."""
        return max(self._pull_until_ms, self.commit_until_ms, self.lock_until_ms, self.excused_until_ms)

    @property
    def _pull_until_ms(self) -> int:
        may_be_full = self.pull is _Pull.FOUND and self.pulled_offset - self.offset >= FULL_FROM
        return self.pulled_ms + (PULL_UNANSWERED_MS if self.pull is _Pull.WAITS or may_be_full else PULL_AGAIN_MS)


class Holds:
    """The queues of one client; times are milliseconds of one clock and never go back."""

    def __init__(self) -> None:
        self._held: dict[GroupQueue, _Hold] = {}
        self._repeats_commits = False

    def __contains__(self, queue: GroupQueue) -> bool:
        return queue in self._held

    def queues(self) -> tuple[GroupQueue, ...]:
        """All that are held, in the order in which they were taken."""
        return tuple(self._held)

    def offset(self, queue: GroupQueue) -> int:
        """The last commit of a queue that is held; -1: none."""
        hold = self._held[queue]
        return hold.offset if hold.committed_ms >= 0 else -1

    def pull(self, queue: GroupQueue, asked: Hashable, offset: int, now_ms: int) -> bool:
        """The client asks for messages; returns whether it did not hold the queue before.

        Args:
            asked: tells this pull from all others.
            offset: of the first message that is wanted.
        """
        hold = self._held.get(queue)
        if hold is None:
            self._held[queue] = _Hold(offset, now_ms, now_ms, asked, offset)
            return True
        hold.pulled_ms = hold.sign_ms = now_ms
        hold.asked, hold.pulled_offset, hold.pull = asked, offset, _Pull.WAITS
        return False

    def answered(self, queue: GroupQueue, asked: Hashable, now_ms: int, *, with_messages: bool) -> None:
        """A pull has come to an end, or its connection has; of all but the last one that means nothing."""
        hold = self._held.get(queue)
        if hold is not None and hold.asked == asked:
            hold.pulled_ms, hold.pull = now_ms, _Pull.FOUND if with_messages else _Pull.NOTHING

    def commit(self, queue: GroupQueue, offset: int, now_ms: int) -> None:
        """The client commits; of a queue that it does not hold it says nothing, for who lets go commits, too."""
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
        """The client asks for the order lock of a queue, or renews it."""
        hold = self._held.get(queue)
        if hold is not None:
            hold.lock_until_ms = now_ms + LOCK_MS

    def excuse(self, broker_name: str, now_ms: int) -> None:
        """A broker cannot be reached: nobody can ask it for anything."""
        for queue, hold in self._held.items():
            if queue.broker_name == broker_name:
                hold.sign_ms, hold.excused_until_ms = now_ms, now_ms + PULL_AGAIN_MS

    def give_up(self, queue: GroupQueue) -> None:
        """It is not held any more."""
        self._held.pop(queue, None)

    def silent(self, now_ms: int, said_ms: int) -> tuple[GroupQueue, ...]:
        """The queues that the client cannot be holding any more.

        Args:
            now_ms: the present.
            said_ms: when the client last said anything.
        """
        return tuple(queue for queue in self._held if self._is_silent(queue, now_ms, said_ms))

    def _is_silent(self, queue: GroupQueue, now_ms: int, said_ms: int) -> bool:
        hold = self._held[queue]
        due_ms = hold.due_ms
        if self._repeats_commits and hold.committed_ms >= 0:
            round_ms = max((it.round_ms for other, it in self._held.items() if other != queue), default=-1)
            if hold.sign_ms < round_ms - ROUND_SPREAD_MS and now_ms >= round_ms + ROUND_SPREAD_MS:
                return True
            if round_ms < hold.sign_ms:
                due_ms = min(due_ms, hold.sign_ms + ROUNDS_ALONE_MS)
        return now_ms >= due_ms and said_ms >= due_ms - LATE_MS
