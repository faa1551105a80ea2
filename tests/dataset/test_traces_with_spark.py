"""`emulator.traces` with Spark: the same findings, and bronze, silver and gold as DataFrames."""

import logging
import re
import shutil
from logging.handlers import BufferingHandler

import numpy as np
import pandas as pd
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import emulator
from analysis.trace_rows import HandMadeTrace, write_run
from emulator.base.errors import UserError
from emulator.dataset.landed_runs import SILVER
from emulator.dataset.sessions import open_session
from emulator.lake.landing import land
from emulator.lake.sources import RunSource
from emulator.pipeline.typed import typed
from nodes.beliefs import BeliefKind
from project.tables import MADE_BY
from support.plans import jobs
from support.small_runs import two_consumers, write


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write(two_consumers(), tmp_path_factory.mktemp("runs") / "one")


@pytest.fixture(scope="module")
def dataset(run, tmp_path_factory):
    uri = tmp_path_factory.mktemp("lake") / "dataset"
    land([run], uri)
    return uri


@pytest.fixture(scope="module")
def landed(spark, dataset):
    return emulator.traces(spark, dataset)


def test_spark_judges_as_this_process_does(spark, run):
    by_spark, here = emulator.traces(run, engine="spark"), emulator.traces(run)

    for name in here.tables():
        pd.testing.assert_frame_equal(by_spark.findings(name), here.findings(name))


@pytest.fixture(scope="module")
def judged(spark, run, tmp_path_factory):
    """A dataset whose findings are written."""
    uri = tmp_path_factory.mktemp("judged") / "dataset"
    land([run], uri)
    emulator.traces(spark, uri).judge().write()
    return uri


@pytest.mark.parametrize("has_rows", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_dataset_gives_frames_of_pandas_as_run_directories_do(judged, run, has_rows):
    of_dataset, of_runs = emulator.traces(judged), emulator.traces(run)

    names = [name for name in of_runs.tables() if of_runs.findings(name).empty is not has_rows]
    assert len(names) > 10
    for name in names:
        expected, found = of_runs.findings(name), of_dataset.findings(name)
        # The type of a list without an item differs.
        plain = [
            frame[expected.columns].map(lambda cell: list(cell) if isinstance(cell, np.ndarray) else cell)
            for frame in (expected, found)
        ]
        rows = [sorted(map(repr, frame.to_dict("records"))) for frame in plain]
        assert rows[0] == rows[1], name


def test_runs_are_landed_for_as_long_as_the_process_lasts(spark, run):
    landed = emulator.traces(spark, run)

    assert landed.dataset.runs == ("one",)
    assert landed.table("ownership").count() == 4


def test_a_dataset_is_opened_with_its_runs_and_verdicts(landed):
    (row,) = landed.runs().collect()
    assert (row.run, row.variant, row.verdict, row.service) == ("one", "two-consumers", "invalid", "degraded")


@pytest.fixture(scope="module")
def views(landed):
    """Names of the views of all tables: each is a query, so that they take long to make."""
    return landed.register("one")


def test_every_named_table_is_a_dataframe_that_can_be_explained(landed, views, capsys):
    some = ["one_overlaps", "one_trace_beliefs", "one_holdings", "one_runs", "one_lag", "one_rpc"]  # of each layer
    assert [name for name in some if name not in views or not landed.spark.table(name).columns] == []
    landed.explain("holdings")
    assert "Window" in capsys.readouterr().out


@pytest.mark.usefixtures("views")
def test_sql_over_views_finds_what_the_dataframe_has(landed):
    held = landed.spark.sql("select sum(end_ns - start_ns) as ns from one_holds").first().ns
    rows = landed.gold("holds").select((F.col("end_ns") - F.col("start_ns")).alias("ns")).collect()
    assert held == sum(row.ns for row in rows) > 0


def test_no_job_looks_for_the_files_of_a_table(spark, tmp_path):
    session = open_session(spark.sparkContext.master, rows=10)
    for number in range(40):
        land([write(two_consumers(), tmp_path / "runs" / f"run-{number}")], tmp_path / "dataset")
    before = jobs(session)
    assert len(emulator.traces(session, tmp_path / "dataset").table("ownership").inputFiles()) == 40
    assert jobs(session) == before


def test_a_filter_on_the_run_reaches_the_files(landed, capsys):
    landed.table("ownership").where(F.col("run") == "one").explain()
    assert "EqualTo(run,one)" in capsys.readouterr().out


def test_the_value_of_a_kind_of_beliefs_is_typed(landed):
    views = landed.beliefs("view")
    assert dict(views.dtypes)["value"] == "struct<cids:array<string>,queues:map<string,bigint>>"
    assert views.where("value is not null").count() > 0


def test_a_value_that_is_no_json_is_an_error_and_no_null(spark, tmp_path):
    trace = HandMadeTrace().at(1).life("a", "started").believe("a", {"cids": ["a"], "queues": {}})
    run = write_run(trace, tmp_path / "broken", 2)
    frame = emulator.traces(spark, run).table("beliefs").withColumn("value", F.lit("{no json"))
    with pytest.raises(Exception, match=r"(?i)malformed"):
        typed(frame, BeliefKind.VIEW).collect()


def test_findings_have_the_variant_of_their_run_which_is_the_scenario_of_one_without_a_campaign(
    landed, spark, tmp_path, run
):
    land([RunSource(run, "campaign", "sooner")], tmp_path / "dataset")
    of_campaign = emulator.traces(spark, tmp_path / "dataset")

    assert of_campaign.gold("holds").columns[:3] == ["run", "variant", "seed"]
    assert {row.variant for row in of_campaign.gold("holds").collect()} == {"sooner"}
    assert {row.variant for row in landed.gold("holds").collect()} == {"two-consumers"}


def test_what_a_query_misspells_is_an_error_of_spark(spark):
    """An error that `open_session` has met on the way does not spoil those of later queries."""
    session = open_session(spark.sparkContext.master, rows=10)
    with pytest.raises(AnalysisException, match="nope"):
        session.sql("select nope from range(1)")
    with pytest.raises(AnalysisException, match="nope"):
        session.range(1).select("nope")


def test_a_path_that_does_not_exist_is_refused_as_such(spark, tmp_path):
    expected = "half-sen does not exist: expected a run directory, a folder of runs, a campaign, or a dataset"
    for words in ((spark, tmp_path / "half-sen"), (tmp_path / "half-sen",)):
        with pytest.raises(UserError, match=expected):
            emulator.traces(*words)


def test_a_kind_of_divergence_that_there_is_not_is_refused_with_one_that_is_near(landed):
    with pytest.raises(UserError, match=r"did you mean view\.cids"):
        landed.divergence(["view.cid"])


@pytest.mark.parametrize("ask", ["table", "gold", "beliefs", "frame"])
def test_a_name_that_is_no_table_is_refused_with_one_that_is_near(landed, ask):
    near = {"beliefs": "veiw", "gold": "overlap", "table": "belief", "frame": "holding"}[ask]
    with pytest.raises(UserError, match="did you mean"):
        getattr(landed, ask)(near)


def test_gold_in_the_dataset_is_read_in_place_of_a_judgement(spark, judged, capsys):
    again = emulator.traces(spark, judged)
    again.explain("holds")
    assert "Python" not in capsys.readouterr().out
    assert again.gold("holds").count() > 0


def test_runs_that_have_landed_since_are_judged_next_to_the_gold_that_is_there(spark, judged, tmp_path):
    other = write(two_consumers(), tmp_path / "runs" / "two")
    shutil.copytree(judged, tmp_path / "dataset")
    land([other], tmp_path / "dataset")
    newer = emulator.traces(spark, tmp_path / "dataset")

    rows = [row.run for row in newer.divergence(["view.cids"]).collect()]
    assert rows.count("one") == rows.count("two") > 0
    assert sorted(row.run for row in newer.gold("runs").collect()) == ["one", "two"]


def test_a_dataset_that_was_opened_before_more_runs_were_judged_has_its_own_runs(spark, run, tmp_path):
    land([run], tmp_path / "dataset")
    before = emulator.traces(spark, tmp_path / "dataset")
    land([write(two_consumers(), tmp_path / "runs" / "two")], tmp_path / "dataset")
    emulator.traces(spark, tmp_path / "dataset").judge().write()

    assert [row.run for row in before.gold("runs").collect()] == ["one"]


def test_an_address_is_the_name_of_its_node_in_rows_and_in_member_lists(landed):
    views = landed.beliefs("view").where("size(value.cids) > 0").collect()
    assert [(row.node, row.source, row.value.cids) for row in views] == [("a", "broker-a", ["a"])]


@pytest.mark.parametrize("name", SILVER)
def test_the_reference_names_every_column_of_a_silver_table(landed, name):
    columns = (MADE_BY[name].__doc__ or "").partition("Returns:")[2]
    assert [column for column in getattr(landed, name)().columns if not re.search(rf"\b{column}\b", columns)] == []


def test_lag_says_of_which_variant_and_seed_it_is(landed):
    rows = landed.lag(every_s=10).collect()

    assert {(row["variant"], row["seed"]) for row in rows} == {("two-consumers", 1)}
    assert {row["start_ns"] % (10 * 10**9) for row in rows} == {0}


@pytest.mark.usefixtures("views")
def test_each_queue_has_its_lag_in_a_view_too(landed):
    rows = landed.spark.sql("select * from one_lag_by_queue").collect()

    assert {(row.variant, row.seed, row.topic, row.queue_id) for row in rows} == {("two-consumers", 1, "t", 0)}
    assert sorted(row.start_ns for row in rows) == sorted(row.start_ns for row in landed.lag().collect())
    assert landed.frame("lag_by_queue").columns == rows[0].__fields__


@pytest.mark.parametrize("every_s", [0, -1, 0.5, True, "1"])
@pytest.mark.parametrize("name", ["lag", "lag_by_queue", "rates"])
def test_an_interval_is_whole_seconds(landed, name, every_s):
    with pytest.raises(UserError, match=r"^every_s: expected a whole number of seconds >= 1, not "):
        getattr(landed, name)(every_s=every_s)


def test_a_wrong_name_in_a_query_is_raised_and_not_printed(landed):
    printed = BufferingHandler(10)
    logging.getLogger("SQLQueryContextLogger").addHandler(printed)
    with pytest.raises(AnalysisException, match="rmq_overlap"):
        landed.spark.sql("select * from rmq_overlap").collect()
    assert printed.buffer == []
