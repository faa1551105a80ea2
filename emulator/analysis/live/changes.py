"""What differs in a run that is under way: the oracles' own watchers, asked after every instant.

The definitions of divergence, overlap and orphan are those of `Holdings` and `QueueOwners`; only the moment of the
question is another one. Changes follow from the rows alone: however the rows are divided into deliveries, the changes
are the same. An instant counts when a row of a later one has come, since more rows of it might; or when none has come
for a while (`rest`), for a quiet cluster has no row for seconds.

The lag of a group is what its queues hold beyond what it has done (`Progress`). Every message waits a little, so only
those count that are older than half a second.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

import attrs

from emulator.analysis.inputs.holdings import HoldersOfValue, Holdings, Subject
from emulator.analysis.inputs.messages import Messages, queue_place
from emulator.analysis.inputs.presence import Presence
from emulator.analysis.inputs.progress import Progress
from emulator.analysis.inputs.queue_owners import QueueOwners
from emulator.analysis.rows.feed import Feed
from emulator.analysis.rows.row_classes import maker
from emulator.base.text import shortened
from emulator.state.event_lines import value_in_words, with_names
from emulator.state.owners import GroupQueue
from emulator.trace.batches import Row
from emulator.trace.schema import COUNTS, TABLES
from nodes.beliefs import BeliefKind

LAG_EVERY_NS = 500_000_000
"""How often the lag of groups is taken; a message that is older counts."""
_NS = 1_000_000_000
_VALUE_CHARS = 110
_TIME_CHARS, _WHAT_CHARS = 10, 10


class Difference(StrEnum):
    """What may be wrong in a run."""

    DIVERGENCE = "divergence"
    """Consumers of a group hold several views of a topic."""
    OVERLAP = "overlap"
    """A queue has several owners."""
    ORPHAN = "orphan"
    """A queue is owed an owner and has none."""
    LAG = "lag"
    """Messages of a group wait."""


@attrs.frozen
class Change:
    """A difference that began, became another one, or ended."""

    t_ns: int
    what: Difference
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
        return f"{self.t_ns / _NS:{_TIME_CHARS}.3f}  {self.what:<{_WHAT_CHARS}}  {self.about}: {self.said(names)}"

    def said(self, names: Mapping[str, str]) -> str:
        """Who or how much, with names of nodes."""
        return with_names(self.text, names)


@attrs.define
class _Lag:
    """The lag of a group."""

    since_ns: int
    told: int
    most: int


class LiveWatch:
    """Follows the rows of a run, and tells what changes.

    Args:
        broker_names: mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name.
    """

    def __init__(self, broker_names: Mapping[str, str]) -> None:
        presence = Presence(broker_names)
        self._messages = Messages(presence)
        self._queues = QueueOwners(presence, self._messages)
        self._progress = Progress(presence)
        self._views = Holdings(presence, BeliefKind.VIEW)
        self._feed = Feed((presence, self._messages, self._queues, self._progress, self._views))
        self._makers = {table.name: maker(table) for table in self._feed.tables}
        self._lag_at_ns = LAG_EVERY_NS
        self._ends: dict[GroupQueue, int] = {}
        """Mapping queue -> its end when the lag was taken last."""
        self._lags: dict[str, _Lag] = {}
        self._open: dict[tuple[Difference, str], Change] = {}
        self.rows: Counter[str] = Counter({table.name: 0 for table in TABLES})
        """Mapping table -> number of rows that have been read."""
        self.reached_ns = 0
        """Emulated time of the last row."""
        self._rests = False

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables of which it needs all columns; of the others it needs the time."""
        return tuple(self._makers)

    @property
    def differences(self) -> tuple[Change, ...]:
        """What differs now, what changed last at the end."""
        return tuple(self._open.values())

    def take(self, table: str, t_ns: int, row: Row | None) -> Iterator[Change]:
        """Read the next row; yields what has changed in the instants before it.

        Args:
            table: of the row.
            t_ns: its emulated time.
            row: its columns; None: of a table that is not in `reads`.
        """
        self.rows[table] += 1
        if table == COUNTS.name:
            t_ns += _NS  # it is about a second that is over
        if t_ns >= self.reached_ns + LAG_EVERY_NS:
            yield from self.rest(time_passes=True)
        self._rests = False
        self.reached_ns = max(self.reached_ns, t_ns)
        for settled_ns in self._feed.reach(t_ns):
            yield from self._look(settled_ns)
        if t_ns >= self._lag_at_ns:
            yield from self._look_at_lags(t_ns)
        if row is not None:
            for _ in self._feed.read((self._makers[table](row),)):
                pass  # it was settled above

    def rest(self, *, time_passes: bool) -> Iterator[Change]:
        """No row has come for a while, or none will come any more; yields what has changed in the last instant.

        The same rows with or without rests give the same changes, unless more rows of the last instant come after all.

        Args:
            time_passes: whether half a second of emulated time has passed since the last row, so that messages wait.
        """
        for settled_ns in self._feed.settle():
            yield from self._look(settled_ns)
        if time_passes and not self._rests:
            self._rests = True
            self._note_ends()  # all that has been stored is old enough
            yield from self._look_at_lags(self.reached_ns + LAG_EVERY_NS)

    # --- after an instant -----------------------------------------------------------------

    def _look(self, t_ns: int) -> Iterator[Change]:
        for about in self._views.changed:
            yield from self._look_at_views(about, t_ns)
        for queue in self._queues.changed:
            now = self._queues.of[queue].now()
            name = f"{queue.group} {queue.name}"
            owners = ", ".join(now.owners)
            yield from self._told(
                t_ns, Difference.OVERLAP, name, now.overlap_since_ns, owners, f"now {owners or 'no owner'}"
            )
            then = f"now {owners}" if owners else "it needs none now"
            yield from self._told(t_ns, Difference.ORPHAN, name, now.orphan_since_ns, "no owner", then)

    def _look_at_views(self, about: Subject, t_ns: int) -> Iterator[Change]:
        since_ns = self._views.of[about].divergent_since_ns
        text = " | ".join(map(_held, self._views.holders(about))) if since_ns >= 0 else ""
        yield from self._told(t_ns, Difference.DIVERGENCE, about.subject, since_ns, text, "all agree")

    def _told(
        self, t_ns: int, what: Difference, about: str, since_ns: int, text: str, afterwards: str
    ) -> Iterator[Change]:
        """Tell a difference if it has begun, is another one than before, or has ended.

        Args:
            since_ns: since when there is one; -1: there is none.
            text: what is told of it.
            afterwards: what is told when it has ended.
        """
        before = self._open.get((what, about))
        if since_ns < 0:
            if before is not None:
                del self._open[what, about]
                said = f"ended after {(t_ns - before.since_ns) / _NS:.3f} s, {afterwards}"
                yield Change(t_ns, what, about, before.since_ns, said, ended=True)
        elif before is None or before.text != text or before.since_ns != since_ns:
            self._open.pop((what, about), None)
            self._open[what, about] = change = Change(t_ns, what, about, since_ns, text)
            yield change

    # --- lag ------------------------------------------------------------------------------

    def _look_at_lags(self, t_ns: int) -> Iterator[Change]:
        self._lag_at_ns = t_ns + LAG_EVERY_NS
        waiting: dict[str, Counter[str]] = {}
        for (queue, _), done in self._progress.done():
            end = self._messages.end(queue_place(queue))
            # A queue is shorter than before if its broker has lost the end of its log.
            messages = min(self._ends.get(queue, 0), end) - done
            if messages > 0:
                waiting.setdefault(queue.group, Counter())[queue.name] += messages
        self._note_ends()
        for group in dict.fromkeys((*self._lags, *waiting)):
            yield from self._look_at_lag(group, waiting.get(group, Counter()), t_ns)

    def _note_ends(self) -> None:
        self._ends = {queue: self._messages.end(queue_place(queue)) for (queue, _), _ in self._progress.done()}

    def _look_at_lag(self, group: str, waiting: Counter[str], t_ns: int) -> Iterator[Change]:
        """A lag is told when it begins, whenever it has doubled, and when it is over."""
        messages = waiting.total()
        if not messages:
            most = self._lags.pop(group).most
            yield from self._told(t_ns, Difference.LAG, group, -1, "", f"{most:,} messages at most")
            return
        lag = self._lags.setdefault(group, _Lag(t_ns, 0, 0))
        lag.most = max(lag.most, messages)
        if messages >= 2 * lag.told:
            lag.told = messages
            yield from self._told(t_ns, Difference.LAG, group, lag.since_ns, _amount(waiting), "")


def _held(one: HoldersOfValue) -> str:
    value = value_in_words(BeliefKind.VIEW, json.loads(one.value))
    return f"{', '.join(one.nodes)}: {shortened(value, _VALUE_CHARS)}"


def _amount(waiting: Counter[str]) -> str:
    ((queue, most),) = waiting.most_common(1)
    return f"{_count(waiting.total(), 'message')} of {_count(len(waiting), 'queue')}, most in {queue} ({most:,})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
