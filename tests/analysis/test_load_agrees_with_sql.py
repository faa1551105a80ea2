"""Lag, latency and failed sends of the demonstration and of three incidents, next to duckdb over the same rows."""

from pathlib import Path

import pytest

from emulator.analysis.judge import judge_run
from emulator.run import run_scenario
from emulator.spec import load
from emulator.trace.run_directory import open_run
from support.sql_load import SqlLoad

EXAMPLES = Path(__file__).parents[2] / "examples"
INCIDENTS = {
    "half_seen_consumer": "#1095: members are asked of a random broker, and two own one queue",
    "acting_slave": "Y20: consumers are ahead of the slave that acts for its master",
    "rip32/p1_kill": "#1094: a master dies and returns; what was committed meanwhile",
    "rebalance/member_freeze165": "a member freezes for longer than brokers wait for a heartbeat",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INCIDENTS)
def test_sql_over_the_rows_finds_the_same(tmp_path, name):
    path = run_scenario(load(EXAMPLES / f"{name}.toml"), runs=tmp_path).path
    found, sql = judge_run(open_run(path)), SqlLoad(path)

    lags = [(item.queue.group, item.queue.topic, item.queue.broker_name, item.queue.queue_id) for item in found["lags"]]
    assert sql.lags() == [(*queue, lag.maximum, lag.end) for queue, lag in zip(lags, found["lags"], strict=True)]
    assert [(*row[:3], *(round(float(str(ms)), 3) for ms in row[3:])) for row in sql.latencies()] == [
        (item.group, item.topic, item.messages, item.p50_ms, item.p99_ms, item.max_ms) for item in found["latencies"]
    ]
    assert sql.sends() == [(item.producer, item.acknowledged, item.failed) for item in found["attempts"]]
    assert found["lags"]
    assert found["latencies"]
