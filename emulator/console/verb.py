"""What a verb is, and how a line becomes one."""

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

import attrs

from emulator.base.text import nearest

WORDS_MOST = 64
"""Of a verb that takes as many words as somebody has to say."""
Lines = tuple[str, ...]
Words = Sequence[str]
S = TypeVar("S")
"""The session that a verb acts on."""


class VerbError(Exception):
    """A line cannot be done; says why in one line, and nothing has changed."""


@attrs.frozen
class Verb(Generic[S]):
    """One thing that can be said to a cluster."""

    name: str
    usage: str
    """Its words: capitals are filled in, brackets may be left out."""
    summary: str
    act: Callable[[S, Words], Awaitable[Lines]]
    least: int = 0
    """Fewest words."""
    most: int = 0
    """Most words."""

    def line(self) -> str:
        """`cut A B [one-way]`."""
        return f"{self.name} {self.usage}".rstrip()


def split(line: str) -> list[str]:
    """The words of a line, quoted ones whole, without what is a comment.

    Raises:
        VerbError: a quotation does not end.
    """
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise VerbError(f"{line.strip()}: {str(error).lower()}") from None


def understood(words: Words, verbs: Mapping[str, Verb[S]]) -> Verb[S]:
    """The verb that words begin with, if there are as many of them as it takes.

    Raises:
        VerbError: there is no such verb, or its words are too few or too many.
    """
    if words[0] not in verbs:
        raise VerbError(nearest("verb", words[0], tuple(verbs)))
    verb = verbs[words[0]]
    if not verb.least <= len(words) - 1 <= verb.most:
        raise VerbError(f"expected: {verb.line()}")
    return verb


async def do(words: Words, session: S, verbs: Mapping[str, Verb[S]]) -> Lines:
    """Do what words say; none say nothing.

    Returns:
        What there is to tell.

    Raises:
        VerbError: it cannot be done.
    """
    return await understood(words, verbs).act(session, words[1:]) if words else ()
