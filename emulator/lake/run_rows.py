"""The row of a run in the table `runs`: all that judging needs, apart from the rows of the trace."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs

from emulator.analysis.inputs.facts import facts_of
from emulator.analysis.judge import broken_off, unreliable_parts
from emulator.lake.sources import RunSource
from emulator.spec import Scenario, from_dict
from emulator.spec.addresses import owners
from emulator.trace.run_directory import RunDirectory
from emulator.trace.seals import checksum


def release_of(run: RunDirectory) -> str:
    """The release of the emulator that executed a run."""
    return str(run.manifest.get("versions", {}).get("rocketmq-emulator", ""))


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
    manifest = run.manifest
    scenario = _scenario(manifest["scenario"])
    facts = facts_of(scenario, run.end_ns)
    counts = run.trace.counts()
    return {
        "run": source.run,
        "campaign": source.campaign,
        "scenario": scenario.name,
        "variant": source.variant,
        "condition": source.condition,
        "seed": int(manifest["seed"]),
        "mode": str(manifest["mode"]),
        "level": str(run.level),
        "digest": str(manifest["digest"]),
        "release": release_of(run),
        "schema": int(manifest["schema_version"]),
        "ended": run.ended.name,
        "end_ns": run.end_ns,
        "rows": sum(counts.values()),
        "acting": facts.acting,
        "elected": facts.elected,
        "ordered": list(facts.ordered),
        "exclusive": list(facts.exclusive),
        "broker_names": _pairs(facts.broker_names),
        "consume_ms": _pairs(facts.consume_ms),
        # All are whole numbers; the budget is one of seconds, a float.
        "bounds": _pairs({name: int(value) for name, value in attrs.asdict(facts.bounds).items()}),
        "limits": _pairs(attrs.asdict(scenario.service)),
        # A run that was killed has no manifest, so its addresses are those of the scenario.
        "names": _pairs(manifest.get("addresses") or owners(scenario)),
        "roles": _pairs(_roles(scenario)),
        "broken_off": broken_off(run),
        "unreliable": unreliable_parts(run),
        "rows_of": _pairs(counts),
    }


def _scenario(tables: Mapping[str, Any]) -> Scenario:
    """The scenario of a run without its seed, on which nothing in its row depends: a campaign has few of them."""
    head = {key: value for key, value in tables["scenario"].items() if key != "seed"}
    return _read(json.dumps({**tables, "scenario": head}))


@lru_cache(maxsize=64)
def _read(tables: str) -> Scenario:
    return from_dict(json.loads(tables), "the scenario in the manifest")


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
