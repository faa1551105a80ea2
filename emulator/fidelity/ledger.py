"""The fidelity ledger: every trap of RocketMQ, and whether the emulator reproduces it.

A trap is a behaviour that a re-implementation easily gets wrong: M1 and on
concern membership, C1 and on consumption, P1 and on special messages (POP, timers,
containers), K1 and on controller mode; Y1 and X1 and on were found by running the real
system. `traps.toml` lists all of them, with a reason for each that is absent.
`ledger.json` holds the marks of the tests; `make ledger` writes it, and a test checks
that it is up to date.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files

import attrs
from rich.console import Group, RenderableType

from emulator.base.errors import UserError
from emulator.base.rich_texts import Text, TextTable
from emulator.base.text import alike
from nodes.fields import shown

_RELEASE = "RocketMQ 5.3.3"
_WHOLE_CLUSTERS = ("tests/scenarios/", "tests/fault_kinds/", "tests/controller/")
"""Folders with tests that run a cluster, which shows more than a test of a table."""
_PYTEST = "pytest -m ''"
"""Runs a test with any mark; without the option, those that `make proofs` runs are left out."""
_WIDTH = 9


class Status(StrEnum):
    """How far a trap is reproduced."""

    REPRODUCED = "reproduced"
    SIMPLIFIED = "simplified"
    ABSENT = "absent"


@attrs.frozen
class Trap:
    """One behaviour in the catalogue."""

    id: str
    """A letter and a number: `M43`."""
    title: str
    mirrors: tuple[str, ...]
    """Classes of RocketMQ that have it, with the method where one method has it: `RouteInfoManager.registerBroker`."""
    absent: str = ""
    """Why it is not reproduced, of a trap without tests."""


@attrs.frozen
class TrapMark:
    """The mark of one test about one trap."""

    trap: str
    test: str
    """Node id: `tests/nameserver/test_route_table.py::test_...`."""
    status: Status = Status.REPRODUCED
    note: str = ""
    """How it is simplified."""


@attrs.frozen
class LedgerRow:
    """One trap with its status."""

    trap: str
    title: str
    mirrors: tuple[str, ...]
    """As in the catalogue."""
    status: Status
    tests: tuple[str, ...]
    """Node ids of its tests; empty if it is absent."""
    note: str
    """Simplified: how. Absent: why."""


@cache
def catalogue() -> tuple[Trap, ...]:
    """All traps, in the order of `traps.toml`."""
    tables = tomllib.loads(shipped("traps.toml"))
    return tuple(
        Trap(trap, entry["title"], tuple(entry["mirrors"]), entry.get("absent", "")) for trap, entry in tables.items()
    )


def recorded_marks() -> tuple[TrapMark, ...]:
    """The marks of the tests, as recorded with this version."""
    entries = json.loads(shipped("ledger.json"))
    return tuple(TrapMark(entry["trap"], entry["test"], Status(entry["status"]), entry["note"]) for entry in entries)


def ledger(marks: tuple[TrapMark, ...] | None = None) -> list[LedgerRow]:
    """The status of every trap.

    A trap is simplified if one of its tests says so.

    Args:
        marks: marks of tests; by default those recorded with this version.

    Returns:
        One row per trap, in the order of the catalogue.
    """
    judged = recorded_marks() if marks is None else marks
    return [_row(trap, [mark for mark in judged if mark.trap == trap.id]) for trap in catalogue()]


def brief(row: LedgerRow) -> dict[str, str]:
    """A row for JSON: trap, status, test (the first one, empty if the trap is absent), note."""
    return {
        "trap": row.trap,
        "status": row.status.value,
        "test": row.tests[0] if row.tests else "",
        "note": row.note,
    }


def _row(trap: Trap, marks: list[TrapMark]) -> LedgerRow:
    if not marks:
        return LedgerRow(trap.id, trap.title, trap.mirrors, Status.ABSENT, (), trap.absent)
    simplified = any(mark.status is Status.SIMPLIFIED for mark in marks)
    status = Status.SIMPLIFIED if simplified else Status.REPRODUCED
    notes = dict.fromkeys(mark.note for mark in marks if mark.note)
    tests = tuple(mark.test for mark in marks)
    return LedgerRow(trap.id, trap.title, trap.mirrors, status, tests, "; ".join(notes))


def shipped(name: str) -> str:
    """The text of a file of this package."""
    return files("emulator.fidelity").joinpath(name).read_text(encoding="utf-8")


_STYLE = {Status.REPRODUCED: "green", Status.SIMPLIFIED: "yellow", Status.ABSENT: "dim"}


def render(rows: Sequence[LedgerRow]) -> RenderableType:
    """The ledger as a table, with the number of traps of each status."""
    table = TextTable(box=None, pad_edge=False)
    for column in ("trap", "status", "tests"):
        table.add_column(column, no_wrap=True, justify="right" if column == "tests" else "left")
    table.add_column("what the real system does, and how or why not here", overflow="fold")
    for row in rows:
        subject = [Text(row.title), *([Text(row.note, "dim")] if row.note else [])]
        table.add_row(row.trap, Text(row.status, style=_STYLE[row.status]), str(len(row.tests) or ""), subject)
    return Group(table, "", summary(rows))


def summary(rows: Sequence[LedgerRow]) -> str:
    """`60 reproduced, 3 simplified, 59 absent`."""
    return ", ".join(f"{sum(row.status is status for row in rows)} {status}" for status in Status)


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
    """A trap as lines, for people: its sentence, status, classes, tests, and how to see it."""
    return [
        f"{row.trap}: {row.title}.",
        *_named("status", [row.status.value]),
        *_named("how" if row.status is Status.SIMPLIFIED else "why", [row.note] if row.note else []),
        *_named("mirrors", [f"{name} of {_RELEASE}" for name in row.mirrors]),
        *_named("tests", list(row.tests)),
        *_named("see it", [f"{_PYTEST} '{shown_by(row)}'"] if row.tests else ["no test shows it, since it is absent"]),
    ]


def shown_by(row: LedgerRow) -> str:
    """The test that shows most of a trap: of a whole cluster, if there is one."""
    return next((test for test in row.tests if test.startswith(_WHOLE_CLUSTERS)), row.tests[0])


def _named(name: str, values: list[str]) -> Iterator[str]:
    for number, value in enumerate(values):
        yield f"  {'' if number else name:<{_WIDTH}}{value}"
