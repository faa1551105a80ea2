"""Where two runs differ in what nodes believe and in who owns which queue, instant by instant.

Only what is held at the end of an instant counts, and only where the node lives in both runs: that a node is dead in
one of them is no belief. Values are compared with names of nodes in place of addresses and client ids, since client
ids depend on the instants of starts.
"""

import json
from collections.abc import Iterator
from heapq import merge
from itertools import groupby
from typing import Any

import attrs

from emulator.comparison.rows import READING
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, LIFECYCLE, OWNERSHIP, TraceTable
from emulator.why.words import NodeNames
from nodes.beliefs import PROCESS_ENDS, BeliefKind, LifecycleEvent, OwnershipEvent

OWNERS = "owners"
"""Kind of a difference about the owners of a queue; its subject is `TOPIC/BROKER/ID of GROUP`."""
_COLUMNS = {
    BELIEFS.name: ["seq", "t_ns", "node", "kind", "subject", "value"],
    OWNERSHIP.name: ["seq", "t_ns", "node", "event", "group", "topic", "broker_name", "queue_id"],
    LIFECYCLE.name: ["seq", "t_ns", "node", "event"],
}
_ENDS = tuple(event.value for event in PROCESS_ENDS)


@attrs.frozen
class About:
    """What is held: the holder, the kind, the subject."""

    node: str
    """Empty for the owners of a queue."""
    kind: str
    """A `BeliefKind`, or `OWNERS`."""
    subject: str


@attrs.frozen
class HeldInRun:
    """What a run holds about something."""

    value: str
    """Text that is equal in both runs if they hold the same."""
    t_ns: int
    """Since when."""
    seq: int
    """Of the row with which it began."""


@attrs.frozen
class HeldDifference:
    """A time in which two runs held different things about the same."""

    about: About
    begin_ns: int
    end_ns: int | None
    """None: until the shorter of the two runs ended."""
    first: HeldInRun | None
    """What the first run held at the beginning; None: nothing."""
    second: HeldInRun | None

    def lasts_ns(self, until_ns: int) -> int:
        """How long it lasted.

        Args:
            until_ns: end of the shorter run.
        """
        return (until_ns if self.end_ns is None else self.end_ns) - self.begin_ns


def held_differences(
    first: RunDirectory, second: RunDirectory, names: tuple[NodeNames, NodeNames]
) -> tuple[HeldDifference, ...]:
    """All times in which two runs held different things about the same, in the order in which they began.

    Args:
        first: a run.
        second: another one.
        names: of the nodes of each.
    """
    sides = (_BeliefsOfRun(names[0]), _BeliefsOfRun(names[1]))
    differences = _Differences(sides)
    until_ns = min(first.end_ns, second.end_ns)
    tagged = (_tagged(first, 0), _tagged(second, 1))
    for t_ns, rows in groupby(merge(*tagged, key=lambda row: row[0]), key=lambda row: row[0]):
        if t_ns > until_ns:
            break
        for _, number, table, row in rows:
            differences.touched |= dict.fromkeys(sides[number].note(table, row))
        differences.judge(t_ns)
    return differences.all()


def _tagged(run: RunDirectory, number: int) -> Iterator[tuple[int, int, str, dict[str, Any]]]:
    """(t_ns, number of the run, table, row) for the rows of a run, in order."""

    def of(table: TraceTable) -> Iterator[tuple[str, dict[str, Any]]]:
        for part in run.trace.tables(table, columns=_COLUMNS[table.name], **READING):
            yield from ((table.name, row) for row in part.to_pylist())

    rows = merge(*map(of, (BELIEFS, OWNERSHIP, LIFECYCLE)), key=lambda found: found[1]["seq"])
    return ((int(row["t_ns"]), number, table, row) for table, row in rows)


class _BeliefsOfRun:
    """What one run holds at an instant."""

    def __init__(self, names: NodeNames) -> None:
        self._names = names
        self.held: dict[About, HeldInRun] = {}
        self.alive: dict[str, None] = {}
        self._owners: dict[About, dict[str, None]] = {}

    def note(self, table: str, row: dict[str, Any]) -> tuple[About, ...]:
        """Take in a row; returns what it may have changed."""
        if table == BELIEFS.name:
            return self._believes(row)
        if table == OWNERSHIP.name:
            return self._owns(row)
        return self._lives(row)

    def _believes(self, row: dict[str, Any]) -> tuple[About, ...]:
        about = About(row["node"], row["kind"], row["subject"])
        if row["value"] == "null":
            self.held.pop(about, None)
        else:
            self.held[about] = HeldInRun(_comparable(about.kind, row["value"], self._names), row["t_ns"], row["seq"])
        return (about,)

    def _owns(self, row: dict[str, Any]) -> tuple[About, ...]:
        if row["event"] not in (OwnershipEvent.ACQUIRED, OwnershipEvent.DROPPED):
            return ()
        about = About("", OWNERS, f"{row['topic']}/{row['broker_name']}/{row['queue_id']} of {row['group']}")
        owners = self._owners.setdefault(about, {})
        if row["event"] == OwnershipEvent.ACQUIRED:
            owners[row["node"]] = None
        else:
            owners.pop(row["node"], None)
        self._owners_text(about, row)
        return (about,)

    def _lives(self, row: dict[str, Any]) -> tuple[About, ...]:
        node, event = row["node"], row["event"]
        if event == LifecycleEvent.STARTED:
            self.alive[node] = None
        elif event in _ENDS:
            self.alive.pop(node, None)
        else:
            return ()
        lost = [about for about in self.held if about.node == node]
        for about in lost:
            del self.held[about]
        owned = [about for about, owners in self._owners.items() if node in owners]
        for about in owned:
            del self._owners[about][node]
            self._owners_text(about, row)
        return (*lost, *owned, About(node, "", ""))

    def _owners_text(self, about: About, row: dict[str, Any]) -> None:
        owners = " and ".join(sorted(self._owners[about])) or "no consumer"
        self.held[about] = HeldInRun(owners, row["t_ns"], row["seq"])


def _comparable(kind: str, value: str, names: NodeNames) -> str:
    """The value of a belief without what differs from run to run and means nothing."""
    if kind == BeliefKind.DATA_VERSION:
        state_version, _, counter = json.loads(value)
        return f"{state_version} {counter}"  # the timestamp is that of the last change
    if kind == BeliefKind.HA_STATE:
        return str(json.loads(value)["state"])  # with the offsets of that moment
    return names.within(value)


@attrs.define
class _Differences:
    """Begins and ends the differences between two sides."""

    _sides: tuple[_BeliefsOfRun, _BeliefsOfRun]
    touched: dict[About, None] = attrs.Factory(dict)
    """What rows of this instant may have changed; a kind of `` stands for all that a node holds."""
    _open: dict[About, HeldDifference] = attrs.Factory(dict)
    _ended: list[HeldDifference] = attrs.Factory(list)

    def judge(self, t_ns: int) -> None:
        """Compare what was touched, at the end of an instant."""
        first, second = self._sides
        for about in self._expanded():
            here, there = first.held.get(about), second.held.get(about)
            lives = not about.node or (about.node in first.alive and about.node in second.alive)
            differs = lives and (here and here.value) != (there and there.value)
            if differs and about not in self._open:
                self._open[about] = HeldDifference(about, t_ns, None, here, there)
            elif not differs and about in self._open:
                self._ended.append(attrs.evolve(self._open.pop(about), end_ns=t_ns))
        self.touched = {}

    def _expanded(self) -> list[About]:
        nodes = [about.node for about in self.touched if not about.kind]
        found = dict.fromkeys(about for about in self.touched if about.kind)
        for node in nodes:
            known = (*self._sides[0].held, *self._sides[1].held, *self._open)
            found |= dict.fromkeys(about for about in known if about.node == node)
        return list(found)

    def all(self) -> tuple[HeldDifference, ...]:
        """All differences, those that have not ended included."""
        # Sorting keeps the order of what was found at one instant.
        return tuple(sorted((*self._ended, *self._open.values()), key=lambda item: item.begin_ns))
