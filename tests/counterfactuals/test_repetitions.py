"""What of a run can be repeated, what is said to be missing, and what is refused in one line."""

import json
import shutil

import attrs
import pytest

from counterfactuals.two_faults import TEXT, repeated_run
from emulator.analysis.judge import judge_run
from emulator.console.by_hand import ByHand, scenario_by_hand
from emulator.counterfactuals.repeated_run import RepeatedRun
from emulator.counterfactuals.repetition import CounterfactualError, repetition_of
from emulator.run import run_scenario
from emulator.spec import SpecError, from_dict, loads
from emulator.trace.run_directory import BY_HAND_FILE, open_run
from emulator.trace.schema import TraceLevel
from faults.plan import Plan

SHORT = TEXT.replace("run_for_s = 80", "run_for_s = 36")
NEMESIS = """
[[nemesis]]
do = "suspend random consumers"
every_s = 4
min_s = 1
max_s = 2
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return open_run(run_scenario(loads(SHORT, "short.toml"), runs=tmp_path_factory.mktemp("runs")).path)


def changed(run, **manifest):
    """The run with another manifest."""
    return attrs.evolve(run, manifest={**run.manifest, **manifest})


def ids(repetition):
    return set(repetition.disturbances())


def test_a_run_is_repeated_as_its_manifest_describes_it(run):
    repetition = repetition_of(run)

    assert ids(repetition) == {"frozen", "slow", "closed"}
    assert repetition.digest == run.manifest["digest"]
    assert repetition.missing == ()
    assert {table["id"] for table in repetition.with_only(("closed",))["admin"]} == {"closed"}
    assert repetition.with_only(("closed",))["fault"] == []
    assert ids(repetition) == {"frozen", "slow", "closed"}


def test_faults_that_were_drawn_for_a_nemesis_are_left_out_one_at_a_time(tmp_path):
    scenario = loads(SHORT + NEMESIS, "drawn.toml")
    run = open_run(run_scenario(scenario, level=TraceLevel.COUNTS, runs=tmp_path).path)
    repetition = repetition_of(run)
    again = run_scenario(repetition.scenario(repetition.tables), level=TraceLevel.COUNTS, runs=tmp_path)

    assert "nemesis" not in repetition.tables
    assert ids(repetition) == {*(timed.id for timed in scenario.plan().faults), "closed"}
    assert len(ids(repetition)) > 3
    assert again.manifest["digest"] == run.manifest["digest"]


def test_a_run_that_was_interrupted_is_repeated_up_to_where_it_ended(run):
    repetition = repetition_of(changed(run, ended="interrupted", virtual_s=31.0))

    assert repetition.tables["scenario"]["run_for_ms"] == 31_000
    assert ids(repetition) == {"frozen", "slow"}
    assert repetition.digest == ""


def test_what_was_done_by_hand_is_repeated_from_the_file_that_repeats_it(run, tmp_path):
    live = open_run(shutil.copytree(run.path, tmp_path / "live"))
    scenario = from_dict(run.manifest["scenario"])
    by_hand = ByHand(Plan(tuple(attrs.evolve(timed, id=f"{timed.id}-2") for timed in scenario.faults.faults)))
    text = "# Not repeated: at 12 s: a topic of a guest\n" + scenario_by_hand(scenario, by_hand, 36_000)
    (live.path / BY_HAND_FILE).write_text(text)
    addresses = {**live.manifest["addresses"], "127.9.9.9": "shop-of-java"}
    repetition = repetition_of(changed(live, mode="live", addresses=addresses))

    assert ids(repetition) == {"frozen", "slow", "closed", "frozen-2", "slow-2"}
    assert repetition.digest == ""
    assert repetition.missing == ("at 12 s: a topic of a guest", "what guests did: shop-of-java")


def test_a_live_run_says_first_how_far_its_repetition_equals_it(run):
    live = changed(run, mode="live")
    report = judge_run(run)
    repeated = repeated_run(report, live, verify=True)

    assert repeated.head()[0].startswith(
        f"repeated {repeated.confirmation.repetitions} times, in sim: the run was live, so"
    )
    assert " harms are within a tenth of those of the run" in repeated.head()[0]


def test_a_run_that_is_under_way_or_ended_before_it_began_is_refused(run):
    with pytest.raises(CounterfactualError, match="still under way: expected one that has ended"):
        repetition_of(changed(run, ended="under way"))
    with pytest.raises(CounterfactualError, match="ended before anything happened"):
        repetition_of(changed(run, ended="interrupted", virtual_s=0.0))


def test_a_level_in_which_no_cause_can_be_read_is_refused_with_what_to_run_instead(tmp_path):
    run = open_run(run_scenario(loads(SHORT, "short.toml"), level=TraceLevel.COUNTS, runs=tmp_path).path)

    with pytest.raises(CounterfactualError, match="run the scenario again with --trace findings or full"):
        repeated_run(judge_run(run), run, verify=True)


def test_a_scenario_that_names_code_is_repeated_only_with_leave(run):
    tables = json.loads(json.dumps(run.manifest["scenario"]))
    tables["consumer"][0]["options"] = {"allocateMessageQueueStrategy": "mine:shares"}

    with pytest.raises(SpecError, match="--allow-code"):
        repetition_of(changed(run, scenario=tables))


def test_without_harm_nothing_is_repeated(run):
    assert RepeatedRun((), None, None).lines() == []
