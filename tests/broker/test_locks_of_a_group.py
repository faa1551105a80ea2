"""Order locks where a majority has to agree: what the client is notified, when, and who holds what afterwards."""

import pytest
import trio

from broker.group_of_brokers import Caller, Member, believed, cut, heal, know_each_other, requests
from emulator.testing.worlds import MS, execute_world, until_ms
from nodes.config import BrokerConfig
from nodes.protocol.bodies import LockBatchRequestBody, LockBatchResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_body
from nodes.rpc.errors import RemotingTimeoutError

QUEUE, TEXT = MessageQueue("t", "bk", 0), "t@bk@0"
STRICT = BrokerConfig(lock_in_strict_mode=True, total_replicas=3)


def three(world, config=STRICT):
    members = [Member(world, broker_id, config) for broker_id in range(3)]
    know_each_other(*members)
    return *members, Caller(world)


async def lock(caller, member, client, *, timeout_ms=3_000):
    """Whether the client got the queue, and how long it waited in ms."""
    began = caller.world.timeline.now_ns
    body = LockBatchRequestBody("g", client, (QUEUE,))
    answer = await caller.ask(member, RequestCode.LOCK_BATCH_MQ, body, timeout_ms=timeout_ms)
    got = decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set == (QUEUE,)
    return got, (caller.world.timeline.now_ns - began) // MS


async def unlock(caller, member, client):
    return await caller.ask(member, RequestCode.UNLOCK_BATCH_MQ, LockBatchRequestBody("g", client, (QUEUE,)))


def holder(member):
    held = member.tables.clients.locks.locks.get("g", {}).get(QUEUE)
    return held.client_id if held else None


def test_all_members_hold_what_a_majority_locked():
    async def main(world):
        *members, caller = three(world)
        return await lock(caller, members[0], "a"), [holder(member) for member in members]

    executed = execute_world(main, delay_ms=1)

    # Two connections are opened and two answers awaited, each one way and back.
    assert executed.result == ((True, 8), ["a", "a", "a"])
    for name in ("b0", "b1", "b2"):
        assert [value for _, value in believed(executed, name, "queue_locks", "g")] == [{TEXT: "a"}]


def test_one_dead_member_of_three_keeps_no_one_from_a_lock():
    async def main(world):
        item, two, three_, caller = three(world)
        await three_.machine.kill()
        return await lock(caller, item, "a"), holder(two)

    assert execute_world(main).result == ((True, 0), "a")


def test_with_two_replicas_nothing_is_locked_while_one_is_down():
    async def main(world):
        item, two, _, caller = three(world, BrokerConfig(lock_in_strict_mode=True, total_replicas=2))
        know_each_other(item, two)
        await two.machine.kill()
        return await lock(caller, item, "a")

    assert execute_world(main).result == (False, 0)


def test_without_strict_mode_no_one_else_is_asked():
    async def main(world):
        item, two, _, caller = three(world, BrokerConfig(total_replicas=3))
        return await lock(caller, item, "a"), await lock(caller, two, "b")

    executed = execute_world(main)

    assert executed.result == ((True, 0), (True, 0))
    assert [requests(executed, name, 41) for name in ("b0", "b1", "b2")] == [[], [], []]


@pytest.mark.trap("M64")
def test_a_silent_member_is_waited_for_2_s_and_the_client_that_gave_up_after_1_s_holds_the_lock():
    async def main(world):
        item, _, silent, caller = three(world)
        assert await lock(caller, item, "a") == (True, 0)
        await unlock(caller, item, "a")
        await silent.machine.suspend()
        await until_ms(world, 10_000)
        with pytest.raises(RemotingTimeoutError):
            await lock(caller, item, "a", timeout_ms=1_000)
        gave_up_ms = world.timeline.now_ns // MS
        other = await lock(caller, item, "b", timeout_ms=5_000)
        return gave_up_ms, holder(item), other

    executed = execute_world(main)

    assert executed.result == (11_000, "a", (False, 2_000))
    answers = executed.trace.select("rpc", src="b0", dst="client", code=41)
    assert [row["t_ns"] // MS for row in answers if row["event"] != "connected"] == [0, 12_000, 13_000]


def test_what_a_member_says_after_its_1_s_but_within_the_2_s_of_all_counts():
    async def main(world):
        item, dead, slow, caller = three(world)
        await lock(caller, item, "a")
        await unlock(caller, item, "a")
        await dead.machine.kill()
        await slow.machine.suspend()
        got = []

        async def locks():
            got.append(await lock(caller, item, "a"))

        await until_ms(world, 10_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(locks)
            await until_ms(world, 11_500)
            await slow.machine.resume()
        return got

    assert execute_world(main).result == [(True, 1_500)]


@pytest.mark.trap("M65")
def test_two_clients_with_a_minority_each_fail_until_the_locks_of_one_expire():
    async def main(world):
        item, two, three_, caller = three(world)
        await three_.machine.kill()
        cut(world, item, two)
        tries = [await lock(caller, item, "a"), await lock(caller, two, "b")]
        heal(world, item, two)
        held = [holder(item), holder(two)]
        await until_ms(world, 30_000)
        tries += [await lock(caller, item, "b")]
        await until_ms(world, 60_000)
        tries += [await lock(caller, two, "b")]
        await until_ms(world, 60_001)
        tries += [await lock(caller, two, "b")]
        return [got for got, _ in tries], held, [holder(item), holder(two)]

    tries, held, at_last = execute_world(main).result
    assert held == ["a", "b"]
    assert tries == [False, False, False, False, True]
    assert at_last == ["b", "b"]


def test_a_strict_unlock_is_answered_at_once_and_reaches_all_members():
    async def main(world):
        *members, caller = three(world)
        await lock(caller, members[0], "a")
        answer = await unlock(caller, members[0], "a")
        at_once = [holder(member) for member in members]
        await until_ms(world, 100)
        return answer.code, at_once, [holder(member) for member in members]

    executed = execute_world(main, delay_ms=1)

    assert executed.result[0] == 0
    assert executed.result[2] == [None, None, None]
    assert sorted(row["dst"] for row in executed.trace.select("rpc", src="b0", code=42, kind="request")) == [
        "b0",
        "b1",
        "b2",
    ]
    assert believed(executed, "b2", "queue_locks", "g")[-1][1] is None


@pytest.mark.trap("M67")
@pytest.mark.parametrize("polled", [None, {}])
def test_a_strict_unlock_after_an_empty_poll_unlocks_nothing_and_succeeds(polled):
    async def main(world):
        *members, caller = three(world)
        await lock(caller, members[0], "a")
        members[0].group.members = polled
        answer = await unlock(caller, members[0], "a")
        await until_ms(world, 100)
        return answer.code, [holder(member) for member in members]

    assert execute_world(main).result == (0, ["a", "a", "a"])


def test_locks_are_not_among_what_a_slave_copies():
    async def main(world):
        master, slave, _, caller = three(world, BrokerConfig())
        slave.group.slave_sync_master_addr = master.context.address
        await lock(caller, master, "a")
        await slave.slave.sync_all()
        return holder(slave), await lock(caller, slave, "b"), holder(master)

    assert execute_world(main).result == (None, (True, 0), "a")
