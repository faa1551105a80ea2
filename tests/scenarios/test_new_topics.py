"""A request that makes a topic is answered when the nameservers know it, or the time for that is over."""

import pytest

from emulator.testing import Stage, Trace, a_scenario, broker_groups, execute
from nodes.beliefs import BeliefKind
from nodes.config import BrokerConfig
from nodes.protocol import headers, headers_admin
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from support.asking_guest import Guest, a_guest

BROKER, NS = "broker-a", "ns-1"
REGISTER = int(RequestCode.REGISTER_BROKER)
TIMEOUT_MS = 4_000


async def send(guest: Guest) -> Command:
    return await guest.send(BROKER, topic="news")


async def create(guest: Guest) -> Command:
    header = headers_admin.CreateTopicRequestHeader("news", "TBW102", 4, 4, 6, "SINGLE_TAG")
    return await guest.ask(BROKER, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


async def beat(guest: Guest) -> Command:
    consumer = ConsumerData(
        "billing",
        ConsumeType.CONSUME_PASSIVELY,
        MessageModel.CLUSTERING,
        ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        (SubscriptionData("orders"),),
    )
    return await guest.ask(BROKER, RequestCode.HEART_BEAT, None, HeartbeatData("guest@1", (), (consumer,)))


def executed(makes, *, delay_ms: int = 0, is_cut: bool = False, again: bool = False) -> tuple[Trace, float, float]:
    """The run, when it was asked and when it was answered, in ms."""
    times = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.at_ms(5_000)
        if again:
            await makes(guest)
        if delay_ms:
            await stage.begin(f"delay {delay_ms} {BROKER} {NS}")
        if is_cut:
            await stage.begin(f"cut {BROKER} {NS}")
        times.append(stage.now_ms)
        assert (await makes(guest)).code == ResponseCode.SUCCESS
        times.append(stage.now_ms)

    broker = BrokerConfig(register_broker_timeout_mills=TIMEOUT_MS)
    return execute(a_scenario(brokers=broker_groups(config=broker)), script), *times


@pytest.mark.parametrize("makes", [send, create, beat])
def test_it_is_answered_after_the_nameserver_has_answered_the_registration(makes):
    trace, requested_ms, answered_ms = executed(makes, delay_ms=300)

    (known_ms,) = [row.at_ms for row in trace.select("rpc", code=REGISTER, dst=BROKER, after_ms=requested_ms)]
    assert known_ms >= requested_ms + 600
    assert known_ms <= answered_ms <= known_ms + 2


@pytest.mark.parametrize("makes", [send, create, beat])
def test_it_is_answered_when_the_time_of_the_registration_is_over(makes):
    _, requested_ms, answered_ms = executed(makes, is_cut=True)

    assert requested_ms + TIMEOUT_MS <= answered_ms <= requested_ms + TIMEOUT_MS + 10


@pytest.mark.parametrize("makes", [send, create, beat])
def test_for_a_topic_that_is_there_no_one_waits(makes):
    _, requested_ms, answered_ms = executed(makes, is_cut=True, again=True)

    assert answered_ms <= requested_ms + 10


def test_a_consumer_is_a_member_when_the_nameserver_knows_the_retry_topic_of_its_group():
    trace, requested_ms, _ = executed(beat, delay_ms=300)

    (members,) = trace.beliefs(BeliefKind.CONSUMER_IDS, "billing", node=BROKER)
    assert members.held == ["guest@1"]
    assert members.at_ms >= requested_ms + 600


def test_the_first_message_is_stored_when_the_nameserver_knows_its_topic():
    trace, requested_ms, _ = executed(send, delay_ms=300)

    (stored,) = trace.select("messages", event="stored", topic="news")
    assert stored.at_ms >= requested_ms + 600


def test_a_message_that_is_sent_back_first_is_answered_after_the_retry_topic_is_registered():
    times = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.send(BROKER)
        await stage.begin(f"delay 300 {BROKER} {NS}")
        times.append(stage.now_ms)
        header = headers.ConsumerSendMsgBackRequestHeader(0, "billing", 1)
        assert (await guest.ask(BROKER, RequestCode.CONSUMER_SEND_MSG_BACK, header)).code == ResponseCode.SUCCESS
        times.append(stage.now_ms)

    execute(a_scenario(), script)
    assert times[1] >= times[0] + 600
