"""Every benchmark, on next to nothing: what it measures is not judged here."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from emulator.time.mode import TimeMode
from nodes.config import AllocateStrategy
from studies.bench import cluster_trials, rows, turns
from studies.bench.__main__ import bench as bench_command
from studies.bench.catalogue import BENCHMARKS
from studies.bench.figures import Floor, Judged, Row, Sample, Work, interleave
from studies.bench.trial import TrialError, run_trial

TESTS = Path(__file__).parents[1]
TINY = Work(size=0.002, rounds=0.1)
SMALL = rows.Shape(nameservers=1, brokers=2, consumers=2)


def require_sane(row, name):
    assert row.name == name
    assert math.isfinite(row.value)
    assert row.value > 0
    assert row.unit
    assert row.reference
    assert row.plain()["name"] == name


@pytest.mark.slow
@pytest.mark.parametrize("typed", [False, True])
def test_our_calls_are_measured_next_to_two_rivals(typed):
    row = rows.rpc("rpc", 2, TINY, typed=typed)

    require_sane(row, "rpc")
    assert row.ratio > 0
    assert row.ratio_2 > 0
    assert "trio.socket" in row.reference
    assert "asyncio" in row.reference_2


@pytest.mark.slow
def test_our_calls_are_measured_with_and_without_a_trace():
    row = rows.rpc_traced("rpc_traced", 2, TINY)

    require_sane(row, "rpc_traced")
    assert row.ratio > 0
    assert "reference_2" not in row.plain()


@pytest.mark.slow
def test_routes_over_grpc_are_measured_next_to_routes_in_frames():
    row = rows.guest_routes_per_s("routes", TINY)

    require_sane(row, "routes")
    assert 0 < row.ratio < 1
    assert "RocketMQ's own frames" in row.reference


@pytest.mark.slow
@pytest.mark.parametrize("mode", [TimeMode.FAST, TimeMode.SIM])
def test_the_speed_of_virtual_time_is_its_own_ratio_to_real_time(mode):
    row = rows.emulated_s_per_s("speed", SMALL, mode, TINY, window_s=10, rounds=1, settle_s=1)

    require_sane(row, "speed")
    assert row.ratio == row.value


@pytest.mark.slow
def test_the_demonstration_is_timed_from_its_scenario_to_its_run(monkeypatch, tmp_path):
    short = "[scenario]\nname='short'\nrun_for_s=2\n[[broker]]\nname='b'\n"
    (tmp_path / "short.toml").write_text(short)
    monkeypatch.setattr("emulator.cli.demo.example", lambda _: tmp_path / "short.toml")

    (wall_s,) = cluster_trials.demo_emulation_s()

    assert wall_s > 0


def test_a_cluster_is_ready_when_every_queue_has_one_owner():
    require_sane(rows.ready_s("ready_s", TINY), "ready_s")


@pytest.mark.slow
def test_a_consumer_that_owns_nothing_takes_memory():
    row = rows.memory_per_idle_consumer_kib("memory", TINY, fewer=5, more=55, settle_s=2)

    require_sane(row, "memory")


@pytest.mark.slow
def test_a_cluster_that_is_left_alone_takes_little_of_a_core():
    row = rows.idle_cpu_per_node_pct("idle", TINY, consumers=2, wall_s=1, settle_s=0)

    require_sane(row, "idle")
    assert row.value < 100


@pytest.mark.slow
def test_allocating_queues_is_timed_for_a_whole_group_and_next_to_how_it_grows():
    row = rows.allocation_s("allocation", AllocateStrategy.CONSISTENT_HASH, TINY, consumers=3)

    require_sane(row, "allocation")
    assert row.ratio > 0


@pytest.mark.slow
def test_a_sticky_allocation_is_timed_next_to_avg():
    row = rows.sticky_s("allocation_sticky_s", Work(size=0.1, rounds=0.1), consumers=100)

    require_sane(row, "allocation_sticky_s")
    assert "AVG" in row.reference


@pytest.mark.slow
def test_dying_masters_are_timed_next_to_half_as_many_groups():
    row = rows.dying_masters_s_per_s("groups", 2, Work(size=0.05, rounds=0.1))

    require_sane(row, "groups")
    assert row.ratio > 0


@pytest.mark.slow
def test_elected_masters_are_timed_next_to_acting_slaves():
    row = rows.elected_masters_s_per_s("groups", 2, Work(size=0.05, rounds=0.1))

    require_sane(row, "groups")
    assert "acting slaves" in row.reference


def test_the_names_are_those_that_were_promised():
    workloads = ("half_seen_consumer", "start_250", "groups_30", "data_path", "fourteen")
    assert [benchmark.name for benchmark in BENCHMARKS] == [
        *(f"cpu_{workload}_{level}" for level in ("findings", "full") for workload in workloads),
        "rpc_1",
        "rpc_100_connections",
        "rpc_typed",
        "rpc_traced",
        "guest_routes_grpc",
        "emulated_s_per_s_20_nodes_fast",
        "emulated_s_per_s_20_nodes_sim",
        "emulated_s_per_s_333_nodes_fast",
        "emulated_s_per_s_333_nodes_sim",
        "emulated_s_per_s_30_groups",
        "emulated_s_per_s_60_groups",
        "emulated_s_per_s_30_elected_groups",
        "demo_emulation_s",
        "ready_s",
        "memory_per_idle_consumer_kib",
        "idle_cpu_per_node_pct",
        "allocation_avg_s",
        "allocation_avg_by_circle_s",
        "allocation_config_s",
        "allocation_machine_room_s",
        "allocation_machine_room_nearby_s",
        "allocation_consistent_hash_s",
        "allocation_kafka_round_robin_s",
        "allocation_ordinal_s",
        "allocation_sticky_s",
        "guest_sends_1_thread",
        "guest_p99_ms_1_thread",
        "guest_sends_4_threads",
        "guest_p99_ms_4_threads",
        *(
            f"guest_warm_{subject}"
            for load in ("1_thread", "4_threads", "4_threads_1_kib", "16_threads_1_kib", "4_threads_batches_of_32")
            for subject in (load, f"p99_ms_{load}")
        ),
        "guest_first_message_s",
        "guest_memory_mib",
    ]


def test_sides_take_turns_and_keep_their_own_values():
    lines = []

    def side(name, *values):
        return lambda: lines.append(name) or values

    first, second = interleave((side("ours", 1.0, 5.0), side("theirs", 2.0)), 2)

    assert lines == ["ours", "theirs", "ours", "theirs"]
    assert first == Sample((1.0, 5.0, 1.0, 5.0))
    assert second == Sample((2.0, 2.0))


def test_a_sample_reports_its_median_and_how_far_its_runs_are_apart():
    sample = Sample((10.0, 8.0, 11.0))

    assert (sample.median, sample.spread_pct) == (10.0, 30.0)


@pytest.mark.parametrize(
    ("floor", "met"),
    [
        (Floor(Judged.RATIO, 0.5), True),
        (Floor(Judged.RATIO, 0.51), False),
        (Floor(Judged.VALUE, 3.0), True),
        (Floor(Judged.VALUE, 2.0, at_most=True), False),
        (Floor(Judged.VALUE, 3.0, at_most=True), True),
    ],
)
def test_a_floor_is_met_from_its_limit_on(floor, met):
    assert floor.is_met(Row("x", 3.0, "s", 0.0, "rival", 0.5)) is met


def test_a_floor_on_a_ratio_is_not_met_where_there_is_no_rival():
    assert not Floor(Judged.RATIO, 0.0).is_met(Row("x", 3.0, "s", 0.0, "none", None))


def test_a_run_that_fails_says_why():
    with pytest.raises(TrialError, match=r"emulated_s_per_s: .*nameservers"):
        run_trial(cluster_trials.emulated_s_per_s)


def bench(*arguments, cwd):
    command = [sys.executable, "-m", "studies.bench", *arguments]
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_writes_rows_prints_a_table_and_reports_progress(tmp_path):
    done = bench("--quick", "--only", "ready_s", "--out", "rows.json", cwd=tmp_path)

    assert done.returncode == 0
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert {"name", "value", "unit", "reference", "ratio"} <= row.keys()
    assert row["name"] == "ready_s"
    assert "ready_s" in done.stdout
    assert "[1/1] ready_s" in done.stderr


def bench_here(*arguments):
    """The same command in this process: to import it takes longer than what it does here."""
    app = typer.Typer()
    app.command()(bench_command)
    return CliRunner().invoke(app, arguments)


def test_an_unknown_name_is_refused_with_those_that_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = bench_here("--only", "rpc_2")

    assert done.exit_code == 2
    assert "no benchmark is called rpc_2; there are cpu_half_seen_consumer_findings, " in done.stderr
    assert not (tmp_path / "bench.json").exists()


def test_what_needs_java_is_left_out_with_the_reason_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = bench_here("--quick", "--only", "guest_memory_mib", "--out", "rows.json")

    assert done.exit_code == 0
    assert json.loads((tmp_path / "rows.json").read_text()) == []
    assert "left out: java, mvn not found on this machine" in done.stderr


def test_processes_take_turns_on_one_core():
    loop = (
        "import os, time; [None for _ in range(3_000_000)]; print(sorted(os.sched_getaffinity(0)), time.process_time())"
    )
    command = [sys.executable, "-c", loop]

    reported = turns.in_turns([command] * 2, [dict(os.environ)] * 2)

    cores, others = (line.rpartition(" ")[0] for line in reported)
    assert cores == others
    assert cores.count(",") == 0
    with pytest.raises(TrialError, match="no such luck"):
        turns.in_turns([[sys.executable, "-c", "raise SystemExit('no such luck')"]], [dict(os.environ)])


def test_a_workload_is_run_in_a_warm_process(tmp_path):
    scenario = (turns.WORKLOADS / "fourteen.toml").read_text().partition("[[fault]]")[0]
    (tmp_path / "short.toml").write_text(scenario.replace("run_for_s = 120", "run_for_s = 2"))
    command = [
        sys.executable,
        str(Path(turns.__file__).parent / "executed_workloads.py"),
        str(tmp_path / "short.toml"),
        "counts",
    ]

    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONSAFEPATH": "1"}
    )

    cpu_s, mib = map(float, done.stdout.split())
    assert 0 < cpu_s < mib
