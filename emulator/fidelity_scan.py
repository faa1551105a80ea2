"""Find the traps that tests name, without importing a test.

`python -m emulator.fidelity_scan tests emulator/fidelity_ledger.json` writes
the ledger's data anew.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

from emulator.fidelity import Status, TrapMark, catalogue


class MarkError(ValueError):
    """A `pytest.mark.trap` says something that cannot be; its text says where and what."""


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
        raise MarkError(f"{test}: no trap is called {trap!r}; there are M1 to M72, C1 to C50, Y1 to Y19 and X1 to X22")
    if status not in (Status.REPRODUCED, Status.SIMPLIFIED):
        raise MarkError(f"{test}: a test shows {trap} reproduced or simplified, not {status!r}")
    if (status == Status.SIMPLIFIED) != bool(note):
        raise MarkError(f"{test}: a note says how {trap} is simplified, and is there only then")
    return TrapMark(trap, test, Status(status), note)


_DEFAULTS = (("trap", ""), ("status", Status.REPRODUCED.value), ("note", ""))


def scan(tests: Path) -> list[TrapMark]:
    """All marks below a folder, ordered as the catalogue and then by test.

    Raises:
        MarkError: a mark says something that cannot be, or is no literal.
    """
    order = {trap.id: place for place, trap in enumerate(catalogue())}
    marks: list[TrapMark] = []
    for path in sorted(tests.rglob("test_*.py")):
        name = f"{tests.name}/{path.relative_to(tests).as_posix()}"
        marks += _marks_in(ast.parse(path.read_text(encoding="utf-8"), filename=name), name)
    return sorted(marks, key=lambda mark: (order[mark.trap], mark.test))


def dump(marks: list[TrapMark]) -> str:
    """The text of `fidelity_ledger.json`."""
    entries = [attrs.asdict(mark) for mark in marks]
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def _marks_in(node: ast.AST, test: str) -> Iterator[TrapMark]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _marks_in(child, f"{test}::{child.name}")
            continue
        if isinstance(child, ast.Call) and _is_trap(child.func):
            yield _read_call(child, test)
        yield from _marks_in(child, test)


def _is_trap(func: ast.expr) -> bool:
    return ast.unparse(func) in ("pytest.mark.trap", "mark.trap")


def _read_call(call: ast.Call, test: str) -> TrapMark:
    try:
        args = tuple(ast.literal_eval(arg) for arg in call.args)
        kwargs = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except ValueError:
        raise MarkError(f"{test}: line {call.lineno}: the arguments of trap() must be literals") from None
    return read_mark(test, args, kwargs)


def main() -> None:
    """Write the marks of the tests below argv[1] to the file argv[2]."""
    tests, target = sys.argv[1:]
    Path(target).write_text(dump(scan(Path(tests))), encoding="utf-8")


if __name__ == "__main__":
    main()
