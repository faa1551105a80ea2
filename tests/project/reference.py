"""Writes the reference of scenario files from the code: `python -m project.reference`."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from emulator.base.attribute_docs import attribute_docs
from emulator.spec.model.presets import Preset
from emulator.spec.reading.reference import ROLES, ReferenceEntry, options_of
from project.sections import kinds_of_acts, kinds_of_faults, sections

PAGE = Path(__file__).parents[2] / "emulator" / "spec" / "REFERENCE.md"


def page() -> str:
    """The whole page."""
    return "\n".join([*_head(), *_sections(), *_faults(), *_acts(), *_presets(), *_options()]) + "\n"


def _head() -> Iterator[str]:
    yield "# Every key and option of a scenario file"
    yield ""
    yield "Generated from the code by `make reference`; do not edit. A key that is `required` has no default; `none`"
    yield "means that nothing stands in its place. Times may be written in seconds or in milliseconds, `run_for_s` or"
    yield "`run_for_ms`; defaults of both are milliseconds. Seconds may have a fraction of whole milliseconds,"
    yield "`at_s = 60.5`, as at the prompt (`at 60.5s kill broker-a`). `rmqemu check FILE` prints all mistakes of a"
    yield "file with their lines, and `rmqemu options ROLE` lists options in a terminal."
    yield ""
    yield "- Tables: " + ", ".join(f"[`{name}`](#{_anchor(name)})" for name in sections())
    yield "- [Kinds of faults](#kinds-of-faults)"
    yield "- [Acts of administrators](#acts-of-administrators)"
    yield "- [Presets](#presets)"
    yield "- Options: " + ", ".join(f"[{role}](#{_anchor(_title(role))})" for role in ROLES)


def _sections() -> Iterator[str]:
    for name, entries in sections().items():
        yield from ("", f"## `{name}`", "")
        yield from _table(entries)


def _faults() -> Iterator[str]:
    yield from ("", "## Kinds of faults", "")
    yield "A `[[fault]]` or `[[nemesis]]` of a kind has these keys, too."
    for kind, (summary, entries) in kinds_of_faults().items():
        yield from ("", f"### `{kind}`", "", f"{summary[0].upper()}{summary[1:]}.", "")
        yield from _table(entries)


def _acts() -> Iterator[str]:
    yield from ("", "## Acts of administrators", "")
    yield "An `[[admin]]` of a kind has these keys, too."
    for kind, (summary, entries) in kinds_of_acts().items():
        yield from ("", f"### `{kind}`", "", f"{summary[0].upper()}{summary[1:]}.", "")
        yield from _table(entries)


def _presets() -> Iterator[str]:
    yield from ("", "## Presets", "")
    yield from _rows(
        ("`preset`", "meaning"),
        [(f"`{preset}`", attribute_docs(Preset)[preset.name]) for preset in Preset],
    )


def _options() -> Iterator[str]:
    for role in ROLES:
        yield from ("", f"## {_title(role)}", "")
        yield from _rows(
            ("option", "type", "unit", "default", "set by", "meaning"),
            [(*_cells(item), item.reported(), item.meaning) for item in options_of(role)],
        )


def _title(role: str) -> str:
    return f"Options of a {role}"


def _anchor(title: str) -> str:
    return "".join(item for item in title.lower().replace(" ", "-") if item.isalnum() or item in "-_")


def _table(entries: Iterable[ReferenceEntry]) -> Iterator[str]:
    yield from _rows(
        ("key", "type", "unit", "default", "meaning"), [(*_cells(entry), entry.meaning) for entry in entries]
    )


def _cells(entry: ReferenceEntry) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in entry.name.split(", "))
    return names, entry.type, entry.unit, f"`{entry.default}`"


def _rows(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(page(), encoding="utf-8")
