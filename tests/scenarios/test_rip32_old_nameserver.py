"""A group with RIP-32 whose nameserver is of 4.x: what works, and what becomes of brokers that count on a newer one."""

import json

import attrs

from emulator.testing import Stage, execute
from nodes.protocol.codes import RequestCode
from support.grouped import (
    ACTING,
    BEFORE_MS,
    COPIED_MS,
    MASTER,
    S1,
    a_group,
    acting,
    believed,
    commit,
    instants,
    offset_of,
    registered,
    requests,
    stages,
)

OLD = attrs.evolve(ACTING, knows_member_groups=False)
MEMBERS = RequestCode.GET_BROKER_MEMBER_GROUP
HEARTBEAT = RequestCode.BROKER_HEARTBEAT


def test_a_compatible_group_knows_its_members_and_its_returning_master_takes_back_what_it_missed():
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(COPIED_MS)
        await stage.kill(MASTER)
        await stage.for_ms(5_000)
        await commit(probe, S1, 200)
        await stage.at_ms(80_000)
        stage.start(MASTER)
        await stage.for_ms(30_000)
        seen.append(offset_of(stage, MASTER))

    trace = execute(a_group(nameserver=OLD, slaves=1), script)

    # No 905 comes: the slave sees it at its next poll.
    (off, on, off_again) = believed(trace, S1, "special_service")
    assert [off[1], on[1], off_again[1]] == [False, True, False]
    assert 65_001 < on[0] < 66_100
    assert requests(trace, "ns-1", S1, RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE) == []
    assert seen == [200]
    assert stages(trace, MASTER)[-1][1] == "online"


def test_clients_see_no_acting_master_and_the_queues_stay_writeable():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(40_000)

    trace = execute(a_group(nameserver=OLD, slaves=1), script)

    rows = trace.select("beliefs", node="ns-1", kind="route", subject="orders")
    assert [json.loads(row.value)["ba"] for row in rows[-2:]] == [
        {"addrs": {"0": "127.1.2.1:10911", "1": "127.1.2.2:10911"}, "queues": [4, 4, 6]},
        {"addrs": {"1": "127.1.2.2:10911"}, "queues": [4, 4, 6]},
    ]


def test_a_silent_broker_is_missed_only_120_s_after_its_last_heartbeat():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.power_off(MASTER)
        await stage.for_ms(130_000)

    trace = execute(a_group(nameserver=OLD, slaves=1), script)

    last = instants(requests(trace, MASTER, "ns-1", RequestCode.QUERY_DATA_VERSION))[-1]
    (missed, ids) = registered(trace)[-1]
    assert ids == ["1"]
    assert last + 120_000 < missed <= last + 125_005


def test_without_compatibility_an_isolated_broker_waits_for_an_answer_for_ever():
    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)

    config = acting(compatible_with_old_name_srv=False)
    trace = execute(a_group(nameserver=OLD, slaves=1, config=config), script)

    # 4.x does not answer a code that it does not know: each attempt costs its 3 s, and then a second's rest.
    requested = instants(requests(trace, MASTER, "ns-1", MEMBERS))
    answers = trace.select("rpc", src="ns-1", dst=MASTER, code=int(MEMBERS), kind="response")
    assert len(requested) > 20
    assert answers == []
    assert registered(trace) == []
    assert [stages(trace, name)[-1][1] for name in (MASTER, S1)] == ["fetching member group"] * 2


def test_without_compatibility_every_poll_costs_a_broker_its_connection_and_so_its_registration():
    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)

    config = acting(compatible_with_old_name_srv=False, total_replicas=1)
    trace = execute(a_group(nameserver=OLD, slaves=0, config=config), script)

    # The call that timed out closes the connection, which is the one that the broker registered over.
    assert registered(trace) == [
        (3, ["0"]),
        (4_005, []),
        (10_007, ["0"]),
        (13_005, []),
        (40_007, ["0"]),
        (43_005, []),
    ]
    assert requests(trace, MASTER, "ns-1", HEARTBEAT) != []
