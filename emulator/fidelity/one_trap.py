"""One trap of the ledger for people: what the real system does, where, and a test that shows it."""

from collections.abc import Iterator

from emulator.base.errors import UserError
from emulator.base.text import alike
from emulator.fidelity.ledger import LedgerRow, Status, ledger
from nodes.fields import shown

RELEASE = "RocketMQ 5.3.3"
_WHOLE_CLUSTERS = ("tests/scenarios/", "tests/fault_kinds/", "tests/controller/")
"""Folders with tests that run a cluster, which shows more than a test of a table."""
_PYTEST = "pytest -m ''"
"""Runs a test with any mark; without the option, those that `make proofs` runs are left out."""
_WIDTH = 9


class NoTrapError(UserError):
    """No trap has this id; the text names ids that are like it."""


def row_of(trap: str) -> LedgerRow:
    """The row of a trap.

    Args:
        trap: its id, `M7` or `m7`.

    Raises:
        NoTrapError: there is none.
    """
    rows = {row.trap: row for row in ledger()}
    found = rows.get(trap.upper())
    if found is None:
        near = alike(trap.upper(), list(rows), 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`rmqemu fidelity` lists all"
        raise NoTrapError(f"there is no trap {shown(trap)}; {hint}")
    return found


def lines_of(row: LedgerRow) -> list[str]:
    """A trap as lines: its sentence, status, classes, tests, and how to see it."""
    return [
        f"{row.trap}: {row.title}.",
        *_named("status", [row.status.value]),
        *_named("how" if row.status is Status.SIMPLIFIED else "why", [row.note] if row.note else []),
        *_named("mirrors", [f"{name} of {RELEASE}" for name in row.mirrors]),
        *_named("tests", list(row.tests)),
        *_named("see it", [f"{_PYTEST} '{shown_by(row)}'"] if row.tests else ["no test shows it, since it is absent"]),
    ]


def shown_by(row: LedgerRow) -> str:
    """The test that shows most of a trap: of a whole cluster, if there is one."""
    return next((test for test in row.tests if test.startswith(_WHOLE_CLUSTERS)), row.tests[0])


def _named(name: str, values: list[str]) -> Iterator[str]:
    for number, value in enumerate(values):
        yield f"  {'' if number else name:<{_WIDTH}}{value}"
