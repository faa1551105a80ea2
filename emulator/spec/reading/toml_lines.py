"""The lines of a TOML file on which its keys stand, which parsers of TOML do not report."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from nodes.fields import shown

_DEPTH_MAX = 16
"""Containers inside of containers whose keys are found; no scenario has as many."""
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_PART = r"(?:[A-Za-z0-9_-]+|\"(?:\\.|[^\"\\])*\"|'[^']*')"
_KEY = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")
_SCALAR = re.compile(r"[^,\]}#\n]*")


def key_lines(text: str) -> dict[str, int]:
    """Where the keys of a file stand.

    Args:
        text: that a parser has accepted.

    Returns:
        Mapping path -> line, from 1, in the order of the file: tables, keys, items of arrays. Paths are those of
        messages: `broker[1].options.listenPort`.
    """
    return _Scan(text).lines


class _Scan:
    """One pass over the text of a file; what is no key, string or bracket is passed over."""

    def __init__(self, text: str) -> None:
        self.lines: dict[str, int] = {}
        self._text = text
        self._at = 0
        self._line, self._counted = 1, 0
        self._tables: dict[str, int] = {}
        """Path of an array of tables -> number of its last table."""
        here = ""
        self._skip(_BLANK)
        while self._at < len(text):
            if text[self._at] == "[":
                here = self._header()
            else:
                self._pair(here, 0)
            self._skip(_BLANK)

    def _skip(self, form: re.Pattern[str]) -> str:
        """Pass over what has a form; it may be empty."""
        found = form.match(self._text, self._at)
        if found is None:
            raise AssertionError(f"no TOML at {self._at}")
        self._at = found.end()
        return found[0]

    def _on_path(self, path: str) -> None:
        """Note a path at this place, unless it was begun before."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        self.lines.setdefault(path, self._line)

    def _header(self) -> str:
        """The path of the table that `[a.b]` or `[[a.b]]` begins."""
        is_array = self._text.startswith("[[", self._at)
        start = self._at
        self._at += 2 if is_array else 1
        self._skip(_BLANK)
        *parents, last = _parts(self._skip(_KEY))
        end = self._text.index("]", self._at) + (2 if is_array else 1)
        self._at = start
        path = ""
        for part in parents:
            path = _joined(path, part)
            self._on_path(path)
            path = self._last_of(path)
        path = _joined(path, last)
        self._on_path(path)
        if is_array:
            self._tables[path] = self._tables.get(path, -1) + 1
        path = self._last_of(path)
        self._on_path(path)
        self._at = end
        return path

    def _last_of(self, path: str) -> str:
        return f"{path}[{self._tables[path]}]" if path in self._tables else path

    def _pair(self, here: str, depth: int) -> None:
        """Pass over `key = value`."""
        start = self._at
        parts = _parts(self._skip(_KEY))
        end, self._at = self._at, start
        for part in parts:
            here = _joined(here, part)
            self._on_path(here)
        self._at = self._text.index("=", end) + 1
        self._skip(_BLANK)
        self._value(here, depth)

    def _value(self, path: str, depth: int) -> None:
        first = self._text[self._at]
        if first in "\"'":
            self._skip(_STRING)
        elif first not in "[{":
            self._skip(_SCALAR)
        elif depth == _DEPTH_MAX:
            self._container()
        else:
            self._at += 1
            self._items(path, depth + 1, is_array=first == "[")

    def _items(self, path: str, depth: int, *, is_array: bool) -> None:
        """Pass over the items of an array or the pairs of an inline table, and its end."""
        index = 0
        self._skip(_BLANK)
        while self._text[self._at] not in "]}":
            if is_array:
                self._on_path(f"{path}[{index}]")
                self._value(f"{path}[{index}]", depth)
                index += 1
            else:
                self._pair(path, depth)
            self._skip(_BLANK)
            if self._text[self._at] == ",":
                self._at += 1
                self._skip(_BLANK)
        self._at += 1

    def _container(self) -> None:
        """Pass over an array or inline table with all that is in it."""
        opened = 0
        while True:
            first = self._text[self._at]
            if first in "\"'":
                self._skip(_STRING)
            elif first == "#":
                self._skip(_BLANK)
            else:
                self._at += 1
                opened += (first in "[{") - (first in "]}")
                if not opened:
                    return


def _parts(key: str) -> list[str]:
    """The parts of a dotted key, without quotes."""
    if '"' not in key and "'" not in key:
        return [part.strip() for part in key.split(".")]
    parts: list[str] = []
    table: Mapping[str, Any] | int = tomllib.loads(f"{key} = 0")
    while isinstance(table, Mapping):
        ((part, table),) = table.items()
        parts.append(part)
    return parts


def _joined(path: str, key: str) -> str:
    return f"{path}.{shown(key)}" if path else shown(key)
