"""How members of a group come online: what a returning master takes back, and what keeps it from doing so."""

import itertools

import attrs
import pytest

from emulator.testing import Stage, execute
from nodes.config import BrokerConfig
from nodes.protocol.codes import RequestCode
from support.grouped import (
    ACTING,
    BEFORE_MS,
    COPIED_MS,
    MASTER,
    S1,
    S2,
    a_group,
    acting,
    believed,
    commit,
    instants,
    minimum,
    offset_of,
    registered,
    requests,
    stages,
)

HA_INFO = RequestCode.EXCHANGE_BROKER_HA_INFO
OFFSETS = RequestCode.GET_ALL_CONSUMER_OFFSET
CHECK_POINT = RequestCode.GET_TIMER_CHECK_POINT


def taken_back(trace, member, **between):
    """When a master asked a member for its offsets."""
    return instants(requests(trace, MASTER, member, OFFSETS, **between))


@pytest.mark.parametrize("member", [MASTER, S1, S2])
@pytest.mark.trap("M35")
def test_special_services_start_before_the_registration_and_heartbeats_only_after_it(member):
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)

    trace = execute(a_group(delay_ms=40), script)

    (special, _), *_ = believed(trace, member, "special_service")
    registration = requests(trace, member, "ns-1", RequestCode.REGISTER_BROKER)[0]
    answered = trace.select("rpc", dst=member, code=103, kind="response")[0].at_ms
    heartbeats = instants(requests(trace, member, "ns-1", RequestCode.QUERY_DATA_VERSION))
    online = stages(trace, member)[-1]
    assert special == registration.sent_ms
    assert online == (answered, "online")
    assert special < registration.at_ms < answered < heartbeats[0]


@pytest.mark.trap("M26")
@pytest.mark.parametrize(("waits", "requested"), [(True, []), (False, [S1, S2])])
def test_a_nameserver_that_refuses_to_answer_makes_a_returning_master_believe_that_it_is_alone(waits, requested):
    nameserver = attrs.evolve(ACTING, need_wait_for_service=waits)

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        await stage.kill("ns-1")
        await stage.for_ms(1_000)
        stage.start("ns-1")
        await stage.at_ms(75_000)
        stage.start(MASTER)
        await stage.for_ms(25_000)

    trace = execute(a_group(nameserver=nameserver), script)

    # Both slaves are known again before their master asks.
    assert (70_503, ["1"]) in registered(trace) or (70_501, ["1"]) in registered(trace)
    assert [row.dst for row in trace.select("rpc", src=MASTER, code=int(OFFSETS), kind="request")] == requested
    online = [at_ms for at_ms, stage in stages(trace, MASTER, after_ms=75_000) if stage == "online"]
    assert (online == [75_006]) is waits
    assert len(online) == 1


@pytest.mark.trap("Y1")
@pytest.mark.trap("M29")
@pytest.mark.trap("C31")
@pytest.mark.parametrize(
    ("config", "isolated", "left"),
    [(BrokerConfig(), False, 100), (acting(total_replicas=1), False, 100), (acting(total_replicas=3), True, 200)],
    ids=["plain", "acting, one replica", "acting, three replicas"],
)
def test_a_master_of_one_replica_returns_at_once_and_with_its_old_offsets(config, isolated, left):
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(30_000)
        await commit(probe, MASTER, 100)
        await stage.at_ms(COPIED_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        await commit(probe, S1, 200)
        await stage.at_ms(80_000)
        stage.start(MASTER)
        await stage.for_ms(20_000)
        seen.append(offset_of(stage, MASTER))
        await stage.at_ms(200_000)
        seen.append(offset_of(stage, S1))

    trace = execute(a_group(slaves=1, config=config), script)

    assert seen == [left, left]
    # The route has the master back with its first registration, at once or after what it takes back.
    (back, _), *_ = registered(trace, after_ms=80_000)
    assert (back == 80_003) is not isolated
    assert bool(stages(trace, MASTER)) is isolated
    assert bool(requests(trace, MASTER, S1, HA_INFO)) is isolated


@pytest.mark.trap("Y7")
def test_of_two_slaves_at_the_masters_version_the_later_stale_one_wins_and_offsets_are_rolled_back():
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(30_000)
        await commit(probe, MASTER, 232)
        await stage.at_ms(COPIED_MS)
        await commit(probe, MASTER, 500)
        # The file with the offsets is written every 5 s.
        await stage.for_ms(6_000)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        await commit(probe, S1, 2_408)
        await stage.at_ms(90_000)
        stage.start(MASTER)
        await stage.for_ms(1)
        for _ in range(200):
            offset = offset_of(stage, MASTER)
            if not seen or seen[-1] != offset:
                seen.append(offset)
            await stage.for_ms(100)

    trace = execute(a_group(), script)

    assert seen == [500, 2_408, 232]
    first, second = taken_back(trace, S1), taken_back(trace, S2)
    assert len(first) == len(second) == 1
    assert first < second
    versions = believed(trace, MASTER, "data_version", after_ms=90_001)
    assert [value for _, value in versions if value[2] > 1] == []


@pytest.mark.trap("M43")
def test_the_lowest_slave_that_restarts_takes_over_in_two_steps_and_takes_nothing_back():
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        await stage.kill(S1)
        await stage.for_ms(1_000)
        await commit(probe, S2, 200)
        await stage.at_ms(30_000)
        stage.start(S1)
        await stage.for_ms(5_000)
        seen.extend((offset_of(stage, S1), offset_of(stage, S2)))

    trace = execute(a_group(), script)

    assert [value for _, value in minimum(trace, S1, after_ms=30_000)] == [2, 1]
    (below, _), (above, _) = minimum(trace, S1, after_ms=30_000)
    assert above == 31_002 > below + 900
    assert believed(trace, S1, "special_service", after_ms=30_000) == [(below, False), (above, True)]
    # S2 is reported at once that it is no longer the lowest: for a second no one acts.
    ((off, running),) = believed(trace, S2, "special_service", after_ms=30_000)
    assert not running
    assert off < above
    assert [requests(trace, S1, S2, code) for code in (HA_INFO, OFFSETS, CHECK_POINT)] == [[], [], []]
    assert seen == [-1, 200]


def test_a_slave_that_is_still_listed_itself_begins_below_the_next_one_all_the_same():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        await stage.power_off(S1)
        await stage.for_ms(1_000)
        stage.start(S1)
        await stage.for_ms(3_000)

    trace = execute(a_group(), script)

    assert registered(trace)[-1] == (20_001, ["1", "2"])
    assert [ids for _, ids in minimum(trace, S1, after_ms=22_000)] == [2, 1]
    assert [acts for _, acts in believed(trace, S1, "special_service", after_ms=22_000)] == [False, True]


@pytest.mark.trap("M44")
@pytest.mark.parametrize(("s1_leaves", "requested_again"), [(True, False), (False, True)])
def test_a_member_takes_the_place_of_one_that_was_done_and_is_passed_over(s1_leaves, requested_again):
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        stage.cut(MASTER, S2)
        stage.start(MASTER)
        await stage.at_ms(40_000)
        if s1_leaves:
            await stage.kill(S1)
        await stage.for_ms(1_000)
        stage.heal(MASTER, S2)
        await stage.for_ms(20_000)

    trace = execute(a_group(), script)

    assert len(taken_back(trace, S1)) == 1
    assert trace.select("rpc", src=MASTER, dst=S2, event="connect_lost", until_ms=41_000) != []
    assert bool(requests(trace, MASTER, S2, HA_INFO)) is requested_again
    assert bool(taken_back(trace, S2)) is requested_again
    assert stages(trace, MASTER)[-1][1] == "online"


@pytest.mark.trap("M45")
def test_a_master_waits_for_itself_until_the_nameserver_has_forgotten_its_former_life():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.power_off(MASTER)
        await stage.for_ms(1_000)
        stage.start(MASTER)
        await stage.for_ms(40_000)

    trace = execute(a_group(), script)

    to_itself = requests(trace, MASTER, MASTER, HA_INFO)
    assert instants(to_itself) == [21_006]
    # Its last heartbeat was at 19 s; the scan that finds it out of time comes at 30 s.
    (forgotten, ids), *_ = registered(trace, after_ms=BEFORE_MS)
    assert (forgotten, ids) == (30_005, ["1", "2"])
    waits = [stage for _, stage in stages(trace, MASTER, after_ms=20_999)]
    assert waits[1:5] == [
        "fetching member group",
        "exchanging HA info with 127.1.2.1:10911",
        "waiting for HA transfer with 127.1.2.1",
        "fetching member group",
    ]
    first_to_s1 = instants(requests(trace, MASTER, S1, HA_INFO))[0]
    assert 31_000 < first_to_s1 < 34_000
    assert len(taken_back(trace, S1)) == len(taken_back(trace, S2)) == 1


@pytest.mark.trap("M50")
def test_a_member_without_timer_check_point_keeps_its_master_offline_for_ever():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        stage.start(MASTER)
        await stage.for_ms(120_000)

    trace = execute(a_group(slaves=1, of_slaves=acting(timer_wheel_enable=False)), script)

    refused = trace.select("rpc", dst=MASTER, code=int(CHECK_POINT), kind="response")
    assert [row.status for row in refused] == [1] * len(refused)
    # Each round: 906, the next look at the HA link (once a second), 45, 43, 60, and a second's rest.
    rounds = [requests(trace, MASTER, S1, code, after_ms=60_000) for code in (HA_INFO, OFFSETS, CHECK_POINT)]
    assert [len(rows) for rows in rounds] == [40, 41, 41]
    assert {b - a for a, b in itertools.pairwise(instants(rounds[0]))} == {2_000}
    assert registered(trace)[-1][1] == ["1"]
    assert "online" not in [stage for _, stage in stages(trace, MASTER, after_ms=BEFORE_MS)]


def test_a_master_that_skips_pre_online_returns_at_once_and_its_slaves_copy_its_old_offsets():
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(30_000)
        await commit(probe, MASTER, 100)
        await stage.at_ms(COPIED_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        await commit(probe, S1, 200)
        await stage.at_ms(80_000)
        stage.start(MASTER)
        await stage.at_ms(200_000)
        seen.extend((offset_of(stage, MASTER), offset_of(stage, S1)))

    trace = execute(a_group(slaves=1, config=acting(skip_pre_online=True)), script)

    assert seen == [100, 100]
    assert stages(trace, MASTER) == stages(trace, S1) == []
    assert trace.select("rpc", code=int(HA_INFO), kind="request", src=MASTER) == []
    (back, _), *_ = registered(trace, after_ms=80_000)
    ((acts, running),) = believed(trace, MASTER, "special_service", after_ms=79_999)
    assert running
    assert acts <= back <= 80_005
    # It came online without a look at the group, and so it remembers no address of the lowest member.
    assert believed(trace, S1, "min_broker")[0][1] == {"id": 0, "address": None}
