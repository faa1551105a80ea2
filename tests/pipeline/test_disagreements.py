"""Silver finds by windows the intervals that the sweep of the judge finds: one definition, written twice.

Of bundled examples, as gold has them, and of random traces, as the sweep has them: these have equal instants, deaths in
the instant of a row, sleeps, restarts, groups that broadcast, groups of proxies, members that pop, and open ends.
"""

import json
from collections import defaultdict

import attrs
import pytest
from pyspark.sql import functions as F

from analysis.busy_traces import busy_trace
from analysis.demo_trace import END_S as DEMO_END_S
from analysis.demo_trace import demo_trace
from analysis.owner_traces import END_S, SCENARIO, owner_trace
from analysis.random_traces import random_trace
from analysis.trace_rows import write_run
from emulator.analysis.arrow_tables import labelled
from emulator.analysis.inputs.holdings import ViewPart
from emulator.analysis.inputs.shared import MEMBERSHIP, SharedInputs
from emulator.analysis.judge import judge_run
from emulator.analysis.run_head import head_of
from emulator.dataset.landed_runs import open_landed
from emulator.history.rows.feed import watch
from emulator.history.rows.reader import StoredRows
from emulator.lake.landing import land
from emulator.pipeline.disagreements import KINDS
from emulator.pipeline.gold import DIVERGENCES
from emulator.run import run_scenario
from emulator.spec import load
from emulator.spec.bundled import bundled_scenarios, example
from emulator.trace.run_directory import open_run
from nodes.beliefs import BeliefKind

RANDOM, MANY = 40, 1_000
QUEUE = ("group", "topic", "broker_name", "queue_id")
INTERVAL = ("start_ns", "end_ns", "censored")
SUBJECT = ("kind", "role", "subject")
SILVER = {
    "disagreements": (*SUBJECT, *INTERVAL, "active_ns", "values_max"),
    "double_owners": (*QUEUE, *INTERVAL, "active_ns", "owners_max", "owners"),
    "missing_owners": (*QUEUE, *INTERVAL),
}
"""Mapping silver table -> what is compared."""
GOLD = {
    "disagreements": (DIVERGENCES, (*SUBJECT, *INTERVAL, "active_ns", "views_max")),
    "double_owners": (("overlaps",), SILVER["double_owners"]),
    "missing_owners": (("orphans",), SILVER["missing_owners"]),
}
"""Mapping silver table -> gold tables with the same intervals, and the same columns of these."""
NOT_JUDGED = tuple(kind for kind in MEMBERSHIP if kind != BeliefKind.LIVE_BROKERS)
"""Kinds that gold leaves out where no slave acts as a master, since brokers do not follow who lives then."""


def texts(rows, columns):
    """The rows without their order, as texts that show what differs."""
    return sorted(" ".join(f"{name}={row[name]}" for name in ("run", *columns)) for row in rows)


def of_silver(landed, name):
    return landed.silver(name).toArrow().to_pylist()


class SweptRun:
    """What the sweep finds in a run, unexplained."""

    def __init__(self, path):
        run = open_run(path)
        facts = head_of(run).facts
        self.run, inputs = run.run, SharedInputs(facts)
        watchers = (inputs.presence, inputs.messages, inputs.owners, inputs.holdings)
        watch(StoredRows(run), watchers)
        for watcher in watchers:
            watcher.finish(facts.end_ns)
        self.found = {
            "disagreements": [item for sweep in inputs.holdings.of.values() for item in sweep.found],
            "double_owners": inputs.owners.overlaps,
            "missing_owners": inputs.owners.orphans,
        }

    def rows(self, name):
        for item in self.found[name]:
            row = {field.name: getattr(item, field.name) for field in attrs.fields(type(item))}
            queue = attrs.asdict(item.queue) if hasattr(item, "queue") else {}
            yield row | queue | {"run": self.run, "owners": list(row.get("owners", ()))}


def random_runs(folder, seeds):
    """Two thirds are about owners."""
    for seed in seeds:
        yield write_run(owner_trace(seed), folder / f"owners-{seed}", END_S, scenario=SCENARIO)
        if seed % 4 == 0:
            yield write_run(random_trace(seed), folder / f"random-{seed}", END_S)
            yield write_run(busy_trace(seed), folder / f"busy-{seed}", END_S)


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """A master that is away, members with different strategies, a group that pops, and then pulls."""
    folder = tmp_path_factory.mktemp("examples")
    pop = load(example("pop.toml"))
    scenarios = [load(example(name)) for name in ("acting_slave.toml", "upgrades/rolling_strategy.toml")]
    written = [run_scenario(item, runs=folder).path for item in (*scenarios, attrs.evolve(pop, run_for_ms=156_000))]
    return [*written, write_run(demo_trace(), folder / "demo", DEMO_END_S)]


@pytest.fixture(scope="module")
def random_folders(tmp_path_factory):
    return [*random_runs(tmp_path_factory.mktemp("random"), range(RANDOM))]


@pytest.fixture(scope="module")
def landed(spark, examples, random_folders, tmp_path_factory):
    uri = tmp_path_factory.mktemp("lake") / "dataset"
    land([*examples, *random_folders], uri)
    return open_landed(spark, uri)


@pytest.fixture(scope="module")
def silver(landed):
    """Mapping silver table -> its rows: Spark is asked once for each."""
    return {name: of_silver(landed, name) for name in SILVER}


def require_equal(silver_rows, expected, name, columns):
    found = texts(silver_rows, SILVER[name])
    renamed = [text.replace("views_max", "values_max") for text in texts(expected, columns)]
    assert found == renamed


def judged_run(path):
    """Whether slaves act as masters in a run, and the report about it."""
    run = open_run(path)
    return head_of(run).facts.acting, judge_run(run)


def require_gold(silver, reports, name):
    tables, columns = GOLD[name]
    expected = [row for _, report in reports for table in tables for row in labelled(report, table).to_pylist()]
    acting = {report.run_id: is_acting for is_acting, report in reports}
    found = [row for row in silver[name] if row["run"] in acting]
    judged = [row for row in found if acting[row["run"]] or row.get("kind") not in NOT_JUDGED]
    require_equal(judged, expected, name, columns)
    return judged


@pytest.fixture(scope="module")
def reports(examples):
    return [judged_run(path) for path in examples]


@pytest.mark.parametrize("name", SILVER)
def test_silver_has_the_intervals_of_gold(silver, reports, name):
    found = require_gold(silver, reports, name)

    assert len({row["run"] for row in found}) > 2


@pytest.fixture(scope="module")
def swept(random_folders):
    return [SweptRun(path) for path in random_folders]


@pytest.mark.parametrize("name", SILVER)
def test_silver_has_the_intervals_of_the_sweep_in_random_traces(silver, swept, name):
    of_runs = {run.run for run in swept}
    found = [row for row in silver[name] if row["run"] in of_runs]
    require_equal(found, [row for run in swept for row in run.rows(name)], name, GOLD[name][1])

    assert sum(row["censored"] for row in found) > RANDOM / 10, "the random traces are too tame to prove anything"
    assert len(found) > RANDOM
    if "active_ns" in SILVER[name]:
        assert any(0 < row["active_ns"] < row["end_ns"] - row["start_ns"] for row in found)


def test_holders_are_all_that_held_a_value_meanwhile(landed, silver):
    held = defaultdict(list)
    for row in landed.holdings().where(F.col("kind").isin(*KINDS)).toArrow().to_pylist():
        held[row["run"], *(row[name] for name in SUBJECT)].append(row)

    for row in silver["disagreements"]:
        expected = defaultdict(set)
        until_ns = row["end_ns"] + row["censored"]  # what is open lasts for the instant at which the run ends, too
        for item in held[row["run"], *(row[name] for name in SUBJECT)]:
            if item["start_ns"] < until_ns and (item["end_ns"] is None or item["end_ns"] > row["start_ns"]):
                expected[item["hash"], item["value"]].add(item["node"])
        found = [(holder["hash"], holder["value"], holder["nodes"]) for holder in row["holders"]]
        assert found == [(*value, sorted(nodes)) for value, nodes in sorted(expected.items())]


def test_among_the_holders_are_those_of_the_constellation_that_lasted_longest(silver, swept):
    by_interval = {tuple(row[name] for name in ("run", *SUBJECT, "start_ns")): row for row in silver["disagreements"]}
    several = 0
    for run in swept:
        for row in run.rows("disagreements"):
            holders = by_interval[tuple(row[name] for name in ("run", *SUBJECT, "start_ns"))]["holders"]
            nodes = {canonical(holder["value"]): holder["nodes"] for holder in holders}
            several += any(len(names) > 1 for names in nodes.values())
            for holder in row["holders"]:
                assert {*holder.nodes} <= {*nodes[canonical(holder.value)]}
    assert several > RANDOM / 10


def canonical(value):
    return json.dumps(json.loads(value), sort_keys=True)


def test_a_part_of_views_is_the_same_in_any_order_of_brokers(landed):
    """Members may have heard of the brokers in any order."""
    kind = ViewPart.QUEUES.kind
    values = {row.value for row in landed.holdings().where(f"kind = '{kind}' and run like 'owners-%'").collect()}
    assert '{"broker-a":2,"broker-b":1}' in values
    assert all(list(json.loads(value) or ()) == sorted(json.loads(value) or ()) for value in values)


# --- more of the same ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", SILVER)
def test_silver_has_the_intervals_of_the_sweep_in_many_random_traces(many, name):
    found, runs = many
    require_equal(found[name], [row for run in runs for row in run.rows(name)], name, GOLD[name][1])


@pytest.fixture(scope="module")
def many(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    paths = [*random_runs(folder / "runs", range(RANDOM, RANDOM + MANY))]
    land(paths, folder / "dataset")
    every = open_landed(spark, folder / "dataset")
    return {name: of_silver(every, name) for name in SILVER}, [SweptRun(path) for path in paths]


@pytest.mark.slow
@pytest.mark.parametrize("name", SILVER)
def test_silver_has_the_intervals_of_gold_in_all_examples(bundled, name):
    found = require_gold(*bundled, name)

    assert len({row["run"] for row in found}) > 10


@pytest.fixture(scope="module")
def bundled(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundled")
    scenarios = [load(item.path) for item in bundled_scenarios().values()]
    paths = [run_scenario(item, runs=folder / "runs").path for item in scenarios if not item.guests]
    land(paths, folder / "dataset")
    every = open_landed(spark, folder / "dataset")
    return {name: of_silver(every, name) for name in SILVER}, [judged_run(path) for path in paths]
