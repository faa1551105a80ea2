"""What differs in a run that is under way: the oracles' own watchers, asked after every instant.

The definitions of divergence, overlap and orphan are those of `Holdings` and `QueueOwners`; only the moment of the
question is another one. Changes follow from the rows alone: however the rows are divided into deliveries, the changes
are the same. An instant counts when a row of a later one has come, since more rows of it might; or when none has come
for a while (`rest`), for a quiet cluster has no row for seconds.

The lag of a group is what its queues hold for it beyond what it has done (`GroupProgress`). Every message waits a
little, so only those count that are older than half a second. The lag is taken at every half second of emulated time,
not when a row happens to come.

A run can be divided into shares, as for the judge: a watch of a share reads the rows that concern all shares (lives,
beliefs, owners, stored messages), and of the rest those of its groups, and finds what differs in its views, queues and
groups. What is over is forgotten, so the state of a watch grows with what is there, not with the length of the run.
"""

import json
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from emulator.analysis.inputs.busy_pools import BusyPool, BusyPools
from emulator.analysis.inputs.holdings import HeldSubject, HoldersOfValue, Holdings
from emulator.analysis.inputs.messages import TracedMessages
from emulator.analysis.inputs.queue_owners import QueueOwners
from emulator.base.own_values import ForeignValueError, unpickled
from emulator.base.text import shortened
from emulator.history.presence import Presence
from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import RowFeed
from emulator.history.rows.queues import Consumer
from emulator.history.rows.row_classes import maker
from emulator.history.rows.shares import WHOLE, RunShare, share_of_text
from emulator.spec.model.scenario import NAMESERVER
from emulator.state.event_lines import value_in_words, with_names
from emulator.trace.batches import Row
from emulator.trace.schema import BELIEFS, COUNTS, LIFECYCLE, MESSAGES, OWNERSHIP, TABLES
from nodes.beliefs import BeliefKind, MessageEvent
from nodes.units import NS_PER_S

LAG_EVERY_NS = 500_000_000
"""How often the lag of groups is taken; a message that is older counts."""
READS = (LIFECYCLE.name, BELIEFS.name, OWNERSHIP.name, MESSAGES.name)
"""The tables of which a watch needs all columns; of the others it needs the time."""
_KINDS = (BeliefKind.VIEW.value, BeliefKind.SUBSCRIPTION.value)
"""Kinds of beliefs that all shares read; of routes they read those of nameservers."""
_OF_QUEUE = (MessageEvent.STORED.value, MessageEvent.EXPIRED.value)
"""Events of messages that concern all groups."""
_OF_GROUP = (
    *(MessageEvent.CONSUMED.value, MessageEvent.FILTERED.value),
    *(MessageEvent.COMMITTED.value, MessageEvent.RESET.value),
)
_KIND, _ROLE, _NODE = BELIEFS.index("kind"), BELIEFS.index("role"), BELIEFS.index("node")
_SUBJECT, _VALUE = BELIEFS.index("subject"), BELIEFS.index("value")
_EVENT, _GROUP = MESSAGES.index("event"), MESSAGES.index("group")
_VALUE_CHARS = 110
_TIME_CHARS, _WHAT_CHARS = 10, 10


class WatchedDifference(StrEnum):
    """What may be wrong in a run."""

    DIVERGENCE = "divergence"
    """Consumers of a group hold several views of a topic."""
    OVERLAP = "overlap"
    """A queue has several owners."""
    ORPHAN = "orphan"
    """A queue is owed an owner and has none."""
    LAG = "lag"
    """Messages of a group wait."""
    BUSY = "busy"
    """Requests wait for threads of a node, or are refused."""


@attrs.frozen
class DifferenceChange:
    """A difference that began, became another one, or ended."""

    t_ns: int
    what: WatchedDifference
    about: str
    """`g/orders`, `g orders/broker-a/3`, or `g`."""
    since_ns: int
    text: str
    """Who or how much; client ids and addresses are those of the trace."""
    ended: bool = False

    def line(self, names: Mapping[str, str]) -> str:
        """The change as a line for people.

        Args:
            names: mapping address, or client id of a guest -> node.
        """
        return line_of(self, f"{self.about}: {self.said(names)}")

    def said(self, names: Mapping[str, str]) -> str:
        """Who or how much, with names of nodes."""
        return with_names(self.text, names)


def line_of(change: DifferenceChange, text: str) -> str:
    """A line that begins with the time and the kind of a change."""
    return f"{change.t_ns / NS_PER_S:{_TIME_CHARS}.3f}  {change.what:<{_WHAT_CHARS}}  {text}"


@attrs.define
class _LiveLag:
    """The lag of a group."""

    since_ns: int
    reported: int
    maximum: int


def shares_of_row(table: str, row: Row, of: int) -> Sequence[int]:
    """The shares of a run that read a row.

    Args:
        table: of the row; one of `READS`.
        row: its columns.
        of: how many shares there are.
    """
    if table == BELIEFS.name:
        kind, role = row[_KIND], row[_ROLE]
        if kind == BeliefKind.BUSY:
            return (share_of_text(str(row[_NODE]), of),)
        return range(of) if kind in _KINDS or (kind == BeliefKind.ROUTE and role == NAMESERVER) else ()
    if table != MESSAGES.name or row[_EVENT] in _OF_QUEUE:
        return range(of)
    if row[_EVENT] not in _OF_GROUP:
        return ()
    group = str(row[_GROUP])
    # A reset without a group concerns all groups of the queue.
    return (share_of_text(group, of),) if group else range(of)


_OF_A_WATCH = ("emulator.analysis.inputs", "emulator.analysis.live", "emulator.history", "nodes.beliefs")
"""Packages whose values a watch holds."""


class LiveWatch:
    """Follows the rows of a run, and reports what changes.

    Args:
        broker_names: mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name.
        share: the part of the run that is watched.
    """

    def __init__(self, broker_names: Mapping[str, str], share: RunShare = WHOLE) -> None:
        self._share = share
        self._presence = Presence(broker_names)
        # No message reaches these: whether one is consumed again is not asked for.
        self._queues = QueueOwners(self._presence, TracedMessages(self._presence), share)
        self._progress = GroupProgress(self._presence, stored_max=0)
        self._views = Holdings(self._presence, BeliefKind.VIEW, share=share)
        self._pools = BusyPools(self._presence)
        self._feed = RowFeed((self._presence, self._queues, self._progress, self._views, self._pools))
        self._lag_at_ns = LAG_EVERY_NS
        """When the lag is taken next: a multiple of `LAG_EVERY_NS`."""
        self._ends: dict[Consumer, int] = {}
        """Mapping consumer -> the end of what it awaits when the lag was taken last."""
        self._lags: dict[str, _LiveLag] = {}
        self._open: dict[tuple[WatchedDifference, str], DifferenceChange] = {}
        self.rows: Counter[str] = Counter({table.name: 0 for table in TABLES})
        """Mapping table -> number of rows that have been read."""
        self.reached_ns = 0
        """Emulated time of the last row."""
        self._rests = False

    @property
    def differences(self) -> tuple[DifferenceChange, ...]:
        """What differs now, what changed last at the end."""
        return tuple(self._open.values())

    def take(self, table: str, t_ns: int, row: Row | None) -> Iterator[DifferenceChange]:
        """Read the next row; yields what has changed in the instants before it.

        Args:
            table: of the row.
            t_ns: its emulated time.
            row: its columns; None: of a table that is not in `READS`.
        """
        self.rows[table] += 1
        yield from self.reach(reached_by(table, t_ns))
        if row is not None:
            for _ in self._feed.read((_MAKERS[table](row),)):
                pass  # it was settled above

    def reach(self, t_ns: int) -> Iterator[DifferenceChange]:
        """Emulated time has come to an instant, by a row of this share or of another one.

        Yields what has changed in the instants before it.
        """
        self._rests = False
        self.reached_ns = max(self.reached_ns, t_ns)
        for settled_ns in self._feed.reach(t_ns):
            yield from self._look(settled_ns)
        yield from self._look_at_lags_before(t_ns)

    def rest(self, *, time_passes: bool) -> Iterator[DifferenceChange]:
        """No row has come for a while, or none will come any more; yields what has changed in the last instant.

        The same rows with or without rests give the same changes, unless more rows of the last instant come after all.

        Args:
            time_passes: whether a second of emulated time has passed since the last row, so that messages wait.
        """
        for settled_ns in self._feed.settle():
            yield from self._look(settled_ns)
        if time_passes and not self._rests:
            self._rests = True
            yield from self._look_at_lags_before(self.reached_ns + 2 * LAG_EVERY_NS)

    # --- state ----------------------------------------------------------------------------

    def state(self) -> bytes:
        """What `restored` goes on with; only the same release can read it. What is over is forgotten."""
        for item in (self._presence, self._queues, self._progress, self._views, self._pools):
            item.forget()
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def restored(state: bytes) -> "LiveWatch":
        """The watch that `state` was called of.

        Raises:
            ForeignValueError: it is no such state, or names something else than values of a watch.
        """
        watch = unpickled(state, _OF_A_WATCH)
        if not isinstance(watch, LiveWatch):
            raise ForeignValueError(f"no value of this program: a {type(watch).__name__} in the place of a watch")
        return watch

    # --- after an instant -----------------------------------------------------------------

    def _look(self, t_ns: int) -> Iterator[DifferenceChange]:
        for pool in self._pools.take_changed():
            yield from self._look_at_pool(pool, t_ns)
        for about in self._views.changed:
            yield from self._look_at_views(about, t_ns)
        for queue in self._queues.changed:
            now = self._queues.of[queue].now()
            name = f"{queue.group} {queue.name}"
            owners = ", ".join(now.owners)
            yield from self._reported(
                t_ns, WatchedDifference.OVERLAP, name, now.overlap_since_ns, owners, f"now {owners or 'no owner'}"
            )
            then = f"now {owners}" if owners else "it needs none now"
            yield from self._reported(t_ns, WatchedDifference.ORPHAN, name, now.orphan_since_ns, "no owner", then)

    def _look_at_pool(self, pool: BusyPool, t_ns: int) -> Iterator[DifferenceChange]:
        """A node records a busy pool every second; a line reports that it begins, and another one what came of it."""
        about = f"{pool.node} {pool.pool}"
        if pool.end_ns < 0:
            text = "requests wait for threads" if not pool.refused else "requests are refused"
            yield from self._reported(t_ns, WatchedDifference.BUSY, about, pool.start_ns, text, "")
        else:
            refused = ", ".join(f"{count:,} x {reason}" for reason, count in sorted(pool.refused.items())) or "none"
            then = f"longest wait {pool.waited_max_ms:,} ms, refused: {refused}"
            yield from self._reported(t_ns, WatchedDifference.BUSY, about, -1, "", then)

    def _look_at_views(self, about: HeldSubject, t_ns: int) -> Iterator[DifferenceChange]:
        since_ns = self._views.of[about].divergent_since_ns
        text = " | ".join(map(_held, self._views.holders(about))) if since_ns >= 0 else ""
        yield from self._reported(t_ns, WatchedDifference.DIVERGENCE, about.subject, since_ns, text, "all agree")

    def _reported(
        self, t_ns: int, watched_difference: WatchedDifference, about: str, since_ns: int, text: str, afterwards: str
    ) -> Iterator[DifferenceChange]:
        """Report a difference if it has begun, is another one than before, or has ended.

        Args:
            since_ns: since when there is one; -1: there is none.
            text: what is reported about it.
            afterwards: what is reported when it has ended.
        """
        before = self._open.get((watched_difference, about))
        if since_ns < 0:
            if before is not None:
                del self._open[watched_difference, about]
                answer = f"ended after {(t_ns - before.since_ns) / NS_PER_S:.3f} s, {afterwards}"
                yield DifferenceChange(t_ns, watched_difference, about, before.since_ns, answer, ended=True)
        elif before is None or before.text != text or before.since_ns != since_ns:
            self._open.pop((watched_difference, about), None)
            self._open[watched_difference, about] = change = DifferenceChange(
                t_ns, watched_difference, about, since_ns, text
            )
            yield change

    # --- lag ------------------------------------------------------------------------------

    def _look_at_lags_before(self, t_ns: int) -> Iterator[DifferenceChange]:
        """Take the lag at each half second before an instant; all rows of these half seconds have been read."""
        # Nothing more changes without a row after two of them: then all that was stored is old enough.
        for _ in range(2):
            if self._lag_at_ns < t_ns:
                yield from self._look_at_lags(self._lag_at_ns)
                self._lag_at_ns += LAG_EVERY_NS
        self._lag_at_ns = max(self._lag_at_ns, -(-t_ns // LAG_EVERY_NS) * LAG_EVERY_NS)

    def _look_at_lags(self, t_ns: int) -> Iterator[DifferenceChange]:
        waiting: dict[str, Counter[str]] = {}
        ends: dict[Consumer, int] = {}
        for place in self._progress.of.values():
            for of, done, end in place.bounds():
                queue, _ = of
                if not self._share.has_text(queue.group):
                    continue
                ends[of] = end
                # A queue is shorter than before if its broker has lost the end of its log.
                ended = min(self._ends.get(of, 0), end)
                messages = max(0, ended - done) + sum(offset < ended for offset in place.in_flight(of))
                if messages > 0:
                    waiting.setdefault(queue.group, Counter())[queue.name] += messages
        self._ends = ends
        for group in dict.fromkeys((*self._lags, *waiting)):
            yield from self._look_at_lag(group, waiting.get(group, Counter()), t_ns)

    def _look_at_lag(self, group: str, waiting: Counter[str], t_ns: int) -> Iterator[DifferenceChange]:
        """A lag is reported when it begins, whenever it has doubled, and when it is over."""
        messages = waiting.total()
        if not messages:
            maximum = self._lags.pop(group).maximum
            yield from self._reported(t_ns, WatchedDifference.LAG, group, -1, "", f"{maximum:,} messages at most")
            return
        lag = self._lags.setdefault(group, _LiveLag(t_ns, 0, 0))
        lag.maximum = max(lag.maximum, messages)
        if messages >= 2 * lag.reported:
            lag.reported = messages
            yield from self._reported(t_ns, WatchedDifference.LAG, group, lag.since_ns, _amount(waiting), "")


_MAKERS = {table.name: maker(table) for table in (LIFECYCLE, BELIEFS, OWNERSHIP, MESSAGES)}


def reached_by(table: str, t_ns: int) -> int:
    """To which instant emulated time has come with a row: a row of `counts` is about a second that is over."""
    return t_ns + NS_PER_S if table == COUNTS.name else t_ns


def _held(holders_of_value: HoldersOfValue) -> str:
    value = value_in_words(BeliefKind.VIEW, json.loads(holders_of_value.value))
    return f"{', '.join(holders_of_value.nodes)}: {shortened(value, _VALUE_CHARS)}"


def _amount(waiting: Counter[str]) -> str:
    queue, maximum = min(
        waiting.items(), key=lambda item: (-item[1], item[0])
    )  # the first one by name of equally long ones
    return f"{_count(waiting.total(), 'message')} of {_count(len(waiting), 'queue')}, most in {queue} ({maximum:,})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
