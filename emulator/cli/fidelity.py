"""`rmqemu fidelity`: the ledger of traps, or one trap."""

import json

import attrs

from emulator.base.printing import print_json, print_line
from emulator.cli.terminal import tables_console
from emulator.fidelity import request_codes
from emulator.fidelity.ledger import brief, ledger, lines_of, render, row_of


def show_ledger(*, as_json: bool) -> None:
    """Print all traps."""
    rows = ledger()
    if as_json:
        print_json(json.dumps([brief(row) for row in rows], indent=2, ensure_ascii=False))
    else:
        tables_console().print(render(rows))


def show_codes(*, as_json: bool) -> None:
    """Print all request codes."""
    rows = request_codes.request_codes()
    if as_json:
        print_json(json.dumps([attrs.asdict(row) for row in rows], indent=2))
    else:
        tables_console().print(request_codes.render(rows))


def show_trap(trap: str, *, as_json: bool) -> None:
    """Print one trap.

    Args:
        trap: its id, `M7`.
        as_json: for programs.

    Raises:
        NoTrapError: no trap has this id.
    """
    row = row_of(trap)
    if as_json:
        print_json(json.dumps(attrs.asdict(row), indent=2, ensure_ascii=False))
        return
    for line in lines_of(row):
        print_line(line)
