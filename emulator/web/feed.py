"""The feed of every open page: the complete state, then changes, five times per second.

The first line of a stream has all sections; every later line has the entries that
changed, `null` for removed ones. Each line is one JSON object:

    {"now_ms": 61200, "faults": {"cut-1": {"what": "cut a <-> b", ...}}, "lines": ["   61.200  ..."]}

When the run ends, the last line is `{"leaving": true}`. What the sections of `PAST` were before can be asked for,
from `from_ms` on.
"""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs
import trio

from emulator.analysis.inputs.facts import facts_of
from emulator.analysis.live.load import LiveLoad
from emulator.analysis.live.storms import LiveStorms
from emulator.console.session import Session
from emulator.spec.model.scenario import NAMESERVER
from emulator.trace.batches import Row
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, TraceTable
from emulator.web import sections
from emulator.web.heartbeats import LastHeartbeats
from emulator.web.history import History
from emulator.web.marks import Marks
from emulator.web.offers import offers
from emulator.web.seconds import Seconds
from emulator.web.sections import Entries, apply
from nodes.beliefs import PROCESS_ENDS, BeliefKind

PAST = ("nodes", "faults", "links", "views", "queues", "nameservers", "heard")
"""Sections of which the feed knows what they were before."""
WATCHERS_MAX = 16
LINES_MAX = 500
_PUSH_EVERY_NS = 200_000_000
_WAITING_MAX = 25
"""Messages that wait for one watcher (5 s); a watcher that does not read is dropped, not waited for."""
_NODE = LIFECYCLE.index("node")
_EVENT = LIFECYCLE.index("event")
_ROLE, _KIND, _SUBJECT = BELIEFS.index("role"), BELIEFS.index("kind"), BELIEFS.index("subject")


class TooManyWatchersError(Exception):
    """The maximum number of pages is open."""


@attrs.define(eq=False)
class _Watcher:
    """One open page."""

    messages: trio.MemorySendChannel[bytes]


class PageFeed:
    """Keeps the shown state, and sends changes to the watchers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._owners_mark = -1
        self._rows: deque[tuple[TraceTable, Row]] = deque(maxlen=LINES_MAX)
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._fixed = sections.fixed(session)
        self._shown: dict[str, Entries] = {name: {} for name in (*PAST, "offers", "marks", "seconds")}
        self._history = History()
        self._stale_views: dict[tuple[str, str], None] = {}
        self._rules: object = None
        self._nodes = 0
        self._watchers: list[_Watcher] = []
        self._storms = LiveStorms()
        self._storm_lines: list[str] = []
        self._stale_nameservers = False
        self._load = LiveLoad(facts_of(session.cluster.scenario, 0).broker_names)
        self._load_rows: list[tuple[TraceTable, Row]] = []
        self._heartbeats = LastHeartbeats()
        self._marks = Marks()
        self._seconds = Seconds()
        self._trouble: dict[str, int] = {}
        self._troubles: dict[int, dict[str, int]] = {}
        """Mapping second -> the most trouble in it, of the seconds whose load was not taken."""

    def on_batch(self, table: TraceTable, rows: Sequence[Row]) -> None:
        """Update with the next rows of a table; a `BatchListener`."""
        for change in self._storms.take(table, rows):
            self._storm_lines.append(change.line)
            self._marks.on_storm(change)
        self._load.take_frames(table, rows)
        self._heartbeats.take(table, rows)

    def note(self, table: TraceTable, row: Row) -> None:
        """Update with a row; a `RowListener`, which must be fast, since nodes wait for it."""
        self._load_rows.append((table, row))
        if table is MESSAGES:
            return
        self._rows.append((table, row))
        self._marks.note(table, row)
        if table is BELIEFS:
            self._stale_views[str(row[_KIND]), str(row[_SUBJECT])] = None
            if row[_ROLE] == NAMESERVER or row[_KIND] == BeliefKind.NAMESERVER:
                self._stale_nameservers = True
        elif table is LIFECYCLE and row[_EVENT] in PROCESS_ENDS:
            self._mark_views_of(str(row[_NODE]))
            self._stale_nameservers = True

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
        return {**self._now(), **self._fixed, **self._shown, "lines": list(self._lines)}

    def past(self, at_ms: int) -> Entries:
        """The sections of `PAST` as they were at an instant, or at the first one that is known."""
        self._advance()
        known_ms = max(at_ms, self._history.from_ms)
        found = self._history.at(known_ms)
        return {"at_ms": min(known_ms, self._session.now_ms), **{name: found.get(name, {}) for name in PAST}}

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
            "nameservers": self._changed_nameservers(),
            "heard": self._heard(),
        }
        for name, entries in changes.items():
            apply(self._shown[name], entries)
        self._history.note(self._session.now_ms, changes)
        further = {"offers": self._changed_offers(changes), "marks": self._marks.take_changed(self._session.now_ms)}
        further["seconds"] = self._changed_seconds(changes)
        for name, entries in further.items():
            apply(self._shown[name], entries)
        reported = {name: entries for name, entries in {**changes, **further}.items() if entries}
        self._send({**self._now(), **reported, **self._new_lines()})

    def _now(self) -> Entries:
        return {"now_ms": self._session.now_ms, "from_ms": self._history.from_ms}

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

    def _changed_nameservers(self) -> Entries:
        if not self._stale_nameservers:
            return {}
        self._stale_nameservers = False
        hosts = self._session.cluster.hosts.values()
        now = {host.name: sections.nameserver(self._session, host.name) for host in hosts if host.role == NAMESERVER}
        return sections.difference(self._shown["nameservers"], now)

    def _heard(self) -> Entries:
        changed, self._heartbeats.changed = self._heartbeats.changed, {}
        return changed

    def _changed_offers(self, changes: Mapping[str, Entries]) -> Entries:
        if not changes["faults"] and not changes["links"]:
            return {}
        active, links = self._session.operator.active.values(), self._shown["links"]
        return sections.difference(self._shown["offers"], offers(active, links, self._session.cluster.hosts))

    def _changed_seconds(self, changes: Mapping[str, Entries]) -> Entries:
        for table, row in self._load_rows:
            self._load.note(table, row)
        self._load_rows.clear()
        if changes["queues"] or changes["views"]:
            self._trouble = sections.trouble(self._shown["queues"], self._shown["views"], self._fixed["broadcasting"])
        now_ms = self._session.now_ms
        maximum = self._troubles.setdefault(now_ms // 1_000, {})
        maximum |= {name: max(number, maximum.get(name, 0)) for name, number in self._trouble.items()}
        loads = self._load.take(now_ms * 1_000_000)
        for load in loads:
            self._seconds.note(load, self._troubles.pop(load.second, {}))
        return sections.difference(self._shown["seconds"], self._seconds.entries) if loads else {}

    def _mark_views_of(self, node: str) -> None:
        for key, entry in self._shown["views"].items():
            if any(node in holders["nodes"] for all_holders in entry["roles"].values() for holders in all_holders):
                self._stale_views[key.partition(" ")[0], entry["subject"]] = None

    def _new_lines(self) -> Entries:
        lines = [line for table, row in self._rows if (line := self._session.lines.line(table, row)) is not None]
        self._rows.clear()
        lines += self._storm_lines
        self._storm_lines.clear()
        self._lines.extend(lines)
        return {"lines": lines} if lines else {}

    def _send(self, message: Entries) -> None:
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


def encoded(content: Entries) -> bytes:
    """One line of JSON."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
