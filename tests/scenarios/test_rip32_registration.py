"""When members of a group register, and what they do with the answers."""

import pytest

from emulator.testing import Stage, execute
from nodes.config import BrokerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import TopicConfig
from support.grouped import (
    BEFORE_MS,
    MASTER,
    S1,
    S2,
    a_group,
    acting,
    believed,
    instants,
    minimum,
    registered,
    requests,
    slow,
)

REGISTER = RequestCode.REGISTER_BROKER
HA_INFO = RequestCode.EXCHANGE_BROKER_HA_INFO


def create_topic(stage, name, topic):
    """What a broker does that creates a topic for whoever needs it."""
    broker = stage.node(name)
    broker.context.topics.update_topic_config(TopicConfig(topic), now_ms=broker.context.host.clock.now_ms())
    broker.parts.group.registration.register_increment((topic,))


@pytest.mark.trap("Y14")
def test_a_topic_created_on_an_isolated_master_is_refused_and_becomes_visible_with_its_master():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        stage.start(MASTER)
        await stage.for_ms(2_000)
        create_topic(stage, MASTER, "new")
        await stage.for_ms(20_000)

    trace = execute(a_group(slaves=1), script)

    refused, accepted, *_ = trace.select("rpc", dst=MASTER, code=int(REGISTER), kind="response", after_ms=BEFORE_MS)
    assert (refused.at_ms, refused.status, accepted.status) == (23_002, 1, 0)
    (visible, *_) = trace.select("beliefs", node="ns-1", kind="route", subject="new")
    (online, _), *_ = believed(trace, MASTER, "special_service", after_ms=BEFORE_MS)
    assert visible.at_ms == online + 1


def test_a_topic_that_a_slave_makes_known_also_sends_it_who_the_master_is():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        stage.start(MASTER)
        await stage.at_ms(34_000)
        create_topic(stage, S1, "new")
        await stage.for_ms(1_000)

    trace = execute(a_group(slaves=1), script)

    assert minimum(trace, S1)[-1][1] == 0
    ((known, address),) = believed(trace, S1, "master_addr", after_ms=21_000)
    assert (known, address) == (34_002, "127.1.2.1:10911")


def test_no_registration_comes_between_the_farewells():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.power_off("ns-2")
        await stage.at_ms(39_000)
        await stage.stop(MASTER)
        await stage.for_ms(1_000)

    # The farewell to a nameserver without power takes 3 s, and the buffer of pops rests for 2 s more; at 40 s a
    # registration is due.
    trace = execute(a_group(nameservers=2, slaves=1), script)

    assert trace.select("lifecycle", node=MASTER, event="stopped")[0].at_ms == 44_000
    assert [at_ms for at_ms in instants(requests(trace, MASTER, "ns-1", REGISTER)) if at_ms > 39_000] == []
    assert len(requests(trace, MASTER, "ns-1", RequestCode.UNREGISTER_BROKER)) == 1


def test_the_first_registration_of_a_broker_that_is_not_isolated_is_forced():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.power_off(MASTER)
        await stage.for_ms(1_000)
        stage.start(MASTER)
        await stage.for_ms(25_000)

    # The nameserver has not yet noticed: it holds the very topics that the new process would send.
    trace = execute(a_group(slaves=0, config=acting(total_replicas=1, force_register=False)), script)

    assert [round(at_ms, -3) for at_ms in instants(requests(trace, MASTER, "ns-1", REGISTER))] == [0, 21_000]


def test_the_members_are_known_while_another_thread_decides_who_acts():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        stage.start(MASTER)
        while stage.node(S1).parts.group.members.min_broker_id != 0:
            await stage.for_ms(1)
        slow(stage, MASTER, S1, 2_500)
        await stage.kill(S2)
        await stage.for_ms(5_000)

    # With this option a slave that hears of its master asks it for its flushed offset, and holds the lock meanwhile.
    trace = execute(a_group(config=acting(sync_master_flush_offset_when_startup=True)), script)

    reported, lowest = minimum(trace, S1)[-1]
    assert lowest == 0
    answers = trace.select("rpc", src=MASTER, dst=S1, code=int(HA_INFO), kind="response", after_ms=reported)
    assert [row.at_ms > reported + 2_500 for row in answers] == [True]
    ((seen, members),) = believed(trace, S1, "member_group", after_ms=reported)
    assert sorted(members) == ["0", "1"]
    assert seen < reported + 1_100


@pytest.mark.trap("M37")
def test_every_nameserver_refuses_a_compressed_registration_and_its_broker_is_in_no_route():
    trace = execute(a_group(nameservers=2, slaves=0, config=BrokerConfig(compressed_register=True)), for_ms=50_000)

    for nameserver in ("ns-1", "ns-2"):
        answers = trace.select("rpc", src=nameserver, dst=MASTER, code=int(REGISTER), kind="response")
        assert [row.status for row in answers] == [1, 1, 1]
        assert registered(trace, nameserver) == []
    assert trace.select("beliefs", kind="route") == []


@pytest.mark.trap("M52")
@pytest.mark.parametrize(
    ("address", "links"),
    [("", ["ready", "transfer"]), ("12345", ["ready", "transfer"]), ("127.1.2.1:10912", ["ready"])],
    ids=["none", "too short to be one", "static"],
)
def test_a_slave_with_a_static_ha_address_never_connects_to_it(address, links):
    config = BrokerConfig(ha_master_address=address)
    trace = execute(a_group(slaves=1, config=BrokerConfig(), of_slaves=config), for_ms=60_000)

    # Each registration names the master; its address is even the one that was configured.
    named = trace.select("rpc", src="ns-1", dst=S1, code=int(REGISTER), kind="response")
    assert len(named) == 3
    assert believed(trace, S1, "master_addr")[-1][1] == "127.1.2.1:10911"
    assert [value["state"] for _, value in believed(trace, S1, "ha_state")] == links


def test_where_slaves_may_act_the_address_comes_from_elsewhere_and_a_static_one_does_no_harm():
    config = acting(ha_master_address="127.1.2.9:10912")
    trace = execute(a_group(slaves=1, config=acting(), of_slaves=config), for_ms=BEFORE_MS)

    assert [value["state"] for _, value in believed(trace, S1, "ha_state")] == ["ready", "transfer"]
