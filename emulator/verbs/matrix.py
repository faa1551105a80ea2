"""Who believes what, on one screen: subjects down, nodes across, and a letter for what each of them holds."""

from collections.abc import Mapping
from string import ascii_uppercase

import attrs

from emulator.verbs.book import ViewBook

_NOTHING = "·"
_MANY = "?"


@attrs.frozen
class Subject:
    """One line of the matrix."""

    kind: str
    subject: str
    letters: Mapping[str, str]
    """Node -> letter of what it holds; the same letter is the same value. Nodes that hold nothing are missing."""
    values: Mapping[str, str]
    """Letter -> what is held, JSON."""
    differs: bool
    """Whether nodes of one role hold different things."""

    def cell(self, node: str) -> str:
        """What stands in the column of a node."""
        return self.letters.get(node, _NOTHING)


@attrs.frozen
class Matrix:
    """What nodes hold about what they share."""

    nodes: tuple[str, ...]
    """Those that hold anything, or should, in the order of the cluster."""
    subjects: tuple[Subject, ...]


def matrix(book: ViewBook, keys: list[tuple[str, str]], nodes: tuple[str, ...]) -> Matrix:
    """The matrix of some subjects.

    Args:
        keys: (kind, subject) in the order in which they are to be shown.
        nodes: all of them, in the order of the cluster.
    """
    subjects = tuple(_subject(book, kind, subject) for kind, subject in keys)
    concerned = dict.fromkeys(node for key in keys for node in book.concerned(*key))
    return Matrix(tuple(node for node in nodes if node in concerned), subjects)


def _subject(book: ViewBook, kind: str, subject: str) -> Subject:
    letters: dict[str, str] = {}
    values: dict[str, str] = {}
    for number, (value, nodes) in enumerate(book.camps(kind, subject)):
        letter = ascii_uppercase[number] if number < len(ascii_uppercase) else _MANY
        values[letter] = value
        letters |= dict.fromkeys(nodes, letter)
    return Subject(kind, subject, letters, values, book.differs(kind, subject))
