"""Texts of `java.util.Properties`, in which RocketMQ writes and reads options.

Mirrors:
    `java.util.Properties#load`.
"""

import re
from collections.abc import Iterator

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_CONTINUED = re.compile(r"(?:[^\\]|^)(?:\\\\)*\\$")
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class MalformedPropertiesError(ValueError):
    """A text that Java refuses to read: an escape with `u` has no four hexadecimal digits."""


def read_properties(text: str) -> dict[str, str]:
    """Names and values; a name without a value has an empty one, and the last of equal names wins.

    Blanks before a value do not count, blanks behind it do.

    Raises:
        MalformedPropertiesError: Java refuses the text.
    """
    found = {}
    for line in _logical_lines(text):
        match = _KEY.match(line)
        assert match is not None
        found[_unescaped(match[1])] = _unescaped(line[match.end() :])
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank ones; a line that ends with a backslash goes on in the next."""
    pending: str | None = None
    for natural in _LINE_END.split(text):
        line = natural.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        whole = (pending or "") + line
        if _CONTINUED.search(line):
            pending = whole[:-1]
            continue
        pending = None
        yield whole
    if pending is not None:
        yield pending


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(_character, text)


def _character(escaped: re.Match[str]) -> str:
    character = escaped[1]
    if len(character) > 1:
        return chr(int(character[1:], 16))
    if character == "u":
        raise MalformedPropertiesError("Malformed \\uxxxx encoding.")
    return _CONTROLS.get(character, character)
