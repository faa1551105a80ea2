"""`rmqemu fidelity`: RocketMQ's traps, and what became of each here."""

import json

from emulator.cli.terminal import tables_console
from emulator.fidelity.ledger import brief, ledger, render


def print_ledger(*, as_json: bool) -> None:
    """The ledger as a table, or as JSON."""
    rows = ledger()
    if as_json:
        print(json.dumps([brief(row) for row in rows], indent=2, ensure_ascii=False))
    else:
        tables_console().print(render(rows))
