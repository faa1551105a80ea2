"""What of a run can be repeated: its scenario as tables that variants change, and what is missing then."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from emulator.base.errors import UserError
from emulator.base.files import DOCUMENT_BYTES_MAX, read_text
from emulator.spec import Scenario, SpecError, UserCode, from_dict, load, to_dict
from emulator.spec.model.addresses import owners
from emulator.spec.model.scenario import ADMINISTRATOR
from emulator.spec.reading.faults import write_plan
from emulator.spec.reading.secrets import with_stand_ins
from emulator.spec.reading.user_functions import with_user_functions
from emulator.time.mode import TimeMode
from emulator.trace.run_directory import BY_HAND_FILE, MANIFEST, RunDirectory, RunEnd
from emulator.trace.schema import TraceLevel
from faults.plan import Plan
from nodes.units import NS_PER_MS

Tables = dict[str, Any]
"""A scenario as plain values, in the form of `emulator.spec.to_dict`."""
_DISTURBANCES = ("fault", "admin")
_NOT_REPEATED = "# Not repeated: "


class CounterfactualError(UserError):
    """A run cannot be repeated; the text says why in one line."""


@attrs.frozen
class Repetition:
    """What stands for a run when it is repeated, in mode `sim`."""

    tables: Tables
    """Its scenario, with the faults that were drawn for nemeses in their place."""
    code: UserCode
    marks: Mapping[str, str]
    """Which of its secrets are equal; see `with_stand_ins`."""
    mode: TimeMode
    """Of the run."""
    level: TraceLevel
    """Of the run."""
    digest: str
    """Of the run; empty: it is not complete, so no repetition has the same."""
    missing: tuple[str, ...]
    """What happened in the run and cannot be repeated, a line each."""

    def disturbances(self) -> tuple[str, ...]:
        """The ids of all its faults and acts."""
        return tuple(table["id"] for section in _DISTURBANCES for table in self.tables.get(section, ()))

    def with_only(self, retained: Sequence[str]) -> Tables:
        """Its tables with some of its disturbances."""
        changed = copy.deepcopy(self.tables)
        for section in _DISTURBANCES:
            changed[section] = [table for table in changed.get(section, ()) if table["id"] in retained]
        return changed

    def scenario(self, tables: Tables) -> Scenario:
        """The scenario of changed tables.

        Raises:
            SpecError: they are none.
        """
        return with_user_functions(with_stand_ins(from_dict(tables, code=self.code), self.marks))


def repetition_of(run: RunDirectory, *, allow_code: bool = False) -> Repetition:
    """What of a run can be repeated.

    What was done interactively is in its `by_hand.toml`. A run that did not come to its end is repeated up to where it
    ended. Guests are real programs, which nobody repeats.

    Args:
        run: to repeat.
        allow_code: whether its scenario may run code that it names, of the modules next to its manifest.

    Raises:
        SpecError: its scenario names code that is not allowed.
        CounterfactualError: the run is under way, or ended before anything happened.
    """
    if run.ended is RunEnd.UNDER_WAY:
        raise CounterfactualError(f"{run.path}: the run is still under way: expected one that has ended")
    mode = TimeMode(run.manifest["mode"])
    scenario, missing = _scenario_of(run, allow_code=allow_code)
    if run.ended is not RunEnd.COMPLETE or (mode is TimeMode.LIVE and not _by_hand(run).exists()):
        scenario = _until(scenario, run)
    if guests := [*dict.fromkeys(_guests(run, scenario))]:
        missing = (*missing, f"what guests did: {', '.join(guests)}")
    tables = to_dict(attrs.evolve(scenario, guests=()))
    if scenario.nemeses:
        tables["fault"] = write_plan(scenario.plan())
        del tables["nemesis"]
    complete = run.ended is RunEnd.COMPLETE and mode is TimeMode.SIM
    digest = str(run.manifest["digest"]) if complete else ""
    marks = run.manifest.get("secrets", {})
    found = Repetition(tables, scenario.code, marks, mode, run.level, digest, missing)
    try:
        found.scenario(tables)
    except SpecError as error:
        raise error.within(str(run.path / MANIFEST)) from None
    return found


def _scenario_of(run: RunDirectory, *, allow_code: bool) -> tuple[Scenario, tuple[str, ...]]:
    """The scenario that repeats a run, and what its `by_hand.toml` says is not repeated."""
    path = _by_hand(run)
    if path.exists():
        scenario = load(path, allow_code=allow_code)
        lines = read_text(path, DOCUMENT_BYTES_MAX).splitlines()
        return scenario, tuple(line.removeprefix(_NOT_REPEATED) for line in lines if line.startswith(_NOT_REPEATED))
    code = UserCode.next_to(run.path / MANIFEST, allow=allow_code)
    return from_dict(run.manifest["scenario"], code=code), ()


def _by_hand(run: RunDirectory) -> Path:
    return run.path / BY_HAND_FILE


def _until(scenario: Scenario, run: RunDirectory) -> Scenario:
    """The scenario up to the end of a run; what would have begun later is left out."""
    end_ms = run.end_ns // NS_PER_MS
    if end_ms <= 0:
        raise CounterfactualError(f"{run.path}: the run ended before anything happened: there is nothing to repeat")
    faults = Plan(tuple(timed for timed in scenario.plan().faults if timed.at_ms < end_ms))
    acts = tuple(timed for timed in scenario.acts if timed.at_ms < end_ms)
    return attrs.evolve(scenario, run_for_ms=end_ms, faults=faults, nemeses=(), acts=acts)


def _guests(run: RunDirectory, scenario: Scenario) -> Iterator[str]:
    """The guests that joined a run: whoever has an address, and is no node of its scenario."""
    own = dict.fromkeys((*owners(attrs.evolve(scenario, guests=())).values(), ADMINISTRATOR))
    return (name for name in run.manifest.get("addresses", {}).values() if name not in own)
