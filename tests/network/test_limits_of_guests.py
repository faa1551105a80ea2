"""Programs that dial a node share its time and memory: silent, greedy, or many at once, they keep no other waiting."""

import itertools
import os

import trio

from emulator.guests.remoting.remoting_command import (
    encode_remoting,
)
from emulator.testing.worlds import MS, process_of
from nodes.protocol.codes import RequestCode, ResponseCode
from support.dialed_node import BURN, ECHO, HEARTBEAT, live, malformed
from support.limited import limit
from support.remoting_program import PATIENCE_S, request


def test_who_says_nothing_is_sent_away_in_the_end_with_one_row_each():
    async def scene(stage):
        limit(stage, silent_ms=50)
        silent = [await stage.dial() for _ in range(20)]
        speaking = await stage.dial()
        await speaking.ask(request(ECHO, 1))
        await speaking.answer()
        ended = [await program.answer() for program in silent]
        await speaking.ask(request(ECHO, 2))
        return ended, (await speaking.answer()).opaque

    executed = live(scene)

    assert executed.result == ([None] * 20, 2)
    assert malformed(executed) == ["said nothing for 50 ms"] * 20


def test_the_silent_make_room_for_those_who_speak():
    async def scene(stage):
        limit(stage, connections=3)
        speaking = await stage.dial()
        await speaking.ask(request(ECHO, 1))
        await speaking.answer()
        silent = [await stage.dial() for _ in range(4)]
        ended = [await program.answer() for program in silent[:2]]
        await speaking.ask(request(ECHO, 2))
        await silent[3].ask(request(ECHO, 3))
        return ended, (await speaking.answer()).opaque, (await silent[3].answer()).opaque

    executed = live(scene)

    assert executed.result == ([None, None], 2, 3)
    assert malformed(executed) == ["said nothing, and others want to come in"] * 2


def test_a_guest_is_not_served_while_the_process_has_too_much_memory():
    async def scene(stage):
        limit(stage, memory_bytes=1)
        program = await stage.dial()
        await program.ask(request(ECHO, 1))
        return await program.answer(), await stage.all_is_well()

    answer, is_well = live(scene).result
    assert (answer.code, is_well) == (ResponseCode.SYSTEM_BUSY, True)
    assert "guest_limits.memory_bytes" in answer.remark


def test_a_connection_that_takes_more_than_its_share_of_the_cpu_is_answered_busy_and_the_others_are_served():
    async def scene(stage):
        limit(stage, cpu_percent=10, cpu_debt_ms=50)
        greedy, other = await stage.dial(), await stage.dial()
        await greedy.ask(*(request(BURN, n) for n in range(1, 9)))
        await other.ask(request(ECHO, 1))
        assert (await other.answer()).code == 0
        return [(await greedy.answer()).code for _ in range(8)]

    codes = live(scene).result
    assert codes[0] == 0
    assert ResponseCode.SYSTEM_BUSY in codes[1:]


def test_a_connection_that_has_taken_more_than_its_share_goes_on_while_no_one_else_needs_the_time():
    async def scene(stage):
        limit(stage, cpu_percent=1, cpu_debt_ms=60_000)
        program, codes = await stage.dial(), []
        with trio.fail_after(PATIENCE_S):  # a hundredth of the time would be 9.9 s for each request
            for number in range(1, 6):
                await program.ask(request(BURN, number))
                codes.append((await program.answer()).code)
        return codes

    assert live(scene).result == [0] * 5


async def _join(stage, count):
    """Programs that have sent their heartbeats, as consumers of a group do."""
    members = [await stage.dial() for _ in range(count)]
    for member in members:
        await member.ask(request(RequestCode.HEART_BEAT, 1, body=HEARTBEAT))
        await member.answer()
    return members


async def _ask_until_done(stage, other, subject, count):
    """Ask for echoes until so much else was handled; returns the most that was handled between two echoes."""
    stage.order.clear()
    opaques = itertools.count(1)
    while stage.order.count(subject) < count:
        await other.ask(request(ECHO, next(opaques)))
        await other.answer()
    assert stage.order.count(subject) == count
    return max(sum(1 for _ in run) for name, run in itertools.groupby(stage.order) if name == subject)


MEMBERS = 120


def test_guests_that_leave_at_once_leave_one_after_the_other_and_others_are_served_in_between():
    async def scene(stage):
        members, other, stage.work_s = await _join(stage, MEMBERS), await stage.dial(), 0.003
        for member in members:
            member.sock.close()
        return await _ask_until_done(stage, other, "close", MEMBERS)

    assert live(scene).result < MEMBERS / 4


def test_heartbeats_of_many_guests_are_handled_one_after_the_other_and_others_are_served_in_between():
    async def scene(stage):
        members, other, stage.work_s = await _join(stage, MEMBERS), await stage.dial(), 0.003
        beat = encode_remoting(request(RequestCode.HEART_BEAT, 2, body=HEARTBEAT))
        for member in members:
            os.write(member.sock.fileno(), beat)  # no checkpoint: all of them wait when the first is read
        return await _ask_until_done(stage, other, "heartbeat", MEMBERS)

    assert live(scene).result < MEMBERS / 4


GREEDY = 6


def test_connections_whose_requests_take_long_are_served_one_at_a_time_and_others_in_between():
    async def scene(stage):
        greedy, other, stage.burn_s = [await stage.dial() for _ in range(GREEDY)], await stage.dial(), 0.04
        for program in greedy:  # what its requests take is known from the third one on
            for number in range(3):
                await program.ask(request(BURN, number))
                await program.answer()
        again = encode_remoting(request(BURN, 4))
        for program in greedy:
            os.write(program.sock.fileno(), again)  # no checkpoint: all of them wait when the first is read
        return await _ask_until_done(stage, other, "burn", GREEDY)

    assert live(scene).result <= GREEDY / 2


def test_answers_that_no_one_reads_share_a_budget():
    async def scene(stage):
        limit(stage, unsent_bytes=50_000_000, all_unsent_bytes=9_000_000)
        programs = [await stage.dial() for _ in range(3)]
        for program in programs:
            await program.ask(*(request(ECHO, n, body=b"x" * 1_000_000) for n in range(16)))
        with trio.fail_after(PATIENCE_S):
            while len(process_of(stage.node).endpoints) >= len(programs):
                await stage.world.sleep_until_ns(stage.world.timeline.now_ns + 10 * MS)
        return await stage.all_is_well()

    executed = live(scene)

    assert executed.result is True
    assert all(
        "guests hold more than 9000000 bytes of frames that they do not read" in row for row in malformed(executed)
    )
