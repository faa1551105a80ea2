"""The example of timed messages does what it says."""

from pathlib import Path

import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.run import run_scenario
from emulator.spec import load, loads
from emulator.testing import TOPIC
from emulator.trace.run_directory import open_run
from emulator.trace.schema import MESSAGES
from support.run_rows import table_rows

S = 1_000_000_000
SENT, LEVEL = "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"
EXAMPLE = Path(__file__).parents[2] / "examples" / "timers.toml"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return run_scenario(load(EXAMPLE), runs=tmp_path_factory.mktemp("runs")).path


@pytest.fixture(scope="module")
def rows(path):
    return [row for row in table_rows(path, MESSAGES, ("t_ns", "node", "topic", "event")) if row["event"] == "stored"]


def stored(rows, topic, *nodes):
    return [row["t_ns"] / S for row in rows if row["topic"] == topic and (not nodes or row["node"] in nodes)]


def test_producers_end_with_as_many_messages_as_they_are_reported(rows):
    assert len(stored(rows, SENT)) == 1_000
    assert len(stored(rows, LEVEL)) == 60


def test_the_slave_delivers_to_the_other_broker_while_the_master_is_away_and_a_few_twice(rows):
    assert not [at_s for at_s in stored(rows, TOPIC, "ba") if 50 < at_s < 90]
    assert len([at_s for at_s in stored(rows, TOPIC, "bb") if 50 < at_s < 70]) > 150
    twice = len(stored(rows, TOPIC)) - 1_060
    assert 5 <= twice <= 40


def test_the_judge_finds_all_of_them_in_time_and_reports_how_many_came_once_more(rows, path):
    report = judge_run(open_run(path))

    assert "V15" not in broken(report)
    assert sum(row.delivered for row in report["waits"]) == sum(row.messages for row in report["waits"]) == 1_060
    assert sum(row.again for row in report["waits"]) == len(stored(rows, TOPIC)) - 1_060
    assert max(row.late_ns for row in report["waits"] if row.waiting_in == "timer") < 1.3 * S


def test_without_an_escape_what_is_due_meanwhile_is_lost_and_the_judge_says_so(tmp_path):
    text = EXAMPLE.read_text().replace("replicas = 2", "replicas = 2\noptions = { enableRemoteEscape = false }")
    report = judge_run(open_run(run_scenario(loads(text, "text"), runs=tmp_path).path))

    assert "V15" in broken(report)
    (row,) = [row for row in report["waits"] if row.violation]
    assert (row.broker_name, row.waiting_in, row.early) == ("ba", "timer", 0)
    assert row.lost > 50
