"""Faults in words: their wording, and helpers to parse it."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from enum import IntEnum

import attrs

from nodes.fields import TIME_MAX_MS, shown

Words = Sequence[str]
ONE_WAY = "one-way"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%?")
_SPAN = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(ms|s|m|h)?")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


MS_ROUNDING = 1e-6
"""In ms: tolerates that 0.1 s is not an exact float."""


class WordsError(ValueError):
    """Words are not a fault; the text says in one line what was expected."""


@attrs.frozen
class Wording:
    """The form of one kind of fault as a verb."""

    verb: str
    usage: str
    """Its words: capitals are placeholders, brackets are optional."""
    summary: str
    minimum: int = 1
    """Fewest words."""

    def line(self) -> str:
        """Verb and usage: `cut A [B] [one-way]`."""
        return f"{self.verb} {self.usage}".rstrip()

    def mistake(self) -> WordsError:
        """The error for words that do not fit the usage."""
        return WordsError(f"expected: {self.line()}")


def without_one_way(words: Words) -> tuple[list[str], bool]:
    """(words without `one-way`, whether it was among them)."""
    return [word for word in words if word != ONE_WAY], ONE_WAY in words


def options(words: Words, names: Words) -> tuple[list[str], dict[str, str]]:
    """(other words, mapping name -> value of the options among the words)."""
    rest, answer = list(words), {}
    for name in names:
        if name in rest:
            at = rest.index(name)
            answer[name] = words_after(name, rest[at + 1 : at + 2])
            del rest[at : at + 2]
    return rest, answer


def words_after(word: str, words: Words) -> str:
    """The words after another word, as one text.

    Raises:
        WordsError: there are none.
    """
    if not words:
        raise WordsError(f"expected something after {word}")
    return " ".join(words)


def number(subject: str, word: str) -> int:
    """Parse a whole number.

    Raises:
        WordsError: the word is not a whole number.
    """
    if not is_whole(word):
        raise WordsError(f"expected a whole number of {subject}, not {shown(word)}")
    return int(word)


def percentage(word: str) -> float:
    """Parse a part of a hundred: `20`, `0.5`, `0.5%`.

    Raises:
        WordsError: the word is not one.
    """
    match = _PERCENT.fullmatch(word)
    if match is None:
        raise WordsError(f"expected a number of percent such as 20 or 0.5, not {shown(word)}")
    return float(match[1])


def is_whole(word: str) -> bool:
    """Whether a word is a whole number of at most 18 digits."""
    return bool(_WHOLE.fullmatch(word))


def duration_ms(text: str) -> int:
    """Parse a duration, in ms; a number without unit is seconds. Fractions are whole milliseconds: `60.5s`.

    Raises:
        WordsError: the text is not a duration.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise WordsError(f"expected a time such as 30s, 500ms or 2m, not {shown(text)}")
    exact_ms = float(found[1]) * _UNIT_MS[found[2] or "s"]
    span_ms = round(exact_ms)
    if span_ms > TIME_MAX_MS:
        raise WordsError(f"expected a time of a year at most, not {shown(text)}")
    if abs(exact_ms - span_ms) > MS_ROUNDING:
        raise WordsError(f"expected a time in whole milliseconds, not {shown(text)}")
    return span_ms


def code(subject: str, word: str, codes: type[IntEnum]) -> int:
    """Parse a code of RocketMQ, given as a number or a name.

    Args:
        subject: `request code` or `response code`.
        word: to parse.
        codes: all codes with names.

    Raises:
        WordsError: the word is neither a number nor a name.
    """
    if is_whole(word):
        return int(word)
    if word.upper() not in codes.__members__:
        near = get_close_matches(shown(word.upper()), list(codes.__members__), n=1)
        raise WordsError(f"expected a {subject}, not {shown(word)}" + (f"; did you mean {near[0]}?" if near else ""))
    return int(codes[word.upper()])
