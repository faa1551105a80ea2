"""The matrix of views: which node holds which value of each subject that nodes share."""

from collections.abc import Mapping
from string import ascii_uppercase
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from emulator.history.beliefs import Beliefs

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


def matrix(beliefs: "Beliefs", keys: list[tuple[str, str]], nodes: tuple[str, ...]) -> Matrix:
    """The matrix of some subjects.

    Args:
        beliefs: the current beliefs.
        keys: (kind, subject) in the order of the rows.
        nodes: all nodes, in the order of the cluster.
    """
    subjects = tuple(_subject(beliefs, kind, subject) for kind, subject in keys)
    concerned = dict.fromkeys(node for key in keys for node in beliefs.concerned(*key))
    return Matrix(tuple(node for node in nodes if node in concerned), subjects)


def _subject(beliefs: "Beliefs", kind: str, subject: str) -> MatrixRow:
    letters: dict[str, str] = {}
    values: dict[str, str] = {}
    for number, (value, nodes) in enumerate(beliefs.all_holders(kind, subject)):
        letter = ascii_uppercase[number] if number < len(ascii_uppercase) else _MANY
        values[letter] = value
        letters |= dict.fromkeys(nodes, letter)
    return MatrixRow(kind, subject, letters, values, beliefs.differs(kind, subject))
