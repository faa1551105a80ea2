"""The example of timed messages does what it says."""

from pathlib import Path

import pytest

from emulator.run import run_scenario
from emulator.spec import load
from emulator.testing import TOPIC
from emulator.trace.run_directory import table_rows
from emulator.trace.schema import MESSAGES

S = 1_000_000_000
SENT, LEVEL = "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    example = Path(__file__).parents[2] / "examples" / "timers.toml"
    path = run_scenario(load(example), runs=tmp_path_factory.mktemp("runs")).path
    return [row for row in table_rows(path, MESSAGES, ("t_ns", "node", "topic", "event")) if row["event"] == "stored"]


def stored(rows, topic, *nodes):
    return [row["t_ns"] / S for row in rows if row["topic"] == topic and (not nodes or row["node"] in nodes)]


def test_producers_end_with_as_many_messages_as_they_are_told(rows):
    assert len(stored(rows, SENT)) == 1_000
    assert len(stored(rows, LEVEL)) == 60


def test_the_slave_delivers_to_the_other_broker_while_the_master_is_away_and_a_few_twice(rows):
    assert not [at_s for at_s in stored(rows, TOPIC, "ba") if 50 < at_s < 90]
    assert len([at_s for at_s in stored(rows, TOPIC, "bb") if 50 < at_s < 70]) > 150
    twice = len(stored(rows, TOPIC)) - 1_060
    assert 5 <= twice <= 40
