"""Delayed messages: on a master, on a slave that acts for it, and on their way to another broker."""

from itertools import pairwise

import pytest

from emulator.spec.model.scenario import TopicSpec
from emulator.testing import Caller, Stage, Trace, a_scenario, execute
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.properties import properties_to_text
from support.grouped import BEFORE_MS, COPIED_MS, MASTER, OTHER, S1, requests, two_groups

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
FIVE_S, TEN_S, THIRTY_S = 2, 3, 4
"""Delay levels as shipped."""


async def send(probe: Caller, node: str, level: int, topic: str = "orders") -> None:
    """Send a message with a delay to queue 0."""
    header = headers.SendMessageRequestHeader(
        "pg", topic, "TBW102", 4, 0, 0, 0, 0, properties_to_text({"DELAY": str(level)})
    )
    assert (await probe.ask(node, RequestCode.SEND_MESSAGE, header)).code == ResponseCode.SUCCESS


def delivered(trace: Trace, node: str, topic: str = "orders", **between: float) -> list[float]:
    """When a broker stored messages of a topic, in ms."""
    return [row.at_ms for row in trace.select("messages", node=node, event="stored", topic=topic, **between)]


def tries(trace: Trace, node: str, **between: float) -> list[float]:
    """When a broker tried to deliver a message that was due."""
    return [row.at_ms for row in trace.select("causes", node=node, name="DeliverDelayedMessageTimerTask", **between)]


def test_a_delayed_message_reaches_its_topic_when_its_level_is_over() -> None:
    sent = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(12_345)
        sent.append(stage.now_ms)
        await send(probe, "broker-a", TEN_S)
        await stage.for_ms(20_000)

    trace = execute(a_scenario(), script)
    assert len(delivered(trace, "broker-a", SCHEDULE)) == 1
    (instant,) = delivered(trace, "broker-a")
    assert 10_000 <= instant - sent[0] <= 10_110


def test_messages_of_a_level_keep_their_order_and_levels_do_not_wait_for_each_other() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        for level in (TEN_S, FIVE_S, TEN_S):
            await send(probe, "broker-a", level)
        await stage.for_ms(20_000)

    trace = execute(a_scenario(), script)
    assert len(delivered(trace, "broker-a", until_ms=8_000)) == 1
    assert len(delivered(trace, "broker-a", until_ms=13_000)) == 3


def test_a_broker_that_starts_again_goes_on_where_its_file_says() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await send(probe, "broker-a", FIVE_S)
        await stage.for_ms(25_000)  # delivered, and the offset written
        await send(probe, "broker-a", FIVE_S)
        await stage.kill("broker-a")
        await stage.for_ms(10_000)
        stage.start("broker-a")
        await stage.for_ms(10_000)

    trace = execute(a_scenario(), script)
    assert len(delivered(trace, "broker-a")) == 2


@pytest.mark.trap("M57")
@pytest.mark.trap("C40")
def test_an_acting_slave_without_remote_escape_tries_ten_times_a_second_and_never_succeeds() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        await send(probe, MASTER, TEN_S)
        await stage.for_ms(1_000)
        await stage.kill(MASTER)
        await stage.for_ms(60_000)

    trace = execute(two_groups(), script)
    due_ms = BEFORE_MS + 11_000
    assert delivered(trace, S1) == delivered(trace, OTHER) == delivered(trace, MASTER) == []
    attempts = tries(trace, S1, after_ms=due_ms, until_ms=due_ms + 30_000)
    assert len(attempts) == 300
    assert not tries(trace, "ba-s2")
    assert not requests(trace, S1, OTHER, RequestCode.SEND_MESSAGE_V2)


def test_an_acting_slave_with_remote_escape_hands_a_message_that_is_due_to_another_broker() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        await send(probe, MASTER, TEN_S)
        await stage.for_ms(1_000)
        await stage.kill(MASTER)
        await stage.for_ms(30_000)

    trace = execute(two_groups(enable_remote_escape=True), script)
    (instant,) = delivered(trace, OTHER)
    assert 10_000 <= instant - BEFORE_MS <= 10_200


@pytest.mark.trap("M55")
def test_a_message_due_while_its_master_is_frozen_is_delivered_by_the_acting_slave_and_by_the_master() -> None:
    frozen_ms = COPIED_MS + 1_000

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(COPIED_MS)
        await send(probe, MASTER, THIRTY_S)
        await stage.at_ms(frozen_ms)
        await stage.suspend(MASTER, 35_000)
        await stage.for_ms(5_000)

    trace = execute(two_groups(enable_remote_escape=True), script)
    (by_the_slave,) = delivered(trace, OTHER)
    (by_the_master,) = delivered(trace, MASTER)
    assert 30_000 <= by_the_slave - COPIED_MS <= 30_200
    assert 0 <= by_the_master - (frozen_ms + 35_000) <= 100


@pytest.mark.trap("M59")
def test_an_acting_slave_sends_to_a_dead_broker_as_long_as_its_route_is_old() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        for level in (FIVE_S, TEN_S):
            await send(probe, MASTER, level)
        await stage.for_ms(1_000)
        await stage.kill(MASTER)
        await stage.at_ms(BEFORE_MS + 8_000)  # the first one has escaped, and with it the route come
        await stage.power_off(OTHER)
        await stage.for_ms(60_000)

    trace = execute(two_groups(enable_remote_escape=True), script)
    dead_ms = BEFORE_MS + 8_000
    assert len(delivered(trace, OTHER)) == 1
    attempts = tries(trace, S1, after_ms=dead_ms)
    first, second, third = attempts[:3]
    # Each try waits out the 3 s of a send, and the pause.
    assert second - first == pytest.approx(3_100, abs=10)
    assert third - second == pytest.approx(3_100, abs=10)
    # 15 s until the nameserver forgets the broker, 30 s until the route is asked for again, 3 s of the last send.
    refreshed = [instant for instant in attempts if instant > dead_ms + 48_000]
    assert max(later - earlier for earlier, later in pairwise(refreshed)) < 200


@pytest.mark.trap("M60")
def test_an_escape_to_a_broker_whose_address_went_away_ends_at_a_nameserver() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        await send(probe, MASTER, FIVE_S)
        await send(probe, MASTER, TEN_S)
        await stage.for_ms(2_000)
        await send(probe, MASTER, FIVE_S, "invoices")
        await stage.for_ms(500)  # replicated
        await stage.kill(MASTER)
        await stage.at_ms(BEFORE_MS + 6_000)  # the route of orders is known, with the master of bb
        await stage.kill(OTHER)  # the route of invoices, asked for a second later, shows its slave alone
        await stage.for_ms(8_000)

    topics = (TopicSpec("invoices", ("ba", OTHER), 1),)
    trace = execute(two_groups(topics=topics, enable_remote_escape=True), script)
    assert requests(trace, S1, "ns-1", RequestCode.SEND_MESSAGE_V2, after_ms=BEFORE_MS + 10_000)
    code = int(RequestCode.SEND_MESSAGE_V2)
    answers = trace.select("rpc", src="ns-1", dst=S1, code=code, kind="response", event="delivered")
    assert {row.status for row in answers} == {int(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)}
