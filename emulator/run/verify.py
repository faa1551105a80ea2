"""Verification: repeating a run and comparing the two traces."""

import atexit
import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from emulator.base.commit import UNKNOWN, commit
from emulator.base.errors import UserError
from emulator.comparison.rows import RowDifference, first_difference
from emulator.run.run import run_scenario
from emulator.spec import Scenario, SpecError, UserCode, from_dict
from emulator.spec.code.permission_of_code import ALLOW_CODE
from emulator.spec.reading.secrets import with_stand_ins
from emulator.spec.reading.user_functions import with_user_functions
from emulator.time.mode import TimeMode
from emulator.trace.run_directory import COMMIT, MANIFEST, RunDirectory, RunEnd, open_run, versions


class NotVerifiableError(UserError):
    """A run cannot be repeated; the text says why in one line."""


def repeat(run: RunDirectory, *, allow_code: bool = False) -> RowDifference | None:
    """Repeat a run in a process with another hash seed, and compare.

    Args:
        run: to repeat.
        allow_code: whether its scenario may run code that it names, of the modules next to its manifest.

    Returns:
        The first row that differs; None if the repetition is identical.

    Raises:
        SpecError: its scenario names code that is not allowed.
        NotVerifiableError: the run was `live` or is not complete, the repetition failed, or only the digests differ.
    """
    manifest = run.manifest
    if manifest["mode"] == TimeMode.LIVE:
        raise NotVerifiableError(f"{run.path} was run live: real time cannot be repeated; use --mode fast or sim")
    if run.ended is not RunEnd.COMPLETE:
        raise NotVerifiableError(
            f"{run.path}: {run.broken_off()}; its files are whole, but only complete runs can be repeated"
        )
    _require_allowed(run, allow_code=allow_code)
    with tempfile.TemporaryDirectory(prefix="rmqemu-verify-") as scratch:
        again = _run_again(run, Path(scratch), [ALLOW_CODE] if allow_code else [])
        if again.manifest["digest"] == manifest["digest"]:
            return None
        row = first_difference(run.trace, again.trace)
        if row is None:
            raise NotVerifiableError(
                f"{run.path}: its rows equal those of the repetition, but its digest does not: the manifest was changed"
            )
        return row


def describe(difference: RowDifference) -> list[str]:
    """A difference as lines: the table, the two rows, and the columns that differ."""
    rows = (difference.first, difference.second)
    table = next(row.table for row in rows if row is not None)
    lines = [f"different: the first row that differs is in table {table}"]
    for title, row in zip(("run", "repetition"), rows, strict=True):
        text = "(ended before)" if row is None else " ".join(f"{name}={value}" for name, value in row.fields.items())
        lines.append(f"  {title + ':':<12}{text}")
    first, second = ({} if row is None else row.fields for row in rows)
    columns = [name for name in first if name in second and first[name] != second[name]]
    if columns:
        lines.append(f"  differs in: {', '.join(columns)}")
    return lines


def other_versions(run: RunDirectory) -> list[str]:
    """What a run was made with that is not what repeats it, `trio 0.34.0, now 0.35.0`: packages, and the commit."""
    then = {**run.manifest.get("versions", {}), COMMIT: run.manifest.get(COMMIT, UNKNOWN)}
    now = {**versions(), COMMIT: commit()}
    return [f"{name} {then[name]}, now {now.get(name)}" for name in then if then[name] != now.get(name)]


def _scenario_of(run: RunDirectory, *, allow_code: bool) -> Scenario:
    code = UserCode.next_to(run.path / MANIFEST, allow=allow_code)
    return from_dict(run.manifest["scenario"], code=code)


def _require_allowed(run: RunDirectory, *, allow_code: bool) -> None:
    try:
        with_user_functions(_scenario_of(run, allow_code=allow_code))
    except SpecError as error:
        raise error.within(str(run.path / MANIFEST)) from None


def _run_again(run: RunDirectory, scratch: Path, options: list[str]) -> RunDirectory:
    environment = {**os.environ, "PYTHONHASHSEED": _other_hash_seed()}
    # -P: a module in the working directory, which may be anybody's, must not stand in the place of one of ours.
    command = [sys.executable, "-P", "-m", "emulator.run.verify", str(run.path), str(scratch), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last_words = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NotVerifiableError(f"{run.path}: the repetition failed: {last_words}")
    return open_run(done.stdout.strip().splitlines()[-1])


def _other_hash_seed() -> str:
    """A hash seed that differs from that of this process."""
    mine = os.environ.get("PYTHONHASHSEED", "random")
    return "4711" if mine != "4711" else "815"


def main(run: str, runs: str, *options: str) -> None:
    """`python -m emulator.run.verify RUN RUNS`: repeat a run below RUNS, and print the new run directory."""
    first = open_run(run)
    written, mode = _scenario_of(first, allow_code=ALLOW_CODE in options), TimeMode(first.manifest["mode"])
    scenario = with_stand_ins(written, first.manifest.get("secrets", {}))
    result = run_scenario(scenario, mode=mode, level=first.level, runs=Path(runs))
    sys.stdout.write(f"{result.path}\n")


if __name__ == "__main__":
    atexit.register(gc.freeze)  # as the command does: Python has not to look through all that was imported at its end
    main(*sys.argv[1:])
