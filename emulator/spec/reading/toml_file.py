"""TOML files that people write: their tables, and the place of a mistake in them."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from emulator.base.files import UnreadableError, read_text
from emulator.spec.reading.toml_lines import key_lines
from emulator.spec.tables.bounds import FILE_BYTES_MAX
from emulator.spec.tables.mistakes import SpecError, paths_to
from nodes.config import option_name
from nodes.fields import shown

_PARSER_MAX = 200
"""Most characters of a message of the TOML parser, which quotes what it found."""
_WORDS_OF_PARSERS = (
    *("kind", "from", "to", "node", "among", "group", "topic", "options", "broker", "on"),
    *("domain", "nodes", "nameservers"),
)
"""Keys of a fault or an act in whose place one may write `do`."""
_KEY_PARTS_MAX = 32
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}[ \t]*+\.[ \t]*+){{{_KEY_PARTS_MAX}}}", re.MULTILINE)
"""A dotted key of more parts: the time that the parser takes grows with their square."""
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@attrs.frozen
class TomlFile:
    """The text of a file, and what it says."""

    name: str
    """Its path, or another origin of the text, for messages."""
    text: str = attrs.field(repr=False)
    tables: Mapping[str, Any]
    """As the parser returns them, unchecked."""

    @classmethod
    def read(cls, path: str | Path) -> "TomlFile":
        """Read a file.

        Raises:
            SpecError: it cannot be read, or is not TOML.
        """
        try:
            text = read_text(Path(path), FILE_BYTES_MAX)
        except UnreadableError as error:
            raise SpecError("file", f"cannot be read: {error}", str(path)) from None
        return cls.of(text, str(path))

    @classmethod
    def of(cls, text: str, name: str) -> "TomlFile":
        """Parse a text.

        Raises:
            SpecError: it is not TOML.
        """
        if _DEEP_KEY.search(text) is not None:
            raise SpecError("file", f"expected keys of at most {_KEY_PARTS_MAX} parts", name)
        try:
            return cls(name, text, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise SpecError("file", f"not TOML: {shown(str(error), _PARSER_MAX)}", name) from None
        except ValueError:  # Python reads no number of more than 4,300 digits
            raise SpecError("file", "a number has too many digits", name) from None
        except RecursionError:
            raise SpecError("file", "values are nested too deep", name) from None

    def located(self, error: SpecError) -> SpecError:
        """The mistakes of this file with its name and their lines, in the order of lines; then those of others."""
        lines = key_lines(self.text)
        mine = []
        for item in (element for element in error.all if not element.source):
            line = next((lines[path] for path in paths_to(item.key) if path in lines), 0)
            mine.append(SpecError(item.key, item.problem, self.name, line))
        return SpecError.of(
            [
                *sorted(mine, key=lambda element: (not element.line, element.line)),
                *(element for element in error.all if element.source),
            ]
        )


def in_own_keys(tables: Mapping[str, Any], mistake: SpecError) -> SpecError:
    """A mistake under the key that the user has written: `run_for_s` for `run_for_ms`, an option in snake_case."""
    table, path = _deepest_table(tables, mistake.key)
    rest = mistake.key.removeprefix(path).removeprefix(".")
    stem = rest.removesuffix("_ms").removesuffix("_s")
    for key in table if rest not in table else ():
        is_span = rest != stem and key in (f"{stem}_s", f"{stem}_ms")
        is_words = key == "do" and rest in _WORDS_OF_PARSERS
        if is_span or is_words or option_name(key) == rest:
            return SpecError(f"{path}.{key}", mistake.problem)
    return mistake


def _deepest_table(tables: Mapping[str, Any], key: str) -> tuple[Mapping[str, Any], str]:
    """The innermost table on the way to a key, and its path."""
    table: Mapping[str, Any] = tables
    value: Any = tables
    path = ""
    for step in _STEP.finditer(key):
        index, name = step.groups()
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and index is not None and len(index) < 9 and int(index) < len(value):
            value = value[int(index)]
        else:
            break
        if isinstance(value, Mapping):
            table, path = value, key[: step.end()]
    return table, path
