"""Beliefs: what each node holds about each subject at present.

A node holds the value that it last recorded, until it records `null` or its process ends. What a process records that
has ended already counts for nothing. A suspended node retains its values.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import attrs

from emulator.history.processes import ENDS, Processes
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow, LifeRow
from emulator.trace.schema import BELIEFS, LIFECYCLE, TraceTable
from nodes.beliefs import BeliefKind, LifecycleEvent

_NOTHING = "null"
_NAMESERVER = "nameserver"
_KNOWN_TO_ALL_NAMESERVERS = (BeliefKind.LIVE_BROKERS, BeliefKind.ROUTE)
Subject = tuple[str, str]
"""Kind and subject."""


@attrs.frozen
class HeldBelief:
    """One belief of one node."""

    value: str
    """JSON."""
    since_ns: int
    seq: int
    """Of the row with which it began."""


class Beliefs(Watcher):
    """The newest belief of each node about each subject.

    Args:
        processes: reads the same rows before.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._held: dict[Subject, dict[str, HeldBelief]] = {}
        self._roles: dict[str, str] = {}

    # --- rows -----------------------------------------------------------------------------

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs and lives."""
        return {BELIEFS: self.believe, LIFECYCLE: self.live}

    def believe(self, row: BeliefRow) -> None:
        """A node recorded a value."""
        if self._processes.is_dead((row.node, row.incarnation), row.seq):
            return
        self._roles[row.node] = row.role
        held = self._held.setdefault((row.kind, row.subject), {})
        held.pop(row.node, None)
        if row.value != _NOTHING:
            held[row.node] = HeldBelief(row.value, row.t_ns, row.seq)

    def live(self, row: LifeRow) -> None:
        """A process that has ended holds nothing."""
        if row.event == LifecycleEvent.NOT_EMULATED:  # said of a guest, which may have no process of a name
            return
        self._roles[row.node] = row.role
        if row.event in ENDS:
            for held in self._held.values():
                held.pop(row.node, None)

    # --- questions ------------------------------------------------------------------------

    def nodes(self) -> tuple[str, ...]:
        """All nodes with a row so far, in the order of their first row."""
        return tuple(self._roles)

    def role(self, node: str) -> str:
        """The role of a node in its newest row."""
        return self._roles[node]

    def is_alive(self, node: str) -> bool:
        """Whether the process of a node has started and not ended."""
        return self._processes.is_alive(node)

    def subjects(self) -> tuple[Subject, ...]:
        """(kind, subject) of all current beliefs, sorted."""
        return tuple(sorted(key for key, held in self._held.items() if held))

    def of_node(self, node: str) -> Iterator[Subject]:
        """What a node holds something about."""
        return (key for key, held in self._held.items() if node in held)

    def held(self, kind: str, subject: str) -> Mapping[str, HeldBelief]:
        """Mapping node -> its belief about a subject, the newest last."""
        return self._held.get((kind, subject), {})

    def all_holders(self, kind: str, subject: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The holders of each value of a subject: (value, nodes that hold it), the largest first."""
        nodes_of: dict[str, list[str]] = {}
        for node, held in sorted(self.held(kind, subject).items()):
            nodes_of.setdefault(held.value, []).append(node)
        ranked = sorted(nodes_of.items(), key=lambda holders: (-len(holders[1]), holders[0]))
        return tuple((value, tuple(nodes)) for value, nodes in ranked)

    def differs(self, kind: str, subject: str) -> bool:
        """Whether two nodes of one role hold different values.

        Nameservers also differ if one of them holds nothing: each should know of every broker.
        """
        values: dict[str, str] = {}
        held = self.held(kind, subject)
        concerned = {node: held[node].value if node in held else _NOTHING for node in self.concerned(kind, subject)}
        return any(values.setdefault(self._roles[node], value) != value for node, value in concerned.items())

    def concerned(self, kind: str, subject: str) -> tuple[str, ...]:
        """The nodes that hold something about a subject, and the nameservers that should."""
        held = self.held(kind, subject)
        if not held or kind not in _KNOWN_TO_ALL_NAMESERVERS:
            return tuple(held)
        nameservers = (node for node, role in self._roles.items() if role == _NAMESERVER and node not in held)
        return (*held, *filter(self.is_alive, nameservers))
