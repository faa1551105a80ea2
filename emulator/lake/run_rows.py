"""The row of a run in the table `runs`: all that judging needs, apart from the rows of the trace."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from emulator.analysis.run_head import fields_of, head_of, scenario_of
from emulator.lake.sources import RunSource
from emulator.spec import Scenario
from emulator.trace.run_directory import RunDirectory
from emulator.trace.seals import checksum


def release_of(run: RunDirectory) -> str:
    """The release of the emulator that executed a run."""
    return str(run.manifest.get("versions", {}).get("rocketmq-emulator", ""))


def names_of(run: RunDirectory) -> tuple[str, str, str]:
    """What its entry in a snapshot names: release, digest of the campaign, digest of the scenario."""
    return release_of(run), str(run.manifest.get("campaign", "")), scenario_digest(run.manifest["scenario"])


def scenario_digest(tables: Mapping[str, Any]) -> str:
    """The digest of a scenario, given by its tables, whatever its seed."""
    return checksum(json.dumps(without_seed(tables), sort_keys=True).encode())


def without_seed(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a scenario without its seed."""
    return {**tables, "scenario": {key: table for key, table in tables.get("scenario", {}).items() if key != "seed"}}


def content_of(run: RunDirectory) -> str:
    """A checksum over what a run holds; two directories with the same rows of the same scenario have the same.

    The digest of a complete run covers its rows. A run without a manifest has none, so its files take the place.
    """
    manifest = run.manifest
    rows: Any = manifest["digest"]
    if not rows:
        rows = {
            table: [[entry.checksum for entry in entries], run.trace.waiting[table]]
            for table, entries in run.trace.segments.items()
        }
    keys = ("schema_version", "seed", "mode", "scenario", "rows")
    content = [*(manifest[key] for key in keys), run.level, run.ended, run.end_ns, rows]
    return checksum(json.dumps(content, sort_keys=True).encode())


def run_row(run: RunDirectory, source: RunSource) -> dict[str, Any]:
    """The row of a run, with the columns of `emulator.lake.layout.RUNS_SCHEMA`.

    Args:
        run: that `source` names.
        source: of the run.

    Returns:
        Mapping column -> value. `ended` is a name of `Ended`; `bounds` and `limits` have the fields of `Bounds` and
        `ServiceLimits`; `names` maps the address of a node, or the client id of a guest, to its name, `roles` the name
        of a node of the scenario to its role, and `rows_of` a table to its rows.
    """
    head, counts = head_of(run), run.trace.counts()
    plain = {
        **fields_of(head),
        # All are whole numbers; the budget is one of seconds, kept as a float.
        "bounds": {name: int(value) for name, value in attrs.asdict(head.facts.bounds).items()},
        "campaign": source.campaign,
        "variant": source.variant,
        "condition": source.condition,
        "level": str(run.level),
        "release": release_of(run),
        "schema": int(run.manifest["schema_version"]),
        "ended": run.ended.name,
        "rows": sum(counts.values()),
        "roles": _roles(scenario_of(run.manifest["scenario"])),
        "rows_of": counts,
    }
    return {name: _pairs(value) if isinstance(value, dict) else value for name, value in plain.items()}


def _pairs(mapping: Any) -> list[tuple[str, Any]]:
    """A mapping in the form that Arrow takes, sorted by key."""
    return sorted(mapping.items())


def _roles(scenario: Scenario) -> dict[str, str]:
    """Mapping node -> role; a nameserver with a controller inside is a nameserver."""
    found: dict[str, str] = {}
    for role, names in scenario.by_role().items():
        for name in names:
            found.setdefault(name, role)
    return found
