"""The head of a run: what judging needs besides the rows, from its manifest, or from the first line of its index."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs

from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.inputs.facts import RunFacts, facts_of
from emulator.history.rows.row_classes import WHOLE_TABLES
from emulator.spec import Scenario, from_dict
from emulator.spec.model.addresses import owners
from emulator.spec.model.service_limits import ServiceLimits
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, OWNERSHIP


@attrs.frozen(kw_only=True)
class RunHead:
    """What judging needs of a run besides its rows."""

    run: str
    """Its id."""
    scenario: str
    """Name of its scenario."""
    seed: int
    mode: str
    digest: str
    facts: RunFacts
    limits: ServiceLimits
    """Of the service verdict."""
    broken_off: tuple[str, ...]
    """Why the run as a whole has no result; empty: it has."""
    unreliable: tuple[str, ...]
    """Why the absence of violations proves nothing; empty: it proves that there were none."""

    @property
    def names(self) -> Mapping[str, str]:
        """Mapping address, or client id of a guest -> node."""
        return self.facts.names


def head_of(run: RunDirectory) -> RunHead:
    """The head of a run, also of one that is under way or was killed."""
    manifest = run.manifest
    scenario = scenario_of(manifest["scenario"])
    return RunHead(
        run=run.run,
        scenario=str(manifest["scenario"]["scenario"]["name"]),
        seed=int(manifest["seed"]),
        mode=str(manifest["mode"]),
        digest=str(manifest["digest"]),
        # A run that was killed has no manifest, so its addresses are those of the scenario.
        facts=facts_of(scenario, run.end_ns, dict(manifest.get("addresses") or owners(scenario))),
        limits=scenario.service,
        broken_off=tuple(broken_off(run)),
        unreliable=tuple(unreliable_parts(run)),
    )


def scenario_of(tables: Mapping[str, Any]) -> Scenario:
    """The scenario in a manifest without its seed, on which no fact depends: the runs of a campaign share a few."""
    head = {key: value for key, value in tables["scenario"].items() if key != "seed"}
    return _read(json.dumps({**tables, "scenario": head}))


@lru_cache(maxsize=64)
def _read(tables: str) -> Scenario:
    return from_dict(json.loads(tables), "the scenario in the manifest")


def broken_off(run: RunDirectory) -> list[str]:
    """Why a run as a whole has no result."""
    crashes = [f"{crash}: the emulator has a bug" for crash in run.manifest.get("crashes", ())]
    why = run.broken_off()
    return [*crashes, why] if why else crashes


def unreliable_parts(run: RunDirectory) -> list[str]:
    """Why the absence of violations proves nothing."""
    if any(table not in run.level.whole for table in WHOLE_TABLES):
        return [f"the level of its trace is {run.level}: oracles read levels full and findings"]
    counts = run.trace.counts()
    promised: dict[str, int] = dict(run.manifest["rows"])
    lacking = [
        f"{name}: {there} of the {promised.get(name, 0)} rows that the manifest promises are there"
        for name, there in counts.items()
        if there != promised.get(name, 0)
    ]
    if not counts[OWNERSHIP.name] and not counts[BELIEFS.name]:
        lacking.append("no node recorded a belief or owned a queue: there is nothing to judge")
    return lacking


def fields_of(head: RunHead) -> dict[str, Any]:
    """A head as plain values, one per column of the landed table `runs`."""
    facts = head.facts
    return {
        "run": head.run,
        "scenario": head.scenario,
        "seed": head.seed,
        "mode": head.mode,
        "digest": head.digest,
        "end_ns": facts.end_ns,
        "acting": facts.acting,
        "elected": facts.elected,
        "ordered": list(facts.ordered),
        "exclusive": list(facts.exclusive),
        "broker_names": dict(facts.broker_names),
        "consume_ms": dict(facts.consume_ms),
        "bounds": attrs.asdict(facts.bounds),
        "limits": attrs.asdict(head.limits),
        "names": dict(head.names),
        "broken_off": list(head.broken_off),
        "unreliable": list(head.unreliable),
    }


def head_from(fields: Mapping[str, Any]) -> RunHead:
    """The head from plain values, as `fields_of` returns them; further ones are ignored."""
    facts = RunFacts(
        end_ns=fields["end_ns"],
        bounds=Bounds(**fields["bounds"]),
        broker_names=fields["broker_names"],
        acting=fields["acting"],
        elected=fields["elected"],
        consume_ms=fields["consume_ms"],
        ordered=tuple(fields["ordered"]),
        exclusive=tuple(fields["exclusive"]),
        names=fields["names"],
    )
    return RunHead(
        **{name: fields[name] for name in ("run", "scenario", "seed", "mode", "digest")},
        facts=facts,
        limits=ServiceLimits(**fields["limits"]),
        broken_off=tuple(fields["broken_off"]),
        unreliable=tuple(fields["unreliable"]),
    )
