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
from emulator.history.beliefs import Beliefs
from emulator.history.owners import Owners, nodes_of
from emulator.history.processes import ENDS, Processes
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.reader import values_of
from emulator.history.rows.row_classes import ROWS, BeliefRow, LifeRow, OwnershipRow
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, LIFECYCLE, OWNERSHIP, TraceTable
from emulator.why.words import NodeNames
from nodes.beliefs import BeliefKind

OWNERS = "owners"
"""Kind of a difference about the owners of a queue; its subject is `TOPIC/BROKER/ID of GROUP`."""


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
    sides = (HeldNow(names[0]), HeldNow(names[1]))
    differences = _Differences(sides)
    until_ns = min(first.end_ns, second.end_ns)
    tagged = (_tagged(first, 0), _tagged(second, 1))
    for t_ns, rows in groupby(merge(*tagged, key=lambda row: row[0]), key=lambda row: row[0]):
        if t_ns > until_ns:
            break
        for _, number, row in rows:
            differences.touched |= dict.fromkeys(sides[number].note(row))
        differences.judge(t_ns)
    return differences.all()


def _tagged(run: RunDirectory, number: int) -> Iterator[tuple[int, int, BeliefRow | OwnershipRow | LifeRow]]:
    """(t_ns, number of the run, row) for the rows of a run, in order."""

    def of(table: TraceTable) -> Iterator[Any]:
        for part in run.trace.tables(table, columns=list(ROWS[table]._fields), **READING):
            yield from values_of(table, part)

    return ((row.t_ns, number, row) for row in merge(*map(of, (BELIEFS, OWNERSHIP, LIFECYCLE))))


class HeldNow:
    """What one run holds at an instant."""

    def __init__(self, names: NodeNames) -> None:
        self._names = names
        self._processes = Processes()
        self._beliefs = Beliefs(self._processes)
        self._owners = Owners(self._processes)
        self._owners_changed: dict[GroupQueue, tuple[int, int]] = {}
        """Mapping queue -> instant and seq of the last row about its owners."""
        self._queues: dict[About, GroupQueue] = {}

    def lives(self, node: str) -> bool:
        """Whether a node lives."""
        return self._processes.is_alive(node)

    def of_node(self, node: str) -> Iterator[About]:
        """What a node holds something about."""
        return (About(node, *subject) for subject in self._beliefs.of_node(node))

    def held(self, about: About) -> HeldInRun | None:
        """What is held about something."""
        if about.kind == OWNERS:
            queue = self._queues.get(about)
            if queue is None:
                return None
            owners = " and ".join(sorted(nodes_of(self._owners.now(queue)))) or "no consumer"
            return HeldInRun(owners, *self._owners_changed[queue])
        found = self._beliefs.held(about.kind, about.subject).get(about.node)
        if found is None:
            return None
        return HeldInRun(_comparable(about.kind, found.value, self._names), found.since_ns, found.seq)

    def note(self, row: BeliefRow | OwnershipRow | LifeRow) -> tuple[About, ...]:
        """Take in a row; returns what it may have changed."""
        if isinstance(row, BeliefRow):
            self._beliefs.believe(row)
            return (About(row.node, row.kind, row.subject),)
        if isinstance(row, OwnershipRow):
            self._owners.own(row)
            return (self._changed(row.queue, row),) if row.queue in self._owners.of else ()
        return self._live(row)

    def _live(self, row: LifeRow) -> tuple[About, ...]:
        ends = row.event in ENDS
        lost = tuple(self.of_node(row.node)) if ends else ()
        owned = tuple(self._owners.owned_by((row.node, row.incarnation))) if ends else ()
        for fold in (self._processes, self._beliefs, self._owners):
            fold.live(row)
        return (*lost, *(self._changed(queue, row) for queue in owned), About(row.node, "", ""))

    def _changed(self, queue: GroupQueue, row: OwnershipRow | LifeRow) -> About:
        about = About("", OWNERS, f"{queue.name} of {queue.group}")
        self._queues[about] = queue
        self._owners_changed[queue] = row.t_ns, row.seq
        return about


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

    _sides: tuple[HeldNow, HeldNow]
    touched: dict[About, None] = attrs.Factory(dict)
    """What rows of this instant may have changed; a kind of `` stands for all that a node holds."""
    _open: dict[About, HeldDifference] = attrs.Factory(dict)
    _ended: list[HeldDifference] = attrs.Factory(list)

    def judge(self, t_ns: int) -> None:
        """Compare what was touched, at the end of an instant."""
        first, second = self._sides
        for about in self._expanded():
            here, there = first.held(about), second.held(about)
            lives = not about.node or (first.lives(about.node) and second.lives(about.node))
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
            known = (*self._sides[0].of_node(node), *self._sides[1].of_node(node))
            found |= dict.fromkeys((*known, *(about for about in self._open if about.node == node)))
        return list(found)

    def all(self) -> tuple[HeldDifference, ...]:
        """All differences, those that have not ended included."""
        # Sorting keeps the order of what was found at one instant.
        return tuple(sorted((*self._ended, *self._open.values()), key=lambda item: item.begin_ns))
