"""A scenario run with many seeds, on all cores, and what became of each event."""

import json
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import attrs

from emulator.run import run_scenario
from emulator.spec import Scenario, load
from emulator.spec.model.addresses import addresses
from emulator.trace.schema import BELIEFS, FAULTS, LIFECYCLE, RPC
from faults.plan import Phase
from nodes.beliefs import BeliefKind
from nodes.protocol.codes import RequestCode
from studies.timelines.elections import elections
from studies.timelines.events import BeliefRow, CallRow, Cast, Instants, LifeRow, Story, instants
from studies.timelines.hand_over import hand_over, read_hand_over
from studies.timelines.real import Span
from studies.timelines.special import special_messages
from support.run_rows import table_rows

_KINDS = tuple(
    kind.value
    for kind in (
        BeliefKind.LIVE_BROKERS,
        BeliefKind.ROUTE,
        BeliefKind.MIN_BROKER,
        BeliefKind.SPECIAL_SERVICE,
        BeliefKind.MASTER_ADDR,
    )
)


def execute_seed(path: Path, seed: int) -> Instants:
    """Run a scenario once in `sim` and report when what happened; its trace is not kept."""
    scenario = attrs.evolve(load(path), seed=seed)
    with tempfile.TemporaryDirectory() as runs:
        run = run_scenario(scenario, runs=Path(runs)).path
        return _TELLERS[path.parent.name](run, scenario)


def _fail_over(run: Path, scenario: Scenario) -> Instants:
    return instants(read_story(run), cast_of(scenario))


def _hand_over(run: Path, scenario: Scenario) -> Instants:
    return hand_over(read_hand_over(run, scenario))


_TELLERS: Mapping[str, Callable[[Path, Scenario], Instants]] = {
    "rip32": _fail_over,
    "rebalance": _hand_over,
    "special": special_messages,
    "fail_over": elections,
}
"""Name of a folder of scenarios -> what reads their runs."""
FOLDERS = ("rip32", "rebalance", "special", "controller/fail_over")
"""Among the examples."""


def read_story(run: Path) -> Story:
    """Read what a run has left."""
    beliefs = [
        BeliefRow(row["t_ns"], row["node"], row["kind"], row["subject"], json.loads(row["value"]))
        for row in table_rows(run, BELIEFS, ("t_ns", "node", "kind", "subject", "value"), ("kind", "in", _KINDS))
    ]
    calls = table_rows(
        run,
        RPC,
        ("sent_ns", "src", "dst", "kind", "event"),
        ("code", "==", int(RequestCode.GET_ALL_CONSUMER_OFFSET)),
    )
    begins = table_rows(run, FAULTS, ("t_ns",), ("event", "==", Phase.BEGIN.value))
    return Story(
        beliefs=tuple(beliefs),
        lives=tuple(LifeRow(**row) for row in table_rows(run, LIFECYCLE, ("t_ns", "node", "event"))),
        offset_requests=tuple(
            CallRow(row["sent_ns"], row["src"], row["dst"])
            for row in calls
            if row["kind"] == "request" and row["event"] == "delivered"
        ),
        fault_ns=next((row["t_ns"] for row in begins), None),
    )


def cast_of(scenario: Scenario) -> Cast:
    """The parts in a scenario of one group."""
    ips = addresses(scenario)
    brokers = sorted(scenario.brokers, key=lambda broker: broker.broker_id)
    return Cast(
        nameservers=tuple(spec.name for spec in scenario.nameservers),
        group=brokers[0].broker_name,
        members={broker.broker_id: broker.name for broker in brokers},
        addresses={broker.broker_id: f"{ips[broker.name]}:{broker.config.listen_port}" for broker in brokers},
        consumer=scenario.consumers[0].names[0],
        topic=scenario.topics[0].name,
    )


def execute_all(
    paths: tuple[Path, ...], seeds: range, progress: Callable[[float], None]
) -> Iterator[tuple[str, list[Instants]]]:
    """Run each scenario with each seed, a process per core; yields name and instants per scenario, in order."""
    jobs = [(path, seed) for path in paths for seed in seeds]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        results = pool.map(execute_seed, *zip(*jobs, strict=True))
        done = 0
        for path in paths:
            instantses: list[Instants] = []
            for _ in seeds:
                instantses.append(next(results))
                done += 1
                progress(done / len(jobs))
            yield path.stem, instantses


def spans(run: str, instantses: list[Instants]) -> Mapping[str, Span]:
    """Event -> its extremes over all seeds, in the order in which events first appear."""
    values: dict[str, list[float]] = {}
    for item in instantses:
        for event, seconds in item.items():
            values.setdefault(event, []).extend(seconds)
    return {
        event: Span(run, event, len(found), min(found), round(statistics.median(found), 3), max(found))
        for event, found in values.items()
    }
