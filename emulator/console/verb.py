"""A verb: its parser, and its execution."""

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

import attrs

from emulator.base.errors import one_line
from emulator.base.text import nearest
from nodes.fields import shown
from nodes.secret import masked, mentions_secret

WORDS_MAX = 64
"""Limit for verbs with any number of words."""
Lines = tuple[str, ...]
Words = Sequence[str]
S = TypeVar("S")
"""The session that a verb acts on."""


class VerbError(Exception):
    """A verb failed; the text says why in one line, and nothing has changed."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


@attrs.frozen
class Verb(Generic[S]):
    """One command to a cluster."""

    name: str
    usage: str
    """Its words: capitals are placeholders, brackets are optional."""
    summary: str
    act: Callable[[S, Words], Awaitable[Lines]]
    minimum: int = 0
    """Fewest words."""
    maximum: int = 0
    """Most words."""

    def line(self) -> str:
        """Name and usage: `cut A B [one-way]`."""
        return f"{self.name} {self.usage}".rstrip()


MEANT = {"undo": "heal", "revert": "heal", "repair": "heal", "fix": "heal", "exit": "quit", "pause": "suspend"}
"""Mapping word that people try -> the verb that does it; the words are not alike."""


def split(line: str) -> list[str]:
    """Split a line into words like a shell, without comments.

    Raises:
        VerbError: a quotation is not closed, or a word has control characters.
    """
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise VerbError(f"{shown(masked(line.strip()))}: {str(error).lower()}") from None
    for word in words:
        if not word.isprintable():
            wrong = "" if mentions_secret(line) else f", not {shown(word)}"
            raise VerbError(f"expected words of printable characters{wrong}")
    return words


def no_such_verb(word: str, known: Sequence[str]) -> str:
    """A message about an unknown verb, which names the verb that was meant: `heal` for `undo`."""
    meant = MEANT.get(word.lower())
    return f"there is no verb {shown(word)}; did you mean {meant}?" if meant in known else nearest("verb", word, known)


def find_verb(words: Words, verbs: Mapping[str, Verb[S]]) -> Verb[S]:
    """Find the verb of a line, and check the number of its words.

    Raises:
        VerbError: the verb is unknown, or the number of words is wrong.
    """
    if words[0] not in verbs:
        raise VerbError(no_such_verb(words[0], tuple(verbs)))
    verb = verbs[words[0]]
    if not verb.minimum <= len(words) - 1 <= verb.maximum:
        raise VerbError(f"expected: {verb.line()}")
    return verb


async def execute(words: Words, session: S, verbs: Mapping[str, Verb[S]]) -> Lines:
    """Execute a verb; no words do nothing.

    Returns:
        The lines of its output.

    Raises:
        VerbError: the verb failed.
    """
    return await find_verb(words, verbs).act(session, words[1:]) if words else ()
