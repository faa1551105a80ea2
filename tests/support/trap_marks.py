"""A pytest plugin: the marks that name traps are read in the collection, checked, and written down where asked.

    pytest --collect-only -q --ledger=emulator/fidelity/ledger.json

writes what all tests say, also those that the command line deselects (`make ledger`).
"""

import json
from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest

from emulator.fidelity.ledger import Status, TrapMark, catalogue

_DEFAULTS = (("trap", ""), ("status", Status.REPRODUCED.value), ("note", ""))


@attrs.frozen
class CollectedMarks:
    """What a collection has found."""

    marks: tuple[TrapMark, ...]
    files: frozenset[Path]
    """All files with tests that it has read as a whole."""


COLLECTED: pytest.StashKey[CollectedMarks] = pytest.StashKey()


class MarkError(ValueError):
    """A `pytest.mark.trap` says something that cannot be; its text says where and what."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--ledger", metavar="FILE", type=Path, help="write the trap marks of all collected tests")


@pytest.hookimpl(tryfirst=True)  # before -m and -k take tests away
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    try:
        marks = marks_of(items)
    except MarkError as error:
        raise pytest.UsageError(str(error)) from None
    chosen = {Path(argument.partition("::")[0]).resolve() for argument in config.args if "::" in argument}
    config.stash[COLLECTED] = CollectedMarks(marks, frozenset({item.path for item in items} - chosen))
    if config.option.ledger is not None and not session.testsfailed:  # a file that cannot be read has marks, too
        config.option.ledger.write_text(dump(marks), encoding="utf-8")


def marks_of(items: Iterable[pytest.Item]) -> tuple[TrapMark, ...]:
    """The marks of tests, classes and modules, each once, ordered as the catalogue and then by test.

    Raises:
        MarkError: a mark says something that cannot be.
    """
    order = {trap.id: place for place, trap in enumerate(catalogue())}
    marks: dict[TrapMark, None] = {}
    for item in items:
        for node, mark in item.iter_markers_with_node("trap"):
            test = node.nodeid.partition("[")[0]  # all cases of a test are one
            marks[read_mark(test, mark.args, dict(mark.kwargs))] = None
    return tuple(sorted(marks, key=lambda mark: (order[mark.trap], mark.test)))


def read_mark(test: str, args: tuple[object, ...], kwargs: dict[str, object]) -> TrapMark:
    """What one mark says.

    Args:
        test: node id of the test that bears it.
        args: the mark's positional arguments.
        kwargs: its named arguments.

    Raises:
        MarkError: no such trap, no such status, or a simplification that does not say how.
    """
    values = {**dict(zip(("trap", "status", "note"), args, strict=False)), **kwargs}
    if "id" in values:
        values["trap"] = values.pop("id")
    trap, status, note = (str(values.pop(key, default)) for key, default in _DEFAULTS)
    if values or len(args) > len(_DEFAULTS):
        raise MarkError(f"{test}: trap() takes id, status and note")
    if trap not in [known.id for known in catalogue()]:
        raise MarkError(f"{test}: no trap is called {trap!r}; emulator/fidelity/traps.toml has them all")
    if status not in (Status.REPRODUCED, Status.SIMPLIFIED):
        raise MarkError(f"{test}: a test shows {trap} reproduced or simplified, not {status!r}")
    if (status == Status.SIMPLIFIED) != bool(note):
        raise MarkError(f"{test}: a note says how {trap} is simplified, and is there only then")
    return TrapMark(trap, test, Status(status), note)


def dump(marks: Iterable[TrapMark]) -> str:
    """The text of `ledger.json`."""
    entries = [attrs.asdict(mark) for mark in marks]
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
