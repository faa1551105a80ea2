"""The judge: reads the rows of one run once, and finds which invariants of RocketMQ held."""

from collections.abc import Mapping
from typing import Any

from emulator.analysis.findings.found import Findings
from emulator.analysis.inputs.facts import RunFacts, facts_of
from emulator.analysis.inputs.shared import SharedInputs
from emulator.analysis.measures.measured import Measured
from emulator.analysis.oracles.every import ORACLES
from emulator.analysis.report import Report, Verdict
from emulator.analysis.rows.feed import TraceRows, watch
from emulator.analysis.rows.reader import StoredRows
from emulator.analysis.rows.row_classes import ROWS
from emulator.spec import Scenario, from_dict
from emulator.spec.addresses import owners
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, OWNERSHIP


def judge_run(run: RunDirectory) -> Report:
    """The findings about a run, also one that is still under way, and its verdicts."""
    manifest = run.manifest
    scenario = _scenario(manifest)
    facts = facts_of(scenario, run.end_ns)
    found = judge_rows(StoredRows(run), facts)
    reasons = sentences(found)
    unsure, cut_short = unreliable_parts(run), broken_off(run)
    # A violation stays one, however much of the trace is missing; an interrupted run has no result at all.
    verdict = Verdict.INVALID if reasons else Verdict.UNKNOWN if unsure else Verdict.VALID
    if cut_short:
        verdict = Verdict.UNKNOWN
    return Report(
        run_id=run.run,
        scenario=str(manifest["scenario"]["scenario"]["name"]),
        seed=int(manifest["seed"]),
        mode=str(manifest["mode"]),
        digest=str(manifest["digest"]),
        end_ns=run.end_ns,
        bounds=facts.bounds,
        limits=scenario.service,
        verdict=verdict,
        reasons=tuple(cut_short + reasons + unsure),
        # A run that was killed has no manifest, so its addresses are those of the scenario.
        names=dict(manifest.get("addresses") or owners(scenario)),
        rows=found.rows,
        agreed_ns=found.agreed_ns,
    )


def judge_rows(source: TraceRows, facts: RunFacts) -> Findings:
    """Everything that oracles and measures find in the rows of a run.

    Args:
        source: of the rows.
        facts: of the run.
    """
    inputs = SharedInputs(facts)
    of_oracles = [(oracle, oracle.watch(inputs)) for oracle in ORACLES]
    measured = Measured(inputs, source.frames())
    watchers = (*inputs.watchers, *(watched for _, watched in of_oracles), *measured.watchers)
    watch(source, watchers)
    for one in watchers:
        one.finish(facts.end_ns)
    inputs.on_read()
    rows: dict[str, tuple[Any, ...]] = {
        oracle.table.name: oracle.findings(inputs, watched) for oracle, watched in of_oracles
    }
    rows |= {table.name: of_table for table, of_table in measured.rows().items()}
    return Findings(rows=rows, agreed_ns=inputs.agreed_ns)


def sentences(found: Findings) -> list[str]:
    """Why a run is not valid, one sentence for each oracle that was violated."""
    every = (oracle.sentence(found.of(oracle.table)) for oracle in ORACLES)
    return [one for one in every if one]


def broken(found: Findings) -> tuple[str, ...]:
    """The ids of the invariants that a run broke, in order."""
    return tuple(oracle.id for oracle in ORACLES if oracle.violations(found.of(oracle.table)))


def _scenario(manifest: Mapping[str, Any]) -> Scenario:
    return from_dict(manifest["scenario"], "the scenario in the manifest")


def broken_off(run: RunDirectory) -> list[str]:
    """Why the run as a whole has no result."""
    crashes = [f"{crash}: the emulator has a bug" for crash in run.manifest.get("crashes", ())]
    why = run.broken_off()
    return [*crashes, why] if why else crashes


def unreliable_parts(run: RunDirectory) -> list[str]:
    """Why the absence of violations proves nothing."""
    if any(table not in run.level.whole for table in ROWS):
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
