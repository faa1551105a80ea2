"""A master that freezes and goes on: it comes back without asking anybody, into a group where another acts."""

import itertools

import pytest

from emulator.testing import Stage, execute
from nodes.config import BrokerConfig
from nodes.protocol.codes import RequestCode
from support.grouped import (
    BEFORE_MS,
    COPIED_MS,
    MASTER,
    S1,
    S2,
    a_group,
    believed,
    commit,
    offset_of,
    registered,
    requests,
    stages,
)

HA_INFO = RequestCode.EXCHANGE_BROKER_HA_INFO


def acting_at(trace, *names, after_ms=-1):
    """Which members ran the special services, after each change: (ms, names)."""
    changes = sorted(
        (at_ms, name, on) for name in names for at_ms, on in believed(trace, name, "special_service", after_ms=after_ms)
    )
    running, found = [], []
    for at_ms, name, on in changes:
        running = [other for other in running if other != name] + [name] * on
        found.append((at_ms, sorted(running)))
    return found


@pytest.mark.trap("Y8")
@pytest.mark.trap("Y9")
@pytest.mark.parametrize(("frozen_ms", "resumed_ms", "back_ms"), [(45_000, 63_000, 70_000), (30_000, 75_000, 75_000)])
def test_a_frozen_master_returns_with_its_next_registration_and_without_a_stage(frozen_ms, resumed_ms, back_ms):
    async def script(stage: Stage) -> None:
        await stage.at_ms(frozen_ms)
        await stage.suspend(MASTER, resumed_ms - frozen_ms)
        await stage.at_ms(80_000)

    trace = execute(a_group(), script)

    assert stages(trace, MASTER, after_ms=frozen_ms) == []
    assert trace.select("rpc", code=int(HA_INFO), after_ms=frozen_ms) == []
    (lost, ids), (back, again) = registered(trace, after_ms=frozen_ms)
    assert (ids, again) == (["1", "2"], ["0", "1", "2"])
    # Forgotten by the first scan more than 10 s after its last heartbeat.
    assert frozen_ms + 9_000 < lost <= frozen_ms + 15_010
    # Registrations are due at 10, 40, 70 s: what fell into the freeze is caught up at once.
    assert back_ms < back < back_ms + 10


@pytest.mark.trap("Y8")
def test_acting_slave_and_resumed_master_both_run_the_special_services_until_the_next_registration():
    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        await stage.suspend(MASTER, 15_000)
        await stage.at_ms(80_000)

    trace = execute(a_group(), script)

    assert believed(trace, MASTER, "special_service", after_ms=45_000) == []
    (on, _), (off, _) = believed(trace, S1, "special_service", after_ms=45_000)
    assert acting_at(trace, MASTER, S1)[-2:] == [(on, [MASTER, S1]), (off, [MASTER])]
    assert on < 60_000
    assert 70_000 < off < 70_010


@pytest.mark.trap("Y8")
def test_what_was_committed_to_the_acting_slave_stays_there_until_the_resumed_master_overwrites_it():
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(30_000)
        await commit(probe, MASTER, 100)
        await stage.at_ms(COPIED_MS)
        await stage.host(MASTER).suspend()
        await stage.for_ms(16_000)
        await commit(probe, S1, 200)
        await stage.at_ms(105_000)
        await stage.host(MASTER).resume()
        for instant_ms in (110_000, 200_000):
            await stage.at_ms(instant_ms)
            seen.append((offset_of(stage, MASTER), offset_of(stage, S1)))

    trace = execute(a_group(), script)

    assert registered(trace)[-1][1] == ["0", "1", "2"]
    assert seen == [(100, 200), (100, 100)]


@pytest.mark.trap("M55")
@pytest.mark.parametrize("delay_ms", [1, 50])
def test_a_restarted_master_acts_from_before_its_registration_until_its_slave_hears_of_it(delay_ms):
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(10_000)
        stage.start(MASTER)
        await stage.for_ms(30_000)

    trace = execute(a_group(delay_ms=delay_ms, slaves=1), script)

    ((on, running),) = believed(trace, MASTER, "special_service", after_ms=30_000)
    ((off, still),) = believed(trace, S1, "special_service", after_ms=30_000)
    assert (running, still) == (True, False)
    # One way to the nameserver, and one from there to the slave.
    assert off - on == 2 * delay_ms


@pytest.mark.trap("Y12")
def test_slaves_of_a_frozen_master_connect_to_it_again_and_again_where_no_one_acts():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.suspend(MASTER, 150_000)

    trace = execute(a_group(config=BrokerConfig()), script)

    # Without the acting flag the nameserver waits for two minutes, and 905 takes no master away.
    states = [
        (at_ms, value["state"])
        for at_ms, value in believed(trace, S1, "ha_state", after_ms=BEFORE_MS, until_ms=170_000)
    ]
    links = [at_ms for at_ms, state in states if state == "transfer"]
    cuts = [at_ms for at_ms, state in states if state == "ready"]
    assert len(links) >= 6
    assert [back - cut for cut, back in zip(cuts, links, strict=True)] == [2] * len(links)
    assert all(20_000 <= later - earlier < 20_020 for earlier, later in itertools.pairwise(cuts))


@pytest.mark.trap("Y14")
def test_a_cold_start_is_a_chain_of_takeovers():
    async def script(stage: Stage) -> None:
        for name in (MASTER, S1, S2):
            await stage.kill(name)
        await stage.at_ms(40_000)
        for name in (S2, S1, MASTER):
            stage.start(name)
            await stage.for_ms(4_000)
        await stage.for_ms(40_000)

    trace = execute(a_group(), script)

    since = acting_at(trace, MASTER, S1, S2, after_ms=40_000)
    (_, first), (_, still), (taken, no_node), (_, second), (both_ms, both), (done_ms, last) = since
    assert [first, still, no_node, second, both, last] == [[S2], [S2], [], [S1], [MASTER, S1], [MASTER]]
    # S2 is reported when S1 registers; S1 began below S2 and finds out with its next poll.
    s1_registered = requests(trace, S1, "ns-1", RequestCode.REGISTER_BROKER, after_ms=40_000)[0].at_ms
    assert taken == s1_registered + 3
    # The master first takes back what two empty slaves have.
    requested = [requests(trace, MASTER, name, HA_INFO, after_ms=40_000)[0].at_ms for name in (S1, S2)]
    assert requested[0] < requested[1] < both_ms
    assert done_ms - both_ms < 10
