"""Texts of `java.util.Properties`, in which RocketMQ writes and reads options.

Mirrors:
    `java.util.Properties#load`.
"""

import re
from collections.abc import Iterator

import attrs

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_UNICODE = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}


class MalformedPropertiesError(ValueError):
    """A text that Java refuses to read: an escape with `u` has no four hexadecimal digits."""

    def __init__(self, line: int) -> None:
        super().__init__("Malformed \\uxxxx encoding.")
        self.line = line
        """From 1."""


@attrs.frozen
class Property:
    """One pair of a properties file."""

    line: int
    """Where it begins, from 1."""
    name: str
    value: str


def read_pairs(text: str) -> Iterator[Property]:
    """All pairs of a text in its order: of equal names the last one counts, and a name may have an empty value.

    Blanks before a value do not count, blanks behind it do.

    Raises:
        MalformedPropertiesError: Java refuses the text.
    """
    return (_pair(number, line) for number, line in _logical_lines(text))


def read_properties(text: str) -> dict[str, str]:
    """Names and values.

    Raises:
        MalformedPropertiesError: Java refuses the text.
    """
    return {pair.name: pair.value for pair in read_pairs(text)}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is neither blank nor a comment, continued ones joined."""
    lines = enumerate(_LINE_END.split(text), 1)
    for number, line in lines:
        part = line.lstrip(_BLANKS)
        if part[:1] in ("#", "!"):
            continue
        parts = []
        while _is_continued(part):
            parts.append(part[:-1])
            part = next(lines, (0, ""))[1].lstrip(_BLANKS)
        if joined := "".join((*parts, part)):
            yield number, joined


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _pair(number: int, line: str) -> Property:
    at = 0
    while at < len(line) and line[at] not in f"=:{_BLANKS}":
        at += 2 if line[at] == "\\" else 1
    value = line[at:].lstrip(_BLANKS)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANKS)
    return Property(number, _unescaped(number, line[:at]), _unescaped(number, value))


def _unescaped(number: int, text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\":
            parts.append(text[at])
            at += 1
        elif text[at + 1 : at + 2] == "u":
            digits = _UNICODE.match(text, at + 2)
            if digits is None:
                raise MalformedPropertiesError(number)
            parts.append(chr(int(digits[0], 16)))
            at = digits.end()
        else:
            escaped = text[at + 1 : at + 2]
            parts.append(_ESCAPES.get(escaped, escaped))
            at += 2
    return "".join(parts)
