"""Verification: repeating a run and comparing the two traces."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from heapq import merge
from pathlib import Path
from typing import Any

import attrs

from emulator.base.errors import UserError
from emulator.run.run import run_scenario
from emulator.spec import from_dict
from emulator.time.mode import TimeMode
from emulator.trace.run_directory import Ended, RunDirectory, open_run, table_rows
from emulator.trace.schema import TABLES, Table


class NotVerifiableError(UserError):
    """A run cannot be repeated; the text says why in one line."""


@attrs.frozen
class Difference:
    """The first row in which two traces differ."""

    table: str
    first: dict[str, Any] | None
    """The row of the run; None: its trace has ended."""
    second: dict[str, Any] | None
    """The row of the repetition; None: its trace has ended."""
    versions: tuple[str, ...] = ()
    """Packages whose versions differ: `trio 0.34.0, now 0.35.0`."""


def repeat(run: RunDirectory) -> Difference | None:
    """Repeat a run in a process with another hash seed, and compare.

    Returns:
        The first difference; None if the repetition is identical.

    Raises:
        NotVerifiableError: the run was `live` or is not complete, the repetition failed, or only the digests differ.
    """
    manifest = run.manifest
    if manifest["mode"] == TimeMode.LIVE:
        raise NotVerifiableError(f"{run.path} was run live: real time cannot be repeated; use --mode fast or sim")
    if run.ended is not Ended.COMPLETE:
        raise NotVerifiableError(
            f"{run.path}: {run.broken_off()}; its files are whole, but only complete runs can be repeated"
        )
    with tempfile.TemporaryDirectory(prefix="rmqemu-verify-") as scratch:
        again = _run_again(run, Path(scratch))
        if again.manifest["digest"] == manifest["digest"]:
            return None
        difference = first_difference(run.path, again.path)
        if difference is None:
            raise NotVerifiableError(
                f"{run.path}: its rows equal those of the repetition, but its digest does not: the manifest was changed"
            )
        return attrs.evolve(difference, versions=_other_versions(manifest["versions"], again.manifest["versions"]))


def first_difference(one: Path, other: Path) -> Difference | None:
    """The first row, in the order of seq, in which two traces differ; None if they are equal."""
    rows, other_rows = _rows(one), _rows(other)
    while True:
        mine, others = next(rows, None), next(other_rows, None)
        if mine is None and others is None:
            return None
        if mine != others:
            table = (mine or others or (0, "", {}))[1]
            return Difference(table, mine and mine[2], others and others[2])


def describe(difference: Difference) -> str:
    """A difference as text: the table, the two rows, and the columns that differ."""
    first, second = difference.first or {}, difference.second or {}
    lines = [f"different: the first row that differs is in table {difference.table}"]
    for title, row in (("run", difference.first), ("repetition", difference.second)):
        text = "(ended before)" if row is None else " ".join(f"{name}={value}" for name, value in row.items())
        lines.append(f"  {title + ':':<12}{text}")
    columns = [name for name in first if name in second and first[name] != second[name]]
    if columns:
        lines.append(f"  differs in: {', '.join(columns)}")
    lines += [f"  note: made with {version}" for version in difference.versions]
    return "\n".join(lines)


def _run_again(run: RunDirectory, scratch: Path) -> RunDirectory:
    environment = {**os.environ, "PYTHONHASHSEED": _other_hash_seed()}
    command = [sys.executable, "-m", "emulator.run.verify", str(run.path), str(scratch)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last_words = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NotVerifiableError(f"{run.path}: the repetition failed: {last_words}")
    return open_run(done.stdout.strip().splitlines()[-1])


def _other_hash_seed() -> str:
    """A hash seed that differs from that of this process."""
    mine = os.environ.get("PYTHONHASHSEED", "random")
    return "4711" if mine != "4711" else "815"


def _other_versions(then: dict[str, str], now: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"{name} {version}, now {now.get(name)}" for name, version in then.items() if version != now.get(name))


def _rows(run: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    def of(table: Table) -> Iterator[tuple[int, str, dict[str, Any]]]:
        return ((row["seq"], table.name, row) for row in table_rows(run, table))

    return merge(*map(of, TABLES), key=lambda row: row[0])


def main(run: str, runs: str) -> None:
    """`python -m emulator.run.verify RUN RUNS`: repeat a run below RUNS, and print the new run directory."""
    manifest = open_run(run).manifest
    result = run_scenario(from_dict(manifest["scenario"]), mode=TimeMode(manifest["mode"]), runs=Path(runs))
    sys.stdout.write(f"{result.path}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
