"""Seeded mutants of the product, and whether tests notice them: `python -m studies.mutants --help`.

A mutant is the product with one small mistake: a bound off by one, a comparison or a condition turned around, a row of
a table left out. Each is made in a copy of the checkout, where the tests then run until the first fails. A change of
the tests that loses nothing kills the same mutants as before: `--against` compares with an earlier result.
"""

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import attrs
import typer

ROOT = Path(__file__).parents[2]
PACKAGES = ("emulator", "faults", "nodes")
_COPIED = (*PACKAGES, "tests", "examples", "notebooks", "pyproject.toml", "README.md", "Makefile", "CHANGELOG.md")
_TURNED = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
"""Class of an operator -> how it is written, and what stands in its place."""
_TIMEOUT_S = 900
"""A mutant may make a loop endless; the tests of a module take less by far."""


@attrs.frozen(order=True)
class Mutant:
    """One mistake in one file."""

    path: str
    """From the root of the checkout."""
    start: int
    """Offset in the text of the file."""
    end: int
    text: str
    """What stands there in the mutant."""
    line: int
    was: str

    def name(self) -> str:
        """`emulator/x.py:17: < for <=`."""
        return f"{self.path}:{self.line}: {self.text or 'nothing'} for {self.was}"

    def applied(self, source: str) -> str:
        """The text of the file with the mistake."""
        return source[: self.start] + self.text + source[self.end :]


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    if not source.isascii():  # offsets of `ast` are bytes
        return []
    tree = ast.parse(source)
    of_types = {id(part) for node in ast.walk(tree) for part in _of_types(node)}
    found = [
        Mutant(path, start, end, text, line, source[start:end])
        for node in ast.walk(tree)
        if id(node) not in of_types
        for start, end, text, line in _changes(node, source, starts)
    ]
    return sorted(found)


def _of_types(node: ast.AST) -> Iterator[ast.AST]:
    """What is no code that runs: annotations."""
    for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if part is not None:
            yield from ast.walk(part)


def _changes(node: ast.AST, source: str, starts: Sequence[int]) -> Iterator[tuple[int, int, str, int]]:
    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def span(part: ast.expr) -> tuple[int, int]:
        return at(part.lineno, part.col_offset), at(part.end_lineno or 0, part.end_col_offset or 0)

    if isinstance(node, ast.Compare | ast.BoolOp):
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else node.values
        operators = node.ops if isinstance(node, ast.Compare) else [node.op]
        for operator, first, second in zip(operators, parts, parts[1:], strict=False):
            written, instead = _TURNED[type(operator)]
            between = source[span(first)[1] : span(second)[0]]
            if between.count(written) == 1:
                start = span(first)[1] + between.index(written)
                yield start, start + len(written), instead, node.lineno
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield span(node)[0], span(node.operand)[0], "", node.lineno
    elif isinstance(node, ast.Constant) and type(node.value) is int and str(node.value) == source[slice(*span(node))]:
        yield *span(node), str(node.value + 1), node.lineno
    elif isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 2 and isinstance(node.ctx, ast.Load):
        for part, following in zip(node.elts, node.elts[1:], strict=False):
            yield span(part)[0], span(following)[0], "", part.lineno


def drawn(seed: int, count: int, packages: Sequence[str] = PACKAGES) -> list[Mutant]:
    """Mutants of some packages, as many of each that lies in them as of the others."""
    chance = random.Random(seed)
    of_package: dict[str, list[Mutant]] = {}
    for package in packages:
        for file in sorted((ROOT / package).rglob("*.py")):
            path = file.relative_to(ROOT)
            key = "/".join(path.parts[:2]) if len(path.parts) > 2 else package
            of_package.setdefault(key, []).extend(mutants_of(str(path), file.read_text()))
    keys = [key for key, mutants in of_package.items() if mutants]
    chance.shuffle(keys)
    return [chance.choice(of_package[keys[number % len(keys)]]) for number in range(count)]


def is_killed(copy: Path, mutant: Mutant, tests: Sequence[str]) -> bool:
    """Whether a test fails in a copy of the checkout with a mutant; it is mended afterwards."""
    file = copy / mutant.path
    source = file.read_text()
    file.write_text(mutant.applied(source))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    surroundings = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'tests'}"}
    try:
        done = subprocess.run(command, cwd=copy, env=surroundings, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(source)
    return done.returncode != 0


def near(mutant: Mutant) -> list[str]:
    """The test files that import the module of a mutant, else from its package; all tests if none does."""
    module = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    texts = {str(file.relative_to(ROOT)): file.read_text() for file in sorted((ROOT / "tests").rglob("test_*.py"))}
    while module.count("."):
        found = [name for name, text in texts.items() if re.search(rf"\b{re.escape(module)}\b", text)]
        if found:
            return found
        module = module.rpartition(".")[0]
    return ["tests"]


def still_there(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Those of some mutants whose place has the same text as when they were drawn."""
    sources = {mutant.path: (ROOT / mutant.path) for mutant in mutants}
    texts = {path: file.read_text() if file.exists() else "" for path, file in sources.items()}
    return [mutant for mutant in mutants if texts[mutant.path][mutant.start : mutant.end] == mutant.was]


def run(
    seed: Annotated[int, typer.Option(help="Of the mutants.")] = 63,
    count: Annotated[int, typer.Option(help="How many.")] = 60,
    into: Annotated[Path, typer.Option(help="File for the results.")] = Path("mutants.json"),
    against: Annotated[
        Path | None,
        typer.Option(help="An earlier file: its mutants are made again where the text has not changed."),
    ] = None,
    only_near: Annotated[
        bool, typer.Option("--near", help="Run the tests that import the module of a mutant, or from its package.")
    ] = False,
    tests: Annotated[list[str] | None, typer.Argument(help="Arguments of pytest in place of all tests.")] = None,
) -> None:
    """Make mutants and print which the tests kill."""
    before = {} if against is None else {Mutant(**item["mutant"]): item["killed"] for item in _read(against)}
    mutants = drawn(seed, count) if against is None else still_there(list(before))
    results: dict[Mutant, bool] = {}
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in _COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
        for number, mutant in enumerate(mutants, 1):
            asked = near(mutant) if only_near else list(tests or ["tests"])
            results[mutant] = killed = is_killed(copy, mutant, asked)
            typer.echo(f"{number:3}/{len(mutants)}  {'killed  ' if killed else 'SURVIVED'}  {mutant.name()}")
            written = [{"mutant": attrs.asdict(item), "killed": found} for item, found in results.items()]
            into.write_text(json.dumps(written, indent=1))
    typer.echo(f"{sum(results.values())} of {len(results)} killed")
    if against is not None:
        lost = [mutant.name() for mutant, killed in before.items() if killed and results.get(mutant) is False]
        typer.echo("\n".join(f"lost: {name}" for name in lost) or "what was killed before is killed now")


def _read(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


if __name__ == "__main__":
    typer.run(run)
