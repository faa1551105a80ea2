"""Each gold table equals what the local judge finds: of example runs, of random traces, in one piece and in shares.

Random traces have equal instants, deaths in the instant of a belief, sleeps over ends and open ends.
"""

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.testing import assertSchemaEqual

from analysis.busy_traces import busy_trace
from analysis.demo_trace import END_S, demo_trace
from analysis.random_traces import END_S as RANDOM_END_S
from analysis.random_traces import random_trace
from analysis.trace_rows import HandMadeTrace, write_run
from emulator.analysis.arrow_tables import RUNS, TABLES, labelled, schema_of_runs
from emulator.analysis.judge import judge_run
from emulator.dataset.judged_reports import reports_of
from emulator.dataset.landed_runs import JudgedRuns, open_landed, read_gold_table
from emulator.lake.filesystems import located
from emulator.lake.gold import commit_gold
from emulator.lake.landing import land
from emulator.lake.layout import FileEntry
from emulator.pipeline.gold import BY_WINDOWS, READS, gold
from emulator.pipeline.sweep_tasks import found, swept
from emulator.pipeline.sweep_tasks import written as written_by_tasks
from emulator.run import run_scenario
from emulator.spec import load
from emulator.spec.bundled import example
from emulator.trace.run_directory import open_run
from support.every_case import each_case

RANDOM = 12
EXAMPLES = ("acting_slave.toml", "transactions.toml", "users_and_policies.toml")
WITHOUT_ROWS = ["assigner_disagreements", "unsupported_requests", "not_measured"]
"""Tables of which no run here has a row."""


def refused_heartbeats():
    """A broker refuses heartbeats, and loses one of two members that live."""
    trace = HandMadeTrace("refused-heartbeats").life("ba", "started", role="broker")
    for node in ("c1", "c2"):
        trace.life(node, "started", "g").life(node, "ready", "g")
    busy = {"waiting": 3, "waited_max_ms": 300, "refused": {"TIMEOUT_CLEAN_QUEUE": 4}}
    trace.believe("ba", ["c1", "c2"], "g", "consumer_ids").at(5).believe("ba", busy, "heartbeat", "busy")
    return trace.at(8).believe("ba", ["c1"], "g", "consumer_ids")


def half_reported_members():
    """A proxy does not hear of a member that another one has, and a client reaches none and ends."""
    trace = HandMadeTrace("half-reported-members")
    for proxy in ("proxy-1", "proxy-2"):
        trace.life(proxy, "started", role="proxy").believe(proxy, {"c1": "proxy-1"}, "g", "proxy_members")
    trace.at(4).believe("c1", None, "127.1.187.1:8081", "proxy").at(5)
    trace.life("c1", "stopping", "start failed: io exception").life("c1", "stopped")
    return trace.at(8).believe("proxy-1", {"c1": "proxy-1", "c2": "proxy-1"}, "g", "proxy_members")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    written = [write_run(demo_trace(), folder / "demo", END_S)]
    written += [write_run(random_trace(seed), folder / f"random-{seed}", RANDOM_END_S) for seed in range(RANDOM)]
    written += [write_run(busy_trace(seed), folder / f"busy-{seed}", RANDOM_END_S) for seed in range(RANDOM)]
    written.append(write_run(refused_heartbeats(), folder / "refused-heartbeats", RANDOM_END_S))
    written.append(write_run(half_reported_members(), folder / "half-reported-members", RANDOM_END_S))
    written += [run_scenario(load(example(name)), runs=folder).path for name in EXAMPLES]
    return written


@pytest.fixture(scope="module")
def landed(spark, runs, tmp_path_factory):
    uri = tmp_path_factory.mktemp("lake") / "dataset"
    land(runs, uri)
    return open_landed(spark, uri)


@pytest.fixture(scope="module")
def judged(runs):
    return [judge_run(open_run(run)) for run in runs]


@pytest.fixture(scope="module")
def expected(judged):
    """Mapping table -> rows of all runs, as Arrow."""
    names = (RUNS, *TABLES)
    return {
        name: pa.concat_tables([schema_of_runs(name).empty_table(), *(labelled(report, name) for report in judged)])
        for name in names
    }


@pytest.fixture(scope="module")
def written(landed, tmp_path_factory):
    """All gold tables from one job."""
    uri = tmp_path_factory.mktemp("gold") / "gold"
    return landed, JudgedRuns(landed).write(uri), uri


def rows(table):
    return sorted(map(repr, table.to_pylist()))


@each_case("name", [RUNS, *TABLES])
def test_a_gold_table_that_was_written_equals_the_judge(written, expected, name):
    assert rows(written[1].table(name)) == rows(expected[name])


def test_reports_of_what_spark_has_found_equal_those_of_the_judge(landed, judged):
    assert reports_of(landed) == sorted(judged, key=lambda report: report.run_id)


def test_most_tables_have_rows(expected):
    empty = [name for name, table in expected.items() if not table.num_rows]
    assert empty == WITHOUT_ROWS


@pytest.fixture(scope="module")
def written_in_shares(landed, tmp_path_factory):
    """All gold tables from one job that reads runs in shares."""
    location = located(tmp_path_factory.mktemp("shares") / "gold")
    files = written_by_tasks(landed.bronze, location, rows_per_share=40).collect()
    entries = landed.dataset.snapshot.runs.values()
    return commit_gold(location, [FileEntry(**row.asDict()) for row in files], entries)


@each_case("name", [RUNS, *TABLES])
def test_a_table_equals_the_judge_where_runs_are_read_in_shares(written_in_shares, expected, name):
    assert rows(written_in_shares.table(name)) == rows(expected[name])


def test_spark_reads_what_was_written(spark, written_in_shares, expected):
    assert rows(read_gold_table(spark, written_in_shares, "overlaps").toArrow()) == rows(expected["overlaps"])


@pytest.mark.parametrize("reads", dict.fromkeys(READS.values()), ids=lambda reads: f"{reads.messages}-{reads.frames}")
def test_tables_that_read_few_rows_equal_the_judge(landed, expected, reads):
    names = [name for name in READS if READS[name] == reads]

    def texts(reports):  # within the test, since workers cannot import its module
        for report in reports:
            for name in names:
                for row in labelled(report, name).to_pylist():
                    yield pa.RecordBatch.from_pydict({"table": [name], "row": [repr(row)]})

    every = swept(landed.bronze, texts, "table string, row string", reads=reads).collect()
    for name in names:
        assert sorted(row.row for row in every if row.table == name) == rows(expected[name]), name


@pytest.mark.parametrize("names", [("overlaps",), ("views", "membership")])
def test_tables_of_some_oracles_equal_the_judge(landed, expected, names):
    by_oracles = gold(landed.bronze, *names).toArrow()
    assert rows(by_oracles) == rows(pa.concat_tables([expected[name] for name in names]))


@pytest.mark.parametrize("name", BY_WINDOWS)
def test_what_windows_find_is_what_the_judge_finds_with_the_columns_of_the_sweep(landed, expected, name):
    by_windows = gold(landed.bronze, name)
    assert rows(by_windows.toArrow()) == rows(expected[name])
    assertSchemaEqual(by_windows.schema, found(landed.bronze, name).schema, ignoreNullable=True)


@pytest.mark.parametrize("name", BY_WINDOWS)
def test_no_python_runs_where_windows_find(landed, name, capsys):
    gold(landed.bronze, name).explain()
    assert "Python" not in capsys.readouterr().out


def test_gold_is_judged_once(written):
    landed, gold_files, uri = written
    again = JudgedRuns(landed).write(uri)
    assert again == gold_files


def test_the_queues_of_a_topic_add_up_to_its_lag_and_have_the_most_that_the_judge_finds(landed, expected):
    of_topic = ("run", "group", "topic", "start_ns")
    queue = ("run", "group", "topic", "broker_name", "queue_id", "node")
    sums, maxima = Counter(), {}
    for row in landed.lag_by_queue(7).toArrow().to_pylist():
        sums[tuple(row[name] for name in of_topic)] += row["waiting"]
        key = tuple(row[name] for name in queue)
        maxima[key] = max(maxima.get(key, 0), row["waiting_max"])

    of_topics = {tuple(row[name] for name in of_topic): row["waiting"] for row in landed.lag(7).toArrow().to_pylist()}
    assert sum(map(bool, of_topics.values())) > 200
    assert sums == of_topics
    assert maxima == {tuple(row[name] for name in queue): row["maximum"] for row in expected["lags"].to_pylist()}
