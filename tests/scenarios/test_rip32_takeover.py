"""What a take-over means for those who use a group: where they pull, who holds locks, whom a restarted broker asks."""

import itertools

import pytest

from emulator.machine.host import EmulatedHost
from emulator.testing import Stage, execute
from nodes.broker.broker import Broker
from nodes.broker.broker_setup import BrokerSetup
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from support.grouped import (
    BEFORE_MS,
    MASTER,
    S1,
    a_group,
    acting,
    believed,
    instants,
    lock,
    minimum,
    requests,
    stages,
)

PULL = RequestCode.PULL_MESSAGE
HA_INFO = RequestCode.EXCHANGE_BROKER_HA_INFO


@pytest.mark.trap("Y11")
@pytest.mark.trap("X22")
@pytest.mark.trap("M32")
def test_a_slave_sends_no_one_back_to_its_returned_master_and_a_consumer_stays_until_its_route_poll():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.at_ms(32_000)
        stage.start(MASTER)
        await stage.at_ms(80_000)

    trace = execute(a_group(slaves=1, consumers=1, rate_per_s=20), script)

    (knows, ids) = minimum(trace, S1)[-1]
    assert ids == 0
    routes = [at_ms for at_ms, _ in believed(trace, "c1", "route", after_ms=BEFORE_MS)]
    (back, *_) = [at_ms for at_ms in routes if at_ms > knows]
    assert back - knows > 10_000
    meanwhile = {"after_ms": knows + 100, "until_ms": back}
    assert len(requests(trace, "c1", S1, PULL, **meanwhile)) > 50
    assert requests(trace, "c1", MASTER, PULL, **meanwhile) == []
    assert len(requests(trace, "c1", S1, RequestCode.UPDATE_CONSUMER_OFFSET, **meanwhile)) > 0
    assert len(requests(trace, "c1", MASTER, PULL, after_ms=back + 1_000)) > 50
    assert requests(trace, "c1", S1, PULL, after_ms=back + 16_000) == []


@pytest.mark.trap("C29")
@pytest.mark.parametrize("slave_read_enable", [True, False])
def test_an_acting_slave_refuses_pulls_unless_slaves_may_answer_them(slave_read_enable):
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(60_000)

    config = acting(slave_read_enable=slave_read_enable)
    trace = execute(a_group(slaves=1, config=config, consumers=1), script)

    assert believed(trace, S1, "special_service")[-1][1] is True
    # Before its first heartbeat to the slave the consumer is unknown there.
    answers = {row.status for row in trace.select("rpc", src=S1, code=int(PULL), kind="response", after_ms=32_000)}
    assert answers == ({19} if slave_read_enable else {2})


def test_the_acting_slave_gives_away_what_is_still_locked_at_the_frozen_master():
    locks = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        locks.append(await lock(probe, MASTER, "old"))
        locks.append(await lock(probe, MASTER, "new"))
        await stage.host(MASTER).suspend()
        await stage.for_ms(16_000)
        locks.append(await lock(probe, S1, "new"))
        await stage.host(MASTER).resume()
        await stage.for_ms(100)
        locks.append(await lock(probe, MASTER, "old"))

    trace = execute(a_group(), script)

    assert minimum(trace, S1)[-1][1] == 1
    assert locks == [True, False, True, True]
    held = [believed(trace, name, "queue_locks")[-1][1] for name in (MASTER, S1)]
    assert held == [{"orders@ba@0": "old"}, {"orders@ba@0": "new"}]


@pytest.mark.trap("M53")
def test_a_slave_that_asks_a_slave_for_its_ha_address_fails_every_second():
    def factory(host: Host) -> Broker:
        return Broker(host, acting(), BrokerSetup("DefaultCluster", "ba", 1, ("127.1.1.1:9876",)))

    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        master = stage.host(MASTER)
        await master.power_off()
        await stage.for_ms(1_000)
        # On the machine of the master a slave is started; for the nameserver the master is still there.
        again = EmulatedHost(stage.world, 91, "reborn", "broker", master.ip, "", factory)
        again.start()
        await stage.for_ms(30_000)

    trace = execute(a_group(slaves=0, config=acting()), script)

    requested = instants(requests(trace, "reborn", "reborn", HA_INFO))
    assert len(requested) >= 8
    assert all(1_000 <= later - earlier < 1_010 for earlier, later in itertools.pairwise(requested))
    answers = trace.select("rpc", src="reborn", dst="reborn", code=int(HA_INFO), kind="response")
    assert [row.status for row in answers] == [0] * len(requested)
    # It comes online when the nameserver has forgotten the master.
    assert stages(trace, "reborn")[-1][1] == "online"
    assert stages(trace, "reborn")[-1][0] > requested[-1]
