"""Rows reach their readers in order of seq, one instant after the other.

A reader is fed with all rows of an instant before it looks at the state: the state at an instant is the state after all
its rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import chain
from typing import Any, ClassVar, Protocol, runtime_checkable

from emulator.history.rows.row_classes import ROWS, FrameCount, MessageRow
from emulator.history.rows.shares import EVERYWHERE, WHOLE, PartitionedBy, RunShare
from emulator.trace.schema import TraceTable

_EVENT = MessageRow._fields.index("event")


class Watcher:
    """What reads rows: an oracle, or something that oracles ask."""

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.NOTHING
    """How its work is divided among the shares of a run."""
    message_events: ClassVar[tuple[str, ...] | None] = None
    """The events of the messages that it reads, if it reads any; None: all."""
    settles_after_messages: ClassVar[bool] = True
    """Whether it has to settle after an instant in which only messages came, as nearly all instants are."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """Mapping table -> function that takes each of its rows."""
        return {}

    def settle(self, t_ns: int) -> None:
        """All rows of this instant have been read."""

    def finish(self, end_ns: int) -> None:
        """All rows of the run have been read: close what is open."""

    def part(self) -> Any:
        """What a watcher whose work is divided has found in a share, closed, ready for `merge`."""
        raise NotImplementedError

    def merge(self, part: Any) -> None:
        """Take over what `part` returned in a share of the same run."""
        raise NotImplementedError


class RowSource(Protocol):
    """A source of rows."""

    def rows(self, table: TraceTable) -> Iterable[Any]:
        """The rows of a table, in order, as values of its class in `ROWS`."""

    def frames(self) -> Iterable[FrameCount]:
        """How many frames of each kind had which fate in each second, in any order."""


@runtime_checkable
class OrderedRows(Protocol):
    """A source of rows that come in order of seq, whatever their tables."""

    def in_order(self) -> Iterable[Any]:
        """The rows, as values of the classes in `ROWS`."""

    def frames(self) -> Iterable[FrameCount]:
        """As those of `RowSource`."""


Source = RowSource | OrderedRows


class RowFeed:
    """Feeds watchers with the rows of a run as they come.

    Args:
        watchers: each row reaches them in this order; at the end of an instant they settle in the reverse order, so
            that those who ask settle before those who are asked.
        share: the part of the run whose rows come; a message reaches only those whose share of the run it is.
    """

    def __init__(self, watchers: Iterable[Watcher], share: RunShare = WHOLE) -> None:
        every = tuple(watchers)
        settling = [element for element in reversed(every) if type(element).settle is not Watcher.settle]
        self._settle = tuple(element.settle for element in settling)
        self._settle_messages = tuple(element.settle for element in settling if element.settles_after_messages)
        self._readers: dict[type[Any], list[Callable[[Any], None]]] = {}
        self._of_messages: list[tuple[tuple[str, ...] | None, Callable[[Any], None]]] = []
        """The events of messages that a reader reads, and the reader."""
        self._of_event: dict[str, list[Callable[[Any], None]]] = {}
        for item in every:
            for table, read in item.readers().items():
                row_class = ROWS[table]
                is_partitioned = row_class is MessageRow and share.of > 1
                mine = _of_share(read, item.partitioned_by, share) if is_partitioned else read
                self._readers.setdefault(row_class, []).append(mine)
                if row_class is MessageRow:
                    self._of_messages.append((item.message_events, mine))
        self._t_ns = -1
        """The instant that has not been settled yet; -1: there is none."""
        self._only_messages = True
        """Whether only messages have come in that instant."""

    @property
    def tables(self) -> tuple[TraceTable, ...]:
        """The tables that any watcher reads, in the order of `ROWS`."""
        return tuple(table for table, row_class in ROWS.items() if row_class in self._readers)

    def read(self, rows: Iterable[Any]) -> Iterator[int]:
        """Read rows in order of seq; yields each instant after it was settled.

        The last instant is not settled, since more rows of it may follow; see `settle`.
        """
        readers, of_event = self._readers, self._of_event
        for row in rows:
            if row[1] != self._t_ns:
                yield from self.settle()
                self._t_ns = row[1]
            row_class = type(row)
            if row_class is MessageRow:
                found = of_event.get(row[_EVENT]) or self._readers_of(row[_EVENT])
            else:
                self._only_messages = False
                found = readers[row_class]
            for read in found:
                read(row)

    def _readers_of(self, event: str) -> list[Callable[[Any], None]]:
        """Those that read the messages with an event, which come for the first time."""
        found = [read for events, read in self._of_messages if events is None or event in events]
        self._of_event[event] = found
        return found

    def reach(self, t_ns: int) -> Iterator[int]:
        """Settle the last instant if time has passed it, as a row that no watcher reads may report; yields it then."""
        if self._t_ns < t_ns:
            yield from self.settle()

    def settle(self) -> Iterator[int]:
        """Settle the last instant, of which all rows have been read; yields it, if there is one."""
        t_ns = self._t_ns
        if t_ns >= 0:
            self._t_ns = -1
            for settle in self._settle_messages if self._only_messages else self._settle:
                settle(t_ns)
            self._only_messages = True
            yield t_ns


def _of_share(read: Callable[[Any], None], by: PartitionedBy, share: RunShare) -> Callable[[Any], None]:
    """A reader of the messages of a share: one that comes for its queue is not read by its key, too."""

    def by_queue(row: MessageRow) -> None:
        if share.has_queue(row.topic, row.broker_name, row.queue_id) or row.event in EVERYWHERE:
            read(row)

    def by_key(row: MessageRow) -> None:
        if share.has_text(row.key):
            read(row)

    return {PartitionedBy.QUEUE: by_queue, PartitionedBy.KEY: by_key}.get(by, read)


def watch(source: Source, watchers: Iterable[Watcher], share: RunShare = WHOLE) -> None:
    """Feed watchers with all rows of a run, or of a share of it, once, in order of seq.

    Args:
        source: of the rows.
        watchers: in the order of `RowFeed`.
        share: whose rows they are.
    """
    feed = RowFeed(watchers, share)
    _feed_all(feed, _in_order(source, feed.tables))


def feed_all(watchers: Iterable[Watcher], rows: Iterable[Any]) -> None:
    """As `watch`, with some rows of tables that the watchers read, in order of seq."""
    _feed_all(RowFeed(watchers), rows)


def _feed_all(feed: RowFeed, rows: Iterable[Any]) -> None:
    for _ in chain(feed.read(rows), feed.settle()):
        pass


def _in_order(source: Source, tables: Iterable[TraceTable]) -> Iterable[Any]:
    if not isinstance(source, OrderedRows):
        return merge(*(source.rows(table) for table in tables))
    classes = frozenset(ROWS[table] for table in tables)
    return (row for row in source.in_order() if type(row) in classes)
