"""Pops in order: a queue gives nothing more until what it gave is acknowledged or visible again."""

from collections.abc import Awaitable, Callable

import pytest

from emulator.testing import Stage, Trace, a_scenario, execute
from nodes.protocol.codes import ResponseCode
from support.popping_guest import BROKER, GROUP, TOPIC, Popped, PoppingGuest, popping_guest

BATCH_MS = 5_000


def pops(script: Callable[[Stage, PoppingGuest], Awaitable[None]]) -> Trace:
    async def main(stage: Stage) -> None:
        guest = await popping_guest(stage)
        for _ in range(4):
            await guest.send(BROKER)
        await script(stage, guest)

    return execute(a_scenario(), main)


async def pop(guest: PoppingGuest, maximum: int = 2, poll_ms: int = 0, attempt_id: str | None = None) -> Popped:
    return await guest.pop(order=True, maximum=maximum, invisible_ms=BATCH_MS, poll_ms=poll_ms, attempt_id=attempt_id)


def test_the_next_batch_waits_until_all_of_this_one_is_acknowledged() -> None:
    async def script(_stage: Stage, guest: PoppingGuest) -> None:
        first = await pop(guest)
        assert (first.offsets, first.header.revive_qid) == ([0, 1], 999)
        assert await guest.ack(first.handles[1], 1) == ResponseCode.SUCCESS
        blocked = await pop(guest)
        assert (blocked.code, blocked.header.rest_num) == (ResponseCode.POLLING_TIMEOUT, 0)
        assert await guest.ack(first.handles[0], 0) == ResponseCode.SUCCESS
        assert (await pop(guest)).offsets == [2, 3]

    trace = pops(script)
    assert trace.select("messages", event="check_point") == []
    assert [row.offset for row in trace.select("messages", event="committed", topic=TOPIC)] == [0, 2]


def test_an_acknowledgement_and_the_end_of_the_invisible_time_both_wake_a_held_pop() -> None:
    taken: list[tuple[list[int], float]] = []

    async def script(stage: Stage, guest: PoppingGuest) -> None:
        other = await popping_guest(stage, 1)

        async def held() -> None:
            popped = await pop(other, poll_ms=20_000)
            taken.append((popped.offsets, stage.now_ms))

        first = await pop(guest)
        stage.world.nursery.start_soon(held)
        await stage.for_ms(1_000)
        await guest.ack_all(first)
        await stage.for_ms(100)
        began_ms = stage.now_ms - 100
        stage.world.nursery.start_soon(held)
        await stage.for_ms(10_000)
        (_, first_ms), (again, second_ms) = taken
        assert first_ms - began_ms < 10
        assert again == [2, 3]  # no consumer acknowledged them
        assert BATCH_MS <= second_ms - first_ms <= BATCH_MS + 110

    pops(script)


def test_the_same_attempt_gets_the_same_batch_and_a_repetition_is_counted() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        assert (await pop(guest, attempt_id="a")).offsets == [0, 1]
        again = await pop(guest, attempt_id="a")
        assert (again.offsets, again.header.order_count_info) == ([0, 1], "0 0 0")
        await stage.for_ms(BATCH_MS)
        counted = await pop(guest, attempt_id="b")
        assert counted.header.order_count_info == "0 qo0%0 1;0 qo0%1 1;0 0 1"

    pops(script)


def test_a_change_of_the_invisible_time_keeps_the_queue_for_longer() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        first = await pop(guest, maximum=1)
        assert (await guest.change(first.handles[0], 0, 20_000)).code == ResponseCode.SUCCESS
        await stage.for_ms(15_000)
        assert (await pop(guest)).messages == ()
        await stage.for_ms(5_000)
        assert (await pop(guest)).offsets == [0, 1]

    pops(script)


def test_an_acknowledgement_of_a_message_that_the_batch_does_not_have_is_refused() -> None:
    async def script(_stage: Stage, guest: PoppingGuest) -> None:
        (handle, *_) = (await pop(guest)).handles
        assert await guest.ack(handle, 3) == ResponseCode.MESSAGE_ILLEGAL
        assert (await pop(guest)).messages == ()

    pops(script)


def test_a_batch_is_known_after_an_orderly_restart_and_its_end_wakes_a_held_pop() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await guest.pop(order=True, maximum=2, invisible_ms=30_000)
        began_ms = stage.now_ms
        await stage.stop(BROKER)
        stage.start(BROKER)
        await stage.for_ms(1_000)
        assert (await pop(guest)).messages == ()
        popped = await pop(guest, poll_ms=60_000)
        assert popped.offsets == [0, 1]
        assert 30_000 <= stage.now_ms - began_ms <= 30_110

    pops(script)


@pytest.mark.trap("P36")
def test_a_pop_that_corrects_an_offset_commits_the_wrong_one_again() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        broker = stage.node(BROKER)
        broker.context.store.delete_before(TOPIC, 0, 2)
        broker.tables.clients.offsets.commit_offset(GROUP, TOPIC, 0, 1, now_ms=broker.context.host.clock.now_ms())
        assert (await pop(guest)).offsets == [2, 3]

    trace = pops(script)
    assert [row.offset for row in trace.select("messages", event="committed", topic=TOPIC)] == [2, 1]
