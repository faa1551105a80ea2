"""The feed of every open page: the complete state, then changes, five times per second.

The first line of a stream has all sections; every later line has the entries that
changed, `null` for removed ones. Each line is one JSON object:

    {"now_ms": 61200, "faults": {"cut-1": {"what": "cut a <-> b", ...}}, "lines": ["   61.200  ..."]}

When the run ends, the last line is `{"leaving": true}`.
"""

import json
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs
import trio

from emulator.analysis.live_storms import LiveStorms
from emulator.console.session import Session
from emulator.trace.recorder import Row
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, Table
from emulator.web import sections
from emulator.web.sections import Entries
from nodes.beliefs import PROCESS_ENDS

WATCHERS_MAX = 16
LINES_MAX = 500
_PUSH_EVERY_NS = 200_000_000
_WAITING_MAX = 25
"""Messages that wait for one watcher (5 s); a watcher that does not read is dropped, not waited for."""
_NODE = LIFECYCLE.index("node")
_EVENT = LIFECYCLE.index("event")
_KIND, _SUBJECT = BELIEFS.index("kind"), BELIEFS.index("subject")


class TooManyWatchersError(Exception):
    """The maximum number of pages is open."""


@attrs.define(eq=False)
class _Watcher:
    """One open page."""

    messages: trio.MemorySendChannel[bytes]


class Feed:
    """Keeps the shown state, and sends changes to the watchers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._owners_mark = -1
        self._rows: deque[tuple[Table, Row]] = deque(maxlen=LINES_MAX)
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._fixed = sections.fixed(session)
        self._shown: dict[str, Entries] = {name: {} for name in ("nodes", "faults", "links", "views", "queues")}
        self._stale_views: dict[tuple[str, str], None] = {}
        self._rules: object = None
        self._nodes = 0
        self._watchers: list[_Watcher] = []
        self._storms = LiveStorms()
        self._storm_lines: list[str] = []

    def note_batch(self, table: Table, rows: Sequence[Row]) -> None:
        """Update with the next rows of a table; a `BatchListener`."""
        self._storm_lines += self._storms.take(table, rows)

    def note(self, table: Table, row: Row) -> None:
        """Update with a row; a `RowListener`, which must be fast, since nodes wait for it."""
        if table is MESSAGES:
            return
        self._rows.append((table, row))
        if table is BELIEFS:
            self._stale_views[str(row[_KIND]), str(row[_SUBJECT])] = None
        elif table is LIFECYCLE and row[_EVENT] in PROCESS_ENDS:
            self._mark_views_of(str(row[_NODE]))

    async def push(self) -> None:
        """Send changes to all watchers, until cancelled.

        It also runs without watchers; otherwise the first one would make the cluster wait while all rows are formatted.
        """
        while True:
            self._advance()
            world = self._session.cluster.world
            await world.sleep_until_ns(world.timeline.now_ns + _PUSH_EVERY_NS)

    def whole(self) -> Entries:
        """The complete state now."""
        self._advance()
        return {"now_ms": self._session.now_ms, **self._fixed, **self._shown, "lines": list(self._lines)}

    @contextmanager
    def watch(self) -> Iterator[trio.MemoryReceiveChannel[bytes]]:
        """A channel of messages, one line each; it is closed if the watcher does not read.

        Raises:
            TooManyWatchersError: the maximum number of pages is open.
        """
        if len(self._watchers) >= WATCHERS_MAX:
            raise TooManyWatchersError(f"{WATCHERS_MAX} pages are open already")
        sender, receiver = trio.open_memory_channel[bytes](_WAITING_MAX)
        sender.send_nowait(encoded(self.whole()))
        watcher = _Watcher(sender)
        self._watchers.append(watcher)
        try:
            yield receiver
        finally:
            self._drop_watcher(watcher)
            receiver.close()

    def _advance(self) -> None:
        """Update the shown state, and send the changes."""
        changes = {
            "nodes": sections.difference(self._shown["nodes"], sections.nodes(self._session)),
            "faults": sections.difference(self._shown["faults"], sections.faults(self._session)),
            "links": self._changed_links(),
            "views": self._changed_views(),
            "queues": self._changed_queues(),
        }
        for name, entries in changes.items():
            _apply(self._shown[name], entries)
        told = {name: entries for name, entries in changes.items() if entries}
        self._tell({"now_ms": self._session.now_ms, **told, **self._new_lines()})

    def _changed_queues(self) -> Entries:
        owners = self._session.state.owners
        changed, self._owners_mark = owners.changed_since(self._owners_mark)
        return {f"{queue.group}/{queue.name}": sections.queue(owners, queue) for queue in changed}

    def _changed_links(self) -> Entries:
        # There are many pairs of nodes, so links are computed only if a fault or a node came or went.
        rules, count = self._session.cluster.world.fabric.rules, len(self._session.cluster.hosts)
        if rules == self._rules and count == self._nodes:
            return {}
        self._rules, self._nodes = rules, count
        return sections.difference(self._shown["links"], sections.links(self._session))

    def _changed_views(self) -> Entries:
        shown, changed = self._shown["views"], {}
        for kind, subject in self._stale_views:
            key, entry = f"{kind} {subject}", sections.view(self._session, kind, subject)
            if shown.get(key) != entry:
                changed[key] = entry
        self._stale_views = {}
        return changed

    def _mark_views_of(self, node: str) -> None:
        for key, entry in self._shown["views"].items():
            if any(node in camp["nodes"] for camps in entry["roles"].values() for camp in camps):
                self._stale_views[key.partition(" ")[0], entry["subject"]] = None

    def _new_lines(self) -> Entries:
        lines = [line for table, row in self._rows if (line := self._session.lines.line(table, row)) is not None]
        self._rows.clear()
        lines += self._storm_lines
        self._storm_lines.clear()
        self._lines.extend(lines)
        return {"lines": lines} if lines else {}

    def _tell(self, message: Entries) -> None:
        content = encoded(message) if self._watchers else b""
        for watcher in tuple(self._watchers):
            try:
                watcher.messages.send_nowait(content)
            except trio.WouldBlock:
                self._drop_watcher(watcher)

    def _drop_watcher(self, watcher: _Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)
        watcher.messages.close()


def _apply(shown: Entries, changes: Entries) -> None:
    for key, entry in changes.items():
        if entry is None:
            shown.pop(key, None)
        else:
            shown[key] = entry


def encoded(content: Entries) -> bytes:
    """One line of JSON."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
