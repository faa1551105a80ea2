"""Timed messages in a group of brokers: what a slave knows of them, and what it does when its master is gone."""

import json

import pytest

from emulator.testing import Stage, Trace, execute
from nodes.protocol.codes import RequestCode
from support.grouped import BEFORE_MS, MASTER, OTHER, S1, a_group, believed, requests, two_groups
from support.timed import send, stored


def in_wheel(stage: Stage, node: str) -> int:
    """How many messages are in the wheel of a broker."""
    timer = stage.node(node).tables.timer.wheel
    return int(timer.wheel.get_all_num(timer.curr_read_time_ms))


def keys_at(trace: Trace, node: str, **between: float) -> list[str]:
    rows = trace.select("messages", node=node, event="stored", topic="orders", **between)
    return [row.key for row in rows]


def test_an_acting_slave_with_remote_escape_delivers_what_its_master_cannot() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        await send(probe, MASTER, TIMER_DELAY_SEC="40", KEYS="a")
        await stage.for_ms(10_000)
        await stage.kill(MASTER)
        await stage.for_ms(60_000)

    trace = execute(two_groups(enable_remote_escape=True), script)
    (instant,) = stored(trace, OTHER)
    assert 40_000 <= instant - BEFORE_MS <= 41_500
    assert stored(trace, MASTER) == stored(trace, S1) == []


@pytest.mark.trap("P21")
def test_an_acting_slave_without_remote_escape_drops_a_message_after_three_tries() -> None:
    versions = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        await send(probe, MASTER, TIMER_DELAY_SEC="40", KEYS="a")
        await stage.for_ms(10_000)
        await stage.kill(MASTER)
        await stage.for_ms(60_000)
        versions.append(stage.node(S1).tables.timer.wheel.metrics.timing_count["orders"].count)
        stage.start(MASTER)
        await stage.for_ms(60_000)

    trace = execute(two_groups(), script)
    assert [stored(trace, node) for node in (MASTER, S1, OTHER)] == [[], [], []]
    assert versions == [0]
    # The master comes back with the slave's check point, which says that all is delivered.
    assert json.loads(trace.select("beliefs", node=MASTER, subject="timer_check_point")[-1].value)[2] > 1


@pytest.mark.trap("P22")
def test_messages_that_escape_from_the_wheel_take_turns_over_brokers_and_queues() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        for number in range(4):
            await send(probe, MASTER, TIMER_DELAY_SEC="40", KEYS=str(number))
        await stage.for_ms(10_000)
        await stage.kill(MASTER)
        await stage.for_ms(60_000)

    trace = execute(two_groups(queues=4, enable_remote_escape=True), script)
    rows = trace.select("messages", node=OTHER, event="stored", topic="orders")
    assert sorted(row.key for row in rows) == ["0", "1", "2", "3"]
    assert len({row.queue_id for row in rows}) == 4  # all were sent to queue 0


@pytest.mark.trap("P29")
def test_a_slave_takes_one_message_beyond_its_masters_progress_and_so_takes_it_twice() -> None:
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        for number in range(100):  # ten per second, over three copies of the check point
            await send(probe, MASTER, TIMER_DELAY_SEC="60", KEYS=str(number))
            await stage.for_ms(100)
        await stage.for_ms(8_000)
        seen.extend(in_wheel(stage, node) for node in (MASTER, S1))
        await stage.kill(MASTER)
        await stage.for_ms(90_000)

    trace = execute(two_groups(enable_remote_escape=True), script)
    assert seen[0] == 100
    assert 102 <= seen[1] <= 105
    delivered = keys_at(trace, OTHER)
    assert len(set(delivered)) == 100
    assert len(delivered) == seen[1]


def test_what_a_master_delivered_since_the_last_copy_of_its_check_point_is_delivered_again() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        for number in range(60):
            await send(probe, MASTER, TIMER_DELAY_SEC="30", KEYS=str(number))
            await stage.for_ms(200)
        await stage.at_ms(BEFORE_MS + 38_000)  # in the midst of the deliveries
        await stage.kill(MASTER)
        await stage.for_ms(60_000)

    trace = execute(two_groups(enable_remote_escape=True), script)
    twice = set(keys_at(trace, MASTER)) & set(keys_at(trace, OTHER))
    assert 1 <= len(twice) <= 5 * 5  # 3 s between two copies, 1 s between two flushes, and a unit
    assert set(keys_at(trace, MASTER)) | set(keys_at(trace, OTHER)) == {str(number) for number in range(60)}


def test_the_read_time_of_a_slave_is_behind_its_masters_by_the_period_of_the_copies() -> None:
    behind = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        await send(probe, MASTER, TIMER_DELAY_SEC="3600")
        await stage.for_ms(10_000)
        for _ in range(20):
            await stage.for_ms(500)
            read = []
            for node in (MASTER, S1):
                process = stage.host(node).process
                timer = stage.node(node).tables.timer.wheel
                timer.catch_up(process.clock.now_ms())
                read.append(timer.curr_read_time_ms)
            behind.append(read[0] - read[1])

    execute(a_group(), script)
    assert min(behind) >= 0
    assert 2_000 <= max(behind) <= 5_000


def test_a_slave_copies_the_counts_of_timed_messages_once_there_are_any() -> None:
    counts = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(62_000)
        await send(probe, MASTER, TIMER_DELAY_SEC="3600")
        await stage.for_ms(65_000)
        counts.extend(stage.node(node).tables.timer.wheel.metrics.wrapper() for node in (MASTER, S1))

    trace = execute(a_group(), script)
    assert len(requests(trace, S1, MASTER, RequestCode.GET_TIMER_METRICS)) == 1
    assert counts[0] == counts[1]
    assert counts[0].timing_count["orders"].count == 1


@pytest.mark.trap("P32")
def test_messages_that_are_due_before_they_enter_the_wheel_hold_up_all_that_are_in_it() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        await send(probe, MASTER, TIMER_DELAY_SEC="36", KEYS="in the wheel")
        await stage.for_ms(19_000)
        for _ in range(33):
            await send(probe, MASTER, TIMER_DELAY_MS="1000")
        await stage.for_ms(100)  # replicated; the check point of the slave says nothing of them
        await stage.power_off(MASTER)  # who is silent is missed after 10 s and more
        await stage.for_ms(60_000)

    trace = execute(two_groups(), script)
    (acting_ms,) = [at for at, runs in believed(trace, S1, "special_service", after_ms=BEFORE_MS) if runs]
    assert acting_ms < BEFORE_MS + 36_000
    (released,) = trace.select("causes", node=S1, name="TimerDequeueGetService")
    # Each group of eleven takes 4 s, three at a time for a second; only then the present of the wheel moves on.
    assert released.at_ms == pytest.approx(acting_ms + 2 * 4_000, abs=400)
    assert released.at_ms > BEFORE_MS + 36_000 + 1_200
