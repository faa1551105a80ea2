"""Who a member takes for the lowest of its group, from whom it has that, and what follows."""

import pytest

from emulator.testing import Stage, execute
from nodes.protocol.codes import RequestCode
from support.grouped import (
    ACTING_WITHOUT_NOTICE,
    BEFORE_MS,
    COPIED_MS,
    MASTER,
    S1,
    S2,
    a_group,
    acting,
    believed,
    instants,
    lock,
    minimum,
    registered,
    requests,
    slow,
    unlock,
)

MEMBERS = RequestCode.GET_ROUTEINFO_BY_TOPIC
CHECK_POINT = RequestCode.GET_TIMER_CHECK_POINT
M = "127.1.2.1:10911"


def follows(trace, name):
    """The nameservers whose answers a member has followed."""
    return [f"ns-{chosen.split('.')[3].split(':')[0]}" for _, chosen in believed(trace, name, "nameserver")]


@pytest.mark.trap("M30")
@pytest.mark.parametrize("total_replicas", [1, 3])
def test_a_slave_that_came_online_without_isolation_goes_on_dialling_a_dead_master(total_replicas):
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(30_000)

    config = acting(total_replicas=total_replicas)
    trace = execute(a_group(nameserver=ACTING_WITHOUT_NOTICE, config=config), script)

    ((reported, ids),) = minimum(trace, S2, after_ms=BEFORE_MS)
    assert ids == 1
    assert reported < 21_100
    ((let_go, address),) = believed(trace, S2, "master_addr", after_ms=BEFORE_MS)
    assert address is None
    next_registration = trace.select("rpc", dst=S2, code=103, kind="response", after_ms=BEFORE_MS)[0].at_ms
    assert next_registration > 40_000
    dialled = trace.select("rpc", src=S2, dst=MASTER, event="refused", after_ms=reported, until_ms=let_go)
    if total_replicas == 1:
        # Its memory began with id 0 at no address: who went offline it cannot say.
        assert let_go == next_registration
        assert len(dialled) >= 10
    else:
        assert let_go == reported
        assert dialled == []


@pytest.mark.trap("M31")
def test_a_master_that_is_reported_about_a_lowest_slave_does_not_take_it_for_the_lowest():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.suspend(MASTER, 55_000)
        await stage.for_ms(10_000)

    trace = execute(a_group(), script)

    polled = [sorted(members) for _, members in believed(trace, MASTER, "member_group", after_ms=BEFORE_MS)]
    assert polled == [["1", "2"], ["0", "1", "2"]]
    assert [ids for _, ids in minimum(trace, S1, after_ms=BEFORE_MS)] == [1, 0]
    assert minimum(trace, MASTER, after_ms=BEFORE_MS) == []
    assert believed(trace, MASTER, "special_service", after_ms=BEFORE_MS) == []


@pytest.mark.trap("M33")
def test_a_slave_copies_from_its_returned_master_only_after_its_own_next_registration():
    async def script(stage: Stage) -> None:
        await stage.at_ms(COPIED_MS)
        await stage.kill(MASTER)
        await stage.for_ms(12_000)
        stage.start(MASTER)
        await stage.at_ms(170_000)

    trace = execute(a_group(slaves=1), script)

    (online, _), *_ = [known for known in minimum(trace, S1, after_ms=COPIED_MS + 10_000) if known[1] == 0]
    assert online < 90_000
    (known, address), *_ = believed(trace, S1, "master_addr", after_ms=online - 1)
    own = [at for at in instants(requests(trace, S1, "ns-1", RequestCode.REGISTER_BROKER)) if at > online]
    assert (known, address) == (own[0] + 2, M)
    assert known - online > 10_000
    requested = [at for at in instants(requests(trace, S1, MASTER, CHECK_POINT)) if at > COPIED_MS]
    assert known < requested[0] <= known + 3_000
    # More than 60 s after the last attempt, which there was without a master, too.
    copied = instants(requests(trace, S1, MASTER, RequestCode.GET_ALL_CONSUMER_OFFSET))
    assert len(copied) == 2
    assert 63_000 <= copied[1] - copied[0] < 63_010


@pytest.mark.trap("M34")
def test_the_quickest_of_two_nameservers_says_who_the_master_is_even_if_it_knows_none():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        stage.cut(MASTER, "ns-2")
        await stage.at_ms(600_000)

    trace = execute(a_group(nameservers=2, jitter_ms=5), script)

    assert registered(trace, "ns-1")[-1][1] == ["0", "1", "2"]
    assert registered(trace, "ns-2")[-1][1] == ["1", "2"]
    lines = [address for _, address in believed(trace, S1, "master_addr", after_ms=40_000)]
    assert len(lines) > 5
    assert {*lines} == {None, M}
    for at_ms, address in believed(trace, S1, "master_addr", after_ms=40_000):
        (first, *_) = trace.select("rpc", dst=S1, code=103, kind="response", after_ms=at_ms - 20, until_ms=at_ms)
        assert first.src == ("ns-2" if address is None else "ns-1")


@pytest.mark.trap("M40")
@pytest.mark.parametrize(("restarts", "locked"), [(False, True), (True, False)], ids=["error", "empty answer"])
def test_a_poll_without_answer_keeps_the_members_and_one_without_group_wipes_them(restarts, locked):
    locks = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        if restarts:
            await stage.kill("ns-1")
            await stage.for_ms(1_000)
            stage.start("ns-1")
            await stage.at_ms(26_000)
        else:
            stage.cut(MASTER, "ns-1")
            await stage.at_ms(26_000)
        locks.append(await lock(probe, MASTER, "c1"))
        await unlock(probe, MASTER, "c1")
        await stage.for_ms(100)
        locks.append(await lock(probe, MASTER, "c2", only_this_broker=True))

    trace = execute(a_group(config=acting(lock_in_strict_mode=True)), script)

    views = [view for _, view in believed(trace, MASTER, "member_group", after_ms=BEFORE_MS)]
    assert views == ([None] if restarts else [])
    timed_out = trace.select("rpc", src=MASTER, code=int(MEMBERS), event="timed_out", after_ms=BEFORE_MS)
    assert bool(timed_out) is not restarts
    # With no member in sight a majority of two cannot be had, and what was locked here is not given back.
    assert locks == [locked, locked]
    requested = requests(trace, MASTER, S1, RequestCode.LOCK_BATCH_MQ)
    assert bool(requested) is locked
    unlocked = requests(trace, MASTER, S1, RequestCode.UNLOCK_BATCH_MQ)
    assert bool(unlocked) is locked


@pytest.mark.trap("M27")
def test_two_slaves_that_follow_different_nameservers_both_act():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        stage.cut(S1, "ns-2")
        await stage.for_ms(20_000)
        await stage.kill(MASTER)
        await stage.for_ms(60_000)

    trace = execute(a_group(nameservers=2, nameserver=ACTING_WITHOUT_NOTICE, seed=2), script)

    assert [follows(trace, name) for name in (S1, S2)] == [["ns-1"], ["ns-2"]]
    assert registered(trace, "ns-1")[-1][1] == ["1", "2"]
    assert registered(trace, "ns-2")[-1][1] == ["2"]
    assert [minimum(trace, name)[-1][1] for name in (S1, S2)] == [1, 2]
    acting_since = [believed(trace, name, "special_service")[-1] for name in (S1, S2)]
    assert [running for _, running in acting_since] == [True, True]
    assert max(at_ms for at_ms, _ in acting_since) < 41_100


@pytest.mark.trap("Y10")
def test_right_after_a_return_the_minimum_flaps_where_one_nameserver_knows_it_later_than_the_other():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(10_000)
        stage.start(MASTER)
        await stage.for_ms(1_000)
        slow(stage, MASTER, "ns-2", 1_500)
        await stage.for_ms(30_000)

    trace = execute(a_group(nameservers=2, seed=1), script)

    assert follows(trace, S1) == ["ns-2"]
    (first, ids), *_ = registered(trace, "ns-1", after_ms=30_000)
    (second, _), *_ = registered(trace, "ns-2", after_ms=30_000)
    assert (ids, second) == (["0", "1", "2"], first + 1_498)
    # VerbOutput by the one, corrected by the poll of the other, and reported again.
    (reported, _), (polled, _), (again, _) = seen = minimum(trace, S1, after_ms=30_000)
    assert [ids for _, ids in seen] == [0, 1, 0]
    assert (reported, again) == (first + 1, second + 1)
    assert polled - reported < 1_000
    services = believed(trace, S1, "special_service", after_ms=30_000)
    assert services == [(reported, False), (polled, True), (again, False)]
