"""The current beliefs of all nodes, updated with every row of the trace."""

from collections.abc import Mapping
from string import ascii_uppercase

import attrs

from emulator.trace.batches import Row
from emulator.trace.schema import BELIEFS, LIFECYCLE, TraceTable
from nodes.beliefs import PROCESS_ENDS, BeliefKind, LifecycleEvent

_NOTHING = "null"
_NAMESERVER = "nameserver"
_KNOWN_TO_ALL_NAMESERVERS = (BeliefKind.LIVE_BROKERS, BeliefKind.ROUTE)


@attrs.frozen
class HeldBelief:
    """One belief of one node."""

    value: str
    """JSON."""
    since_ns: int


class BeliefBook:
    """The newest belief of each node about each subject; a process that has ended has none."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], dict[str, HeldBelief]] = {}
        self._roles: dict[str, str] = {}
        self._alive: dict[str, None] = {}

    def note(self, table: TraceTable, row: Row) -> None:
        """Update with a row; a `RowListener`."""
        if table is BELIEFS:
            fields = {column.name: value for column, value in zip(table.columns, row, strict=True)}
            node, value = str(fields["node"]), str(fields["value"])
            self._roles[node] = str(fields["role"])
            held = self._held.setdefault((str(fields["kind"]), str(fields["subject"])), {})
            held.pop(node, None)
            if value != _NOTHING:
                held[node] = HeldBelief(value, int(fields["t_ns"]))
        elif table is LIFECYCLE:
            fields = {column.name: value for column, value in zip(table.columns, row, strict=True)}
            if fields["event"] == LifecycleEvent.NOT_EMULATED:  # said of a guest, which may have no process of a name
                return
            node = str(fields["node"])
            self._roles[node] = str(fields["role"])
            self._alive[node] = None
            if fields["event"] in PROCESS_ENDS:
                del self._alive[node]
                for held in self._held.values():
                    held.pop(node, None)

    def nodes(self) -> tuple[str, ...]:
        """All nodes with a row so far, in the order of their first row."""
        return tuple(self._roles)

    def role(self, node: str) -> str:
        """The role of a node in its newest row."""
        return self._roles[node]

    def is_alive(self, node: str) -> bool:
        """Whether the process of a node has started and not ended."""
        return node in self._alive

    def subjects(self) -> tuple[tuple[str, str], ...]:
        """(kind, subject) of all current beliefs, sorted."""
        return tuple(sorted(key for key, held in self._held.items() if held))

    def held(self, kind: str, subject: str) -> Mapping[str, HeldBelief]:
        """Mapping node -> its belief about a subject."""
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
        lacking = (node for node in self._alive if self._roles[node] == _NAMESERVER and node not in held)
        return (*held, *lacking)


_NO_LETTER = "·"
_MANY = "?"


@attrs.frozen
class MatrixRow:
    """One row of the matrix."""

    kind: str
    subject: str
    letters: Mapping[str, str]
    """Mapping node -> letter of its value; nodes that hold nothing are missing."""
    values: Mapping[str, str]
    """Mapping letter -> value, JSON."""
    differs: bool
    """Whether nodes of one role hold different values."""

    def cell(self, node: str) -> str:
        """The letter in the column of a node."""
        return self.letters.get(node, _NO_LETTER)


@attrs.frozen
class Matrix:
    """What nodes hold about the subjects that they share."""

    nodes: tuple[str, ...]
    """Nodes that hold a value, or should, in the order of the cluster."""
    subjects: tuple[MatrixRow, ...]


def matrix(book: BeliefBook, keys: list[tuple[str, str]], nodes: tuple[str, ...]) -> Matrix:
    """The matrix of some subjects.

    Args:
        book: the current beliefs.
        keys: (kind, subject) in the order of the rows.
        nodes: all nodes, in the order of the cluster.
    """
    subjects = tuple(_subject(book, kind, subject) for kind, subject in keys)
    concerned = dict.fromkeys(node for key in keys for node in book.concerned(*key))
    return Matrix(tuple(node for node in nodes if node in concerned), subjects)


def _subject(book: BeliefBook, kind: str, subject: str) -> MatrixRow:
    letters: dict[str, str] = {}
    values: dict[str, str] = {}
    for number, (value, nodes) in enumerate(book.all_holders(kind, subject)):
        letter = ascii_uppercase[number] if number < len(ascii_uppercase) else _MANY
        values[letter] = value
        letters |= dict.fromkeys(nodes, letter)
    return MatrixRow(kind, subject, letters, values, book.differs(kind, subject))
