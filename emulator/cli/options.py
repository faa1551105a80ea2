"""`rmqemu options`: the options of a role, from the definitions that read scenario files."""

import json
import sys

import attrs
from rich.console import Group, RenderableType

from emulator.base.printing import print_cells, print_json
from emulator.base.rich_texts import Table, Text
from emulator.cli.terminal import tables_console
from emulator.spec.reference import ROLES, Entry, options_of

_DEFAULT_MOST = 24
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
        told = {name: [_brief(one) for one in entries] for name, entries in listed.items()}
        print_json(json.dumps(told, indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        console = tables_console()
        for name, entries in listed.items():
            console.print(_table(name, entries))
    else:
        for name, entries in listed.items():
            for one in entries:
                print_cells(name, one.name, one.type, one.unit, one.default, one.told(), one.meaning)


def _brief(entry: Entry) -> dict[str, object]:
    """An option for JSON: name, type, unit, default, meaning, and mapping preset or release -> value."""
    return {**attrs.asdict(entry), "sets": dict(entry.sets)}


def _table(role: str, entries: tuple[Entry, ...]) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    table.add_column("option", no_wrap=True)
    table.add_column("default", overflow="fold", max_width=_DEFAULT_MOST)
    table.add_column("type, meaning, and what presets and releases set", overflow="fold")
    for one in entries:
        what = [Text(f"{one.type}, {one.unit}" if one.unit else one.type, "cyan"), Text(one.meaning)]
        if one.sets:
            what.append(Text(one.told(), "yellow"))
        table.add_row(Text(one.name, "bold"), one.default, what)
    return Group(Text(f"{role}: {len(entries)} options", style="bold"), table, "")
