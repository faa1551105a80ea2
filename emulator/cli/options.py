"""`rmqemu options`: the options of a role, from the definitions that read scenario files."""

import json
import sys

import attrs
from rich.console import Group, RenderableType

from emulator.base.printing import print_cells, print_json
from emulator.base.rich_texts import Text, TextTable
from emulator.cli.terminal import tables_console
from emulator.spec.reading.reference import ROLES, ReferenceEntry, options_of

_DEFAULT_MAX = 24
"""Most characters of a default in a line; a longer one is folded."""


def show_options(role: str | None, *, as_json: bool) -> None:
    """Print the options of a role, or of all roles.

    In a terminal they are a table with what each is for. Otherwise an option is one line: role, name, type, unit,
    default, what sets it and what it is for, with tabs between them.

    Args:
        role: of a node; None: all.
        as_json: print a JSON object, role -> options.

    Raises:
        SpecError: there is no such role.
    """
    listed = {name: options_of(name) for name in (ROLES if role is None else (role,))}
    if as_json:
        reported = {name: [_brief(item) for item in entries] for name, entries in listed.items()}
        print_json(json.dumps(reported, indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        console = tables_console()
        for name, entries in listed.items():
            console.print(_table(name, entries))
    else:
        for name, entries in listed.items():
            for entry in entries:
                print_cells(name, entry.name, entry.type, entry.unit, entry.default, entry.reported(), entry.meaning)


def _brief(entry: ReferenceEntry) -> dict[str, object]:
    """An option for JSON: name, type, unit, default, meaning, and mapping preset or release -> value."""
    return {**attrs.asdict(entry), "sets": dict(entry.sets)}


def _table(role: str, entries: tuple[ReferenceEntry, ...]) -> RenderableType:
    table = TextTable(box=None, pad_edge=False)
    table.add_column("option", no_wrap=True)
    table.add_column("default", overflow="fold", max_width=_DEFAULT_MAX)
    table.add_column("type, meaning, and what presets and releases set", overflow="fold")
    for entry in entries:
        subject = [Text(f"{entry.type}, {entry.unit}" if entry.unit else entry.type, "cyan"), Text(entry.meaning)]
        if entry.sets:
            subject.append(Text(entry.reported(), "yellow"))
        table.add_row(Text(entry.name, "bold"), entry.default, subject)
    return Group(Text(f"{role}: {len(entries)} options", style="bold"), table, "")
