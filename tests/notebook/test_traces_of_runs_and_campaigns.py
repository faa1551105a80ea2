"""`emulator.traces`: runs, folders of runs and campaigns give the same frames, and bad input gives one line."""

import json
import math
import shutil

import pandas as pd
import pytest

import emulator
from analysis.random_traces import random_trace
from analysis.trace_rows import killed_run, write_run
from emulator.analysis.arrow_tables import TABLES
from emulator.analysis.judge import judge_run
from emulator.analysis.rendering.shown_report import analyze
from emulator.analysis.run_measures import MEASURES
from emulator.base.errors import UserError
from emulator.campaign.directory import claim
from emulator.campaign.file import load_campaign
from emulator.statistics import survival
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
from support.campaigns import write_campaign
from support.findings import rows_of
from support.small_runs import HUNG, RETAINED, SCENARIO, small_campaign, two_consumers, write


@pytest.fixture
def run(tmp_path):
    return write(two_consumers(), tmp_path / "runs" / "one")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return small_campaign(tmp_path_factory.mktemp("campaigns"))


# --- frames of findings -------------------------------------------------------------------


def test_a_folder_of_runs_is_the_runs_in_it(tmp_path):
    paths = [write_run(random_trace(seed), tmp_path / f"random-{seed}", 40) for seed in range(3)]
    (tmp_path / "notes").mkdir()

    folder, listed = emulator.traces(tmp_path), emulator.traces(*paths)

    for name in folder.tables():
        pd.testing.assert_frame_equal(folder.findings(name), listed.findings(name))
    assert list(folder.runs()["run"]) == ["random-0", "random-1", "random-2"]


@pytest.mark.parametrize("name", TABLES)
def test_findings_are_those_of_the_report_with_run_variant_and_seed_in_front(name, tmp_path):
    paths = [write_run(random_trace(seed), tmp_path / f"random-{seed}", 40) for seed in range(3)]

    found = emulator.traces(*paths).findings(name)

    assert list(found.columns[:3]) == ["run", "variant", "seed"]
    assert len(found) == sum(len(rows_of(judge_run(open_run(path)), name)) for path in paths)
    if {"start_ns", "end_ns"} <= set(found.columns):
        assert list(found["duration_s"]) == [(row.end_ns - row.start_ns) / 1e9 for row in found.itertuples()]


def test_the_story_of_a_run_reads_from_its_frames(run):
    found = emulator.traces(run)

    (of_run,) = found.runs().to_dict("records")
    assert (of_run["run"], of_run["variant"], of_run["seed"]) == ("one", "two-consumers", 1)
    assert of_run["overlap_s"] == 15
    assert list(found.holds()[["node", "queue_id", "duration_s"]].itertuples(index=False, name=None)) == [
        ("a", 0, 24),
        ("b", 1, 39),
        ("b", 0, 30),
    ]
    (overlap,) = found.overlaps().to_dict("records")
    assert (list(overlap["owners"]), overlap["duration_s"], overlap["duplicates"]) == (["a", "b"], 15, 1)
    assert found.orphans().empty
    (fault,) = found.faults().to_dict("records")
    assert (fault["fault_id"], fault["duration_s"]) == ("cut-1", 12)
    assert list(found.phases()[["phase", "what", "duration_s"]].itertuples(index=False, name=None)) == [
        (0, "start", 8),
        (1, "cut a -> broker-a begins", 12),
        (2, "cut a -> broker-a ends", 20),
    ]
    assert found.agreement()["agreement_s"].equals(found.agreement()["took_ns"] / 1e9)
    assert found.hand_overs()["pause_s"].equals(found.hand_overs()["pause_ns"] / 1e9)
    assert repr(found) == f"1 run of two-consumers: 1 {of_run['verdict']}; service 1 {of_run['service']}"


def test_how_long_each_held_a_queue_that_somebody_else_held_per_phase(run):
    found = emulator.traces(run)

    seconds = found.per_phase(found.shared()).groupby(["what", "node"])["duration_s"].sum()

    cut, healed = "cut a -> broker-a begins", "cut a -> broker-a ends"
    assert seconds.to_dict() == {(cut, "a"): 10, (cut, "b"): 10, (healed, "a"): 5, (healed, "b"): 5}


def test_views_name_the_nodes_that_they_list(run):
    (whole,) = emulator.traces(run).views().to_dict("records")
    (_, members) = emulator.traces(run).findings("views").to_dict("records")

    assert (whole["kind"], members["kind"]) == ("view", "view.cids")
    assert sorted(json.loads(whole["holders"]), key=lambda load: load["nodes"]) == [
        {"nodes": ["a"], "value": {"cids": ["a"]}},
        {"nodes": ["b"], "value": {"cids": []}},
    ]
    assert sorted(json.loads(members["holders"]), key=lambda load: load["nodes"]) == [
        {"nodes": ["a"], "value": ["a"]},
        {"nodes": ["b"], "value": []},
    ]


def test_who_set_an_offset_back_is_a_name(tmp_path):
    trace = two_consumers()
    trace.at(30).commit("127.1.10.1:5", 2).at(32).commit("127.1.10.1:5", 0)

    regressions = emulator.traces(write(trace, tmp_path / "r")).findings("offset_regressions")

    assert "a" in list(regressions["who"])
    assert "127.1" not in regressions.to_csv()


def test_a_run_that_was_killed_has_frames_with_names_and_no_verdict(tmp_path):
    path = killed_run(two_consumers(), tmp_path / "killed", closed=3, scenario=SCENARIO)
    found = emulator.traces(path)

    assert list(found.runs()["verdict"]) == ["unknown"]
    assert '"a"' in found.views()["holders"][0]
    with pytest.raises(UserError, match="no run has a verdict, so none has a value of overlap_s"):
        found.estimate("overlap_s")


def test_frames_may_be_changed_without_changing_what_is_asked_next(run):
    found = emulator.traces(run)
    found.runs()["verdict"] = "changed"

    assert list(found.runs()["verdict"]) != ["changed"]


def test_the_report_is_that_of_the_run(run):
    assert emulator.traces(run).report() == analyze(run)
    assert "iframe" in emulator.traces(run).report()._repr_mimebundle_()["text/html"]


def test_why_answers_as_the_command_does(run):
    question = "queue t/broker-a/0 at 15s"

    assert emulator.traces(run).why(question).lines == answer_of_run(question.split(), open_run(run))


# --- campaigns ----------------------------------------------------------------------------


def test_a_campaign_has_a_row_per_case_also_for_one_that_hung(campaign):
    runs = emulator.traces(campaign).runs().set_index("run")

    assert list(runs.index) == ["baseline-seed1", "calm-seed1", "baseline-seed2", "calm-seed2"]
    assert runs.loc[HUNG.name, "outcome"] == "hung"
    assert math.isnan(runs.loc[HUNG.name, "overlap_s"])
    assert runs.drop(index=HUNG.name)["overlap_s"].notna().all()


def test_findings_of_a_campaign_have_the_columns_of_those_of_its_runs(campaign):
    of_campaign, of_run = emulator.traces(campaign), emulator.traces(campaign / "runs" / RETAINED.name)

    for name in of_campaign.tables():
        mine = of_campaign.findings(name)
        assert list(mine.columns) == list(of_run.findings(name).columns)
        mine = mine[mine["run"] == RETAINED.name].drop(columns="variant").reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, of_run.findings(name).drop(columns="variant"), check_dtype=False)


def test_rows_of_a_campaign_are_those_of_the_traces_that_were_retained(campaign):
    found = emulator.traces(campaign)

    for frame in (found.beliefs(), found.lag(), found.sends(), found.rates()):
        assert set(zip(frame["run"], frame["variant"], frame["seed"], strict=True)) == {("calm-seed1", "calm", 1)}
    pd.testing.assert_frame_equal(found.lag(), found.lag(run=RETAINED.name))


def test_a_run_without_a_verdict_is_in_no_figure_and_is_named(campaign):
    found = emulator.traces(campaign)

    estimates = found.estimate("overlap_s").set_index("variant")
    assert list(estimates.loc["baseline", "missing_seeds"]) == [2]
    assert found.compare("overlap_s", "baseline", "calm").without_value == (2,)
    assert "1 hung" in repr(found)


def test_survival_is_that_of_the_intervals(campaign):
    found = emulator.traces(campaign)

    (of_intervals, *_) = survival(found.agreement(), "agreement_s")
    row = found.survival("agreement").iloc[0]
    assert row["intervals"] == of_intervals.intervals == (found.agreement()["variant"] == row["variant"]).sum()


def test_the_measures_are_columns_of_the_runs(campaign, run):
    for found in (emulator.traces(campaign), emulator.traces(run)):
        assert list(found.measures()["measure"]) == [measure.name for measure in MEASURES]
        assert set(found.measures()["measure"]) <= set(found.runs().columns)


# --- bad input ----------------------------------------------------------------------------


def one_line(call):
    with pytest.raises(UserError) as raised:
        call()
    assert len(str(raised.value).splitlines()) == 1
    return str(raised.value)


def test_what_is_no_run_is_reported(tmp_path, run):
    expected = "expected a run directory, a folder of runs, a campaign, or a dataset"

    assert one_line(emulator.traces) == f"expected a path: {expected.removeprefix('expected ')}"
    assert one_line(lambda: emulator.traces(tmp_path)) == f"{tmp_path}: {expected}"
    assert one_line(lambda: emulator.traces(tmp_path / "none")) == f"{tmp_path / 'none'} does not exist: {expected}"
    assert one_line(lambda: emulator.traces(run / "manifest.json")) == f"{run / 'manifest.json'}: {expected}"
    assert one_line(lambda: emulator.traces(7)) == "expected a path, not 7"
    assert one_line(lambda: emulator.traces(run, engine="duck")) == "there is no engine duck; there are local, spark"


def test_two_runs_with_one_name_are_refused(tmp_path, run):
    other = shutil.copytree(run, tmp_path / "elsewhere" / "one")

    assert one_line(lambda: emulator.traces(run, other)) == "two runs are named one; expected runs with different names"
    assert one_line(lambda: emulator.traces(run, run)).startswith("two runs are named one;")


def test_a_campaign_stands_alone(campaign, run):
    expected = f"{campaign} is a campaign; expected it alone, or run directories"

    assert one_line(lambda: emulator.traces(run, campaign)) == expected


def test_a_damaged_run_is_reported_and_nothing_is_left_out(tmp_path, run):
    for number in range(2):
        other = shutil.copytree(run, run.parent / f"damaged-{number}")
        segment = next((other / "trace" / "ownership").iterdir())
        segment.write_bytes(segment.read_bytes()[:-1] + b"x")

    line = one_line(lambda: emulator.traces(run.parent))
    assert "damaged-0" in line
    assert line.endswith(", and 1 more")


def test_a_trace_that_was_damaged_later_is_reported_when_it_is_read(tmp_path, run):
    found = emulator.traces(run)
    (run / "manifest.json").write_text("{}")

    assert "manifest.json" in one_line(found.lag)


def test_unknown_names_are_reported_with_those_that_there_are(run):
    found = emulator.traces(run)

    assert one_line(lambda: found.findings("overlap")).startswith("there is no table overlap; did you mean overlaps")
    assert one_line(lambda: found.estimate("overlaps")).startswith("there is no measure overlaps; did you mean")
    assert one_line(lambda: found.compare("overlap", "x", "y")).startswith("there is no measure overlap;")
    assert one_line(lambda: found.compare("overlap_s", "two-consumers", "b")).startswith("there is no variant b;")
    assert one_line(lambda: found.survival("holds")) == (
        "there is no table of durations holds; there are hand_overs, agreement"
    )
    assert one_line(lambda: found.beliefs("views")) == "there is no kind of belief views; did you mean view?"
    assert one_line(lambda: found.why("what")) == "there is no subject what; there are g/t"
    assert one_line(lambda: found.lag(run="two")) == "there is no run two; there are one"


def test_a_report_is_of_one_run(tmp_path, run):
    write(two_consumers(), run.parent / "two")
    found = emulator.traces(run.parent)

    for ask in (found.report, lambda: found.why("node a")):
        assert one_line(ask) == "expected the name of one run; there are one, two"
    assert found.report("two").run_id == "two"


@pytest.mark.parametrize("wrong", [0, -1, 1e-10, math.nan, math.inf, "1", True, None])
def test_what_is_no_period_is_refused(wrong, run):
    found = emulator.traces(run)

    for read in (found.lag, found.sends, found.rates):
        assert one_line(lambda read=read: read(wrong)) == f"every_s: expected seconds, at least 0.001, not {wrong!r}"


def test_what_is_no_interval_has_no_phases(run):
    found = emulator.traces(run)

    assert one_line(lambda: found.per_phase(found.measures())).startswith("there is no column run;")
    assert one_line(lambda: found.per_phase([])) == "expected a pandas frame, not list"


def test_a_trace_that_the_campaign_did_not_keep_is_reported_with_how_to_get_it(campaign):
    found = emulator.traces(campaign)

    line = one_line(lambda: found.lag(run="calm-seed2"))
    assert line.startswith("no trace of calm-seed2 was retained; run it again: rmqemu run ")
    assert line.endswith("--seed 2")


def test_a_campaign_of_which_nothing_was_retained_or_executed_says_so(tmp_path):
    empty = claim(tmp_path / "it", load_campaign(write_campaign(tmp_path)))
    found = emulator.traces(empty.path)

    retained = 'no trace was retained; repeat a run with its command in runs(), or keep = "all"'
    for read in (found.lag, found.log, found.beliefs):
        assert one_line(read) == retained
    assert one_line(found.overlaps) == f"{empty.path}: no run has been judged yet"
    assert one_line(lambda: found.estimate("lost")) == "no run has a verdict, so none has a value of lost"
    assert list(found.runs()["outcome"].unique()) == ["missing"]
    assert repr(found) == "8 runs of baseline, calm: 8 missing"


def test_a_campaign_that_is_none_is_reported(tmp_path):
    (tmp_path / "campaign.json").write_text("{")

    assert "campaign.json" in one_line(lambda: emulator.traces(tmp_path))
