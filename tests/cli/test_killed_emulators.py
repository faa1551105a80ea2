"""SIGKILL: all rows but those of the last second are there; `make kills` does this two hundred times."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from emulator.time.mode import TimeMode
from studies.kills.kill import kill


@pytest.fixture(scope="module")
def kills():
    """Three at a time, since most of it is waiting."""
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(kill, (TimeMode.SIM, TimeMode.SIM, TimeMode.LIVE), (0.5, 2.5, 2.5)))


def test_a_killed_emulator_leaves_all_rows_up_to_its_last_second(kills):
    assert [died.problem for died in kills] == ["", "", ""]
    assert all(died.began for died in kills)


def test_there_is_something_to_read_long_before_a_segment_is_full(kills):
    assert [died.rows > 0 for died in kills[1:]] == [True, True], kills
