"""How far delayed messages were delivered, and where the timer stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.timer.delay_offsets import DelayOffsets, TimerCheckPoint, TimerProgress, encode_delay_offsets
from nodes.protocol.bodies import DelayOffsetSerializeWrapper
from nodes.protocol.errors import ProtocolError
from nodes.protocol.model import DataVersion
from support.every_case import each_case

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(st.integers(1, 18), st.integers(0, 9)), max_size=12), st.integers(1, 4))
def test_the_version_steps_with_every_nth_update_of_any_level(updates, step):
    delays = DelayOffsets(now_ms=0, delay_offset_update_version_step=step)
    for level, offset in updates:
        delays.update_offset(level, offset, now_ms=7)

    assert delays.offsets == dict(updates)
    assert delays.data_version.counter == len(updates) // step


def test_199_updates_leave_the_version_as_it_was_and_the_next_makes_a_new_one():
    delays = DelayOffsets(now_ms=3)
    for _ in range(199):
        delays.update_offset(1, 0, now_ms=7)
    assert delays.data_version == DataVersion(0, 3, 0)

    delays.update_offset(1, 0, now_ms=7)
    assert delays.data_version == DataVersion(0, 7, 1)


def test_levels_that_another_broker_does_not_know_stay():
    delays = DelayOffsets(now_ms=0)
    delays.update_offset(1, 10, now_ms=0)
    delays.update_offset(2, 20, now_ms=0)

    delays.put_all(DelayOffsetSerializeWrapper({2: 5}, DataVersion(0, 1, 2)))

    assert delays.offsets == {1: 10, 2: 5}
    assert delays.data_version == DataVersion(0, 1, 2)


def test_the_file_of_delay_offsets_is_rocketmqs_json():
    content = encode_delay_offsets(DelayOffsetSerializeWrapper({4: 17, 3: 2}, DataVersion(0, 1, 2)))

    assert content == b'{"dataVersion":{"counter":2,"stateVersion":0,"timestamp":1},"offsetTable":{"3":2,"4":17}}'
    delays = DelayOffsets(now_ms=0)
    delays.decode(content, now_ms=9)
    assert (dict(delays.offsets), delays.data_version) == ({3: 2, 4: 17}, DataVersion(0, 1, 2))


@given(st.tuples(*[LONGS] * 7))
def test_a_check_point_is_seven_long_numbers(numbers):
    point = TimerCheckPoint(*numbers[:4], DataVersion(*numbers[4:]))

    content = point.encode()

    assert content == b"".join(number.to_bytes(8, "big", signed=True) for number in numbers)
    assert TimerCheckPoint.decode(content) == point


@each_case("content", [None, b"", bytes(55), bytes(57)])
def test_a_check_point_of_another_length_is_refused(content):
    with pytest.raises(ProtocolError, match="has 56 bytes"):
        TimerCheckPoint.decode(content)


def test_who_follows_a_check_point_keeps_what_is_about_its_own_files():
    timer = TimerProgress(TimerCheckPoint(1, 2, 3, 4))

    timer.follow(TimerCheckPoint(10, 20, 30, 40, DataVersion(0, 1, 1)))

    assert timer.check_point == TimerCheckPoint(10, 2, 3, 40, DataVersion(0, 1, 1))
