"""Time between calls, what calls leave in the trace, and that it is the same every time."""

import time

import attrs
import pytest

import emulator
from emulator.notebook.engine import Engine
from emulator.run import run_scenario
from emulator.run.run import BY_HAND_FILE
from emulator.spec import load
from emulator.time.mode import TimeMode
from emulator.trace.run_directory import RunEnd, open_run
from emulator.trace.schema import TraceLevel
from emulator.trace.stored import stored_trace
from support.small_cluster import FIRST_CLUSTER, launched, scenario
from support.waiting import until

MODES = pytest.mark.parametrize("mode", [TimeMode.SIM, TimeMode.FAST])


def digest_of(cluster) -> str:
    return open_run(cluster.close()).manifest["digest"]


def an_afternoon(cluster) -> None:
    cluster.advance(15_000)
    cluster.cut("c1", "broker-a")
    cluster.loss(10)
    cluster.advance(140_000)
    cluster.kill("ns-1")
    cluster.stop("c2")
    cluster.heal("all")
    cluster.advance(60_000)


def view_changes(path) -> list[tuple]:
    import pyarrow.parquet as pq

    rows = pq.read_table(path / "trace" / "beliefs").sort_by("seq").to_pylist()
    return [(row["t_ns"], row["node"], row["kind"], row["subject"], row["value"]) for row in rows]


def test_between_two_calls_no_time_passes(tmp_path):
    with launched(tmp_path) as cluster:
        assert cluster.now_ms == 0
        cluster.advance(20_000)
        rows = cluster._engine.session.cluster.world.recorder
        before = (rows._seq, cluster._engine.session.cluster.world.timeline.now_ns)
        time.sleep(0.2)  # the wall is what must not matter
        assert (rows._seq, cluster._engine.session.cluster.world.timeline.now_ns) == before
        assert cluster.now_ms == 20_000
        cluster.advance(0)
        assert cluster.now_ms == 20_000


@MODES
def test_the_same_calls_give_the_same_trace_byte_for_byte(tmp_path, mode):
    digests = []
    for _ in range(2):
        cluster = launched(tmp_path, mode=mode)
        an_afternoon(cluster)
        digests.append(digest_of(cluster))
    assert digests[0] == digests[1]


def test_sim_and_fast_give_one_trace(tmp_path):
    digests = []
    for mode in (TimeMode.SIM, TimeMode.FAST):
        cluster = launched(tmp_path, mode=mode)
        an_afternoon(cluster)
        digests.append(digest_of(cluster))
    assert digests[0] == digests[1]


def test_many_small_steps_with_looks_between_them_leave_the_trace_of_one_big_step(tmp_path):
    item, many = launched(tmp_path), launched(tmp_path)
    item.advance(12_000)
    for step in range(2_000):
        many.advance(6)
        if step % 100 == 0:
            many.status()
            many.views()
            assert many.ownership
    assert digest_of(item) == digest_of(many)


def test_a_stepped_cluster_that_no_one_touches_runs_as_its_scenario_does(tmp_path):
    whole = attrs.evolve(scenario(), run_for_ms=30_000)
    cluster = emulator.launch(whole, runs=tmp_path)
    cluster.advance(29_999)
    stepped = view_changes(cluster.close())
    assert stepped == view_changes(run_scenario(whole, runs=tmp_path).path)
    assert len(stepped) > 20


def test_what_was_done_by_hand_gives_the_same_changes_of_views_again(tmp_path):
    cluster = launched(tmp_path)
    cluster.advance(15_000)
    cluster.cut("c1", "broker-a")
    cluster.advance(150_000)
    cluster.kill("ns-1")
    cluster.suspend("c2")
    cluster.advance(40_000)
    cluster.heal("all")
    cluster.advance(29_999)
    first = cluster.close()
    again = run_scenario(load(first / BY_HAND_FILE), runs=tmp_path).path
    assert view_changes(first) == view_changes(again)


def test_verbs_act_at_whole_milliseconds_of_their_own(tmp_path):
    with launched(tmp_path) as cluster:
        cluster.advance(5_000)
        cluster.cut("c1", "broker-a")
        cluster.cut("c2", "broker-a")
        assert cluster.faults().lines == (
            "cut-1: cut c1 <-> broker-a, since 5.000 s, hit 0 times",
            "cut-2: cut c2 <-> broker-a, since 5.001 s, hit 0 times",
        )
        assert cluster.now_ms == 5_001


def test_a_verb_that_waits_for_a_process_lets_time_pass_until_it_has_ended(tmp_path):
    with launched(tmp_path) as cluster:
        cluster.advance(5_000)
        assert cluster.stop("broker-a").lines == ("restart-1: restart broker-a",)
        assert "broker-a  broker      127.1.2.1     down" in cluster.nodes().lines
        stopped_ms = cluster.now_ms
        assert 5_000 < stopped_ms < 15_000
        cluster.advance(1_000)
        assert cluster.now_ms == stopped_ms + 1_000


def test_the_clock_of_a_live_cluster_goes_by_itself(tmp_path):
    with launched(tmp_path, mode="live") as cluster:
        begin_ms = cluster.now_ms
        cluster.advance(300)
        assert cluster.now_ms >= begin_ms + 300
        assert cluster.cut("c1", "broker-a").lines == ("cut-1: cut c1 <-> broker-a",)
        before_ms = cluster.now_ms
        until(lambda: cluster.now_ms > before_ms)


@pytest.mark.parametrize("wrong", [-1, 0.5, True, 10**30, float("nan"), float("inf")])
def test_what_is_no_duration_is_refused_and_no_time_passes(tmp_path, wrong):
    with launched(tmp_path) as cluster:
        with pytest.raises(ValueError, match=r"advance: expected whole milliseconds >= 0, not"):
            cluster.advance(wrong)
        assert cluster.now_ms == 0


def test_the_seed_is_the_scenarios_unless_reported(tmp_path):
    item, other = (emulator.launch(FIRST_CLUSTER, runs=tmp_path, seed=seed) for seed in (None, 7))
    for cluster in (item, other):
        cluster.advance(5_000)
    assert [cluster.path.name for cluster in (item, other)] == [
        "first-cluster-sim-seed1-1",
        "first-cluster-sim-seed7-1",
    ]
    assert digest_of(item) != digest_of(other)


def test_a_call_takes_less_than_a_millisecond(tmp_path):
    engine = Engine(scenario(), TimeMode.SIM, TraceLevel.FULL, tmp_path)
    engine.start()
    engine.advance(5_000)
    begin = time.perf_counter()
    for _ in range(200):
        engine.advance(0)
    assert time.perf_counter() - begin < 2.0, "ten times what was measured"
    engine.close()


@MODES
def test_what_was_traced_is_on_disk_a_second_later_although_time_stands_still(tmp_path, mode):
    with launched(tmp_path, mode=mode) as cluster:
        cluster.advance(1_000)
        recorder = cluster._engine.session.cluster.world.recorder
        until(lambda: stored_trace(cluster.path).last_seq == recorder._seq > 100)


def test_a_cluster_that_runs_in_this_process_is_called_under_way(tmp_path):
    with launched(tmp_path) as cluster:
        assert open_run(cluster.path).ended is RunEnd.UNDER_WAY
    assert open_run(cluster.path).ended is RunEnd.COMPLETE
