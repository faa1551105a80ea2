"""`rmqemu options`: the options of a role, from the definitions that read scenario files."""

import json
import sys
from collections.abc import Sequence

import attrs
from rich.console import Group, RenderableType

from emulator.base.printing import print_cells, print_json
from emulator.base.rich_texts import Text, TextTable
from emulator.cli.terminal import tables_console
from emulator.spec.reading.reference import ROLES, ReferenceEntry, options_of
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import KnownOption, known_options
from emulator.spec.tables.mistakes import require_known

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


def show_options_of_rocketmq(kind: str | None, *, as_json: bool) -> None:
    """Print every option that RocketMQ 5.3.3 has for a kind of node, or for all kinds.

    In a terminal they are a table. Otherwise an option is one line: kind, class, name, type, default, status and what
    it is for, with tabs between them. A default that depends on the machine is what it depends on, in brackets.

    Args:
        kind: of node; None: all.
        as_json: print a JSON object, kind -> options.

    Raises:
        SpecError: there is no such kind.
    """
    if kind is not None:
        require_known("options", "kind of node", kind, list(FileKind))
    listed = {name: known_options(FileKind(name)) for name in (FileKind if kind is None else (kind,))}
    if as_json:
        print_json(json.dumps({name: [attrs.asdict(item) for item in of] for name, of in listed.items()}, indent=2))
        return
    if sys.stdout.isatty():
        console = tables_console()
        for name, known in listed.items():
            console.print(_table_of_rocketmq(name, known))
        return
    for name, known in listed.items():
        for option in known:
            status = option.status.replace("_", " ") if option.is_read else "read from no file"
            print_cells(name, option.of, option.name, option.type, _default_of(option), status, option.meaning)


def _default_of(option: KnownOption) -> str:
    return f"[{option.depends_on}]" if option.depends_on else option.default


def _table_of_rocketmq(kind: str, known: Sequence[KnownOption]) -> RenderableType:
    table = TextTable(box=None, pad_edge=False)
    table.add_column("option", no_wrap=True)
    table.add_column("default", overflow="fold", max_width=_DEFAULT_MAX)
    table.add_column("class, type, status and meaning", overflow="fold")
    for option in known:
        status = option.status.replace("_", " ") if option.is_read else "read from no file"
        subject = [Text(f"{option.of}, {option.type}", "cyan"), Text(f"{status}: {option.meaning}")]
        table.add_row(Text(option.name, "bold"), _default_of(option), Group(*subject))
    return Group(Text(f"{kind}: {len(known)} options", style="bold"), table, "")


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
