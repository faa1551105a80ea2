"""How faults are said in words, and the small pieces that such a line is made of."""

from collections.abc import Sequence
from difflib import get_close_matches
from enum import IntEnum

import attrs

Words = Sequence[str]
ONE_WAY = "one-way"


class WordsError(ValueError):
    """Words that say no fault; says in one line what was expected."""


@attrs.frozen
class Wording:
    """How one kind of fault is said."""

    verb: str
    usage: str
    """Its words: capitals are filled in, brackets may be left out."""
    summary: str
    least: int = 1
    """Fewest words."""

    def line(self) -> str:
        """`cut A [B] [one-way]`."""
        return f"{self.verb} {self.usage}".rstrip()

    def mistake(self) -> WordsError:
        """Words that cannot be read."""
        return WordsError(f"expected: {self.line()}")


def without_one_way(words: Words) -> tuple[list[str], bool]:
    """The other words, and whether only one direction is meant."""
    return [word for word in words if word != ONE_WAY], ONE_WAY in words


def options(words: Words, names: Words) -> tuple[list[str], dict[str, str]]:
    """The other words, and the pairs of a name and a value that were among them."""
    rest, said = list(words), {}
    for name in names:
        if name in rest:
            at = rest.index(name)
            said[name] = words_after(name, rest[at + 1 : at + 2])
            del rest[at : at + 2]
    return rest, said


def words_after(word: str, words: Words) -> str:
    """The words that must follow another one, as one text."""
    if not words:
        raise WordsError(f"expected something after {word}")
    return " ".join(words)


def number(what: str, word: str) -> int:
    """A whole number."""
    if not word.removeprefix("-").removeprefix("+").isdecimal():
        raise WordsError(f"expected a whole number of {what}, not {word}")
    return int(word)


def code(what: str, word: str, codes: type[IntEnum]) -> int:
    """A code of RocketMQ's, by its number or its name.

    Args:
        what: `request code` or `response code`.
    """
    if word.isdecimal():
        return int(word)
    if word.upper() not in codes.__members__:
        near = get_close_matches(word.upper(), list(codes.__members__), n=1)
        raise WordsError(f"expected a {what}, not {word}" + (f"; did you mean {near[0]}?" if near else ""))
    return int(codes[word.upper()])
