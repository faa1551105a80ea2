"""Clients that send to and read `%LMQ%` queues, which no nameserver knows."""

from typing import Any

import pytest
import trio

from emulator.testing import Stage, Trace, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.properties import INNER_MULTI_DISPATCH
from nodes.protocol.sys_flags import PullSysFlag
from support.asking_guest import Guest, a_guest, messages_of

BROKER = "broker-a"
QUEUE, GROUP = "%LMQ%a", "%LMQ%g"
CONFIG = BrokerConfig(enable_lmq=True, enable_multi_dispatch=True)
HELD = int(PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION)


def run(script: Any, config: BrokerConfig = CONFIG, *, slaves: int = 0) -> Trace:
    return execute(a_scenario(brokers=broker_groups(config=config, slaves=slaves), queues=1), script)


async def pull(guest: Guest, offset: int, *, group: str = GROUP, node: str = BROKER) -> Command:
    header = headers.PullMessageRequestHeader(
        group, QUEUE, 0, offset, 32, HELD, 0, 15_000, guest.host.clock.now_ms(), "*", "TAG"
    )
    return await guest.ask(node, RequestCode.PULL_MESSAGE, header, timeout_ms=30_000)


def test_a_pull_that_is_held_gets_the_message_of_another_topic_when_that_is_stored() -> None:
    found: list[Any] = []

    async def script(stage: Stage) -> None:
        guest, other = await a_guest(stage), await a_guest(stage, 2)
        await guest.beat(BROKER, group=GROUP, topic=QUEUE)

        async def later() -> None:
            await stage.for_ms(7_000)
            await other.send(BROKER, **{INNER_MULTI_DISPATCH: QUEUE})

        began_ms = stage.now_ms
        async with trio.open_nursery() as nursery:
            nursery.start_soon(later)
            answer = await pull(guest, 0)
        found.extend((answer.code, round(stage.now_ms - began_ms), [item.topic for item in messages_of(answer)]))
        assert answer.ext_fields["nextBeginOffset"] == "1"

    run(script)
    assert found[0] == ResponseCode.SUCCESS
    assert 7_000 <= found[1] < 7_010
    assert found[2] == ["orders"]


def test_a_heartbeat_of_a_group_creates_and_registers_its_retry_topic_but_no_group() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.beat(BROKER, group=GROUP, topic=QUEUE)
        await stage.for_ms(100)
        broker = stage.node(BROKER).context
        assert f"%RETRY%{GROUP}" in broker.topics.topics
        assert GROUP not in broker.groups.groups
        route = headers.GetRouteInfoRequestHeader(f"%RETRY%{GROUP}")
        assert (await guest.ask("ns-1", RequestCode.GET_ROUTEINFO_BY_TOPIC, route)).code == ResponseCode.SUCCESS
        unknown = headers.GetRouteInfoRequestHeader(QUEUE)
        answer = await guest.ask("ns-1", RequestCode.GET_ROUTEINFO_BY_TOPIC, unknown)
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST

    run(script)


@pytest.mark.trap("S4")
@pytest.mark.parametrize(("group", "copied"), [(GROUP, "-1"), ("g", "1")])
def test_offsets_of_lmq_groups_survive_a_restart_and_are_not_copied_to_slaves(group: str, copied: str) -> None:
    async def offset(guest: Guest, node: str) -> str | None:
        header = headers.QueryConsumerOffsetRequestHeader(group, QUEUE, 0, set_zero_if_not_found=False)
        answer = await guest.ask(node, RequestCode.QUERY_CONSUMER_OFFSET, header)
        return answer.ext_fields["offset"] if answer.code == ResponseCode.SUCCESS else "-1"

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.send(BROKER, **{INNER_MULTI_DISPATCH: QUEUE})
        await guest.beat(BROKER, group=group, topic=QUEUE)
        commit = headers.UpdateConsumerOffsetRequestHeader(group, QUEUE, 0, 1)
        assert (await guest.ask(BROKER, RequestCode.UPDATE_CONSUMER_OFFSET, commit)).code == ResponseCode.SUCCESS
        await stage.for_ms(125_000)
        assert await offset(guest, f"{BROKER}-s1") == copied
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(5_000)
        assert await offset(guest, BROKER) == "1"

    run(script, slaves=1)


@pytest.mark.trap("S3")
def test_a_wrong_name_stops_all_readers_of_a_broker_which_does_not_start_again() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.send(BROKER, **{INNER_MULTI_DISPATCH: f"other,{QUEUE}"})
        sent = await guest.send(BROKER)
        assert sent.code == ResponseCode.SUCCESS
        end = await guest.ask(BROKER, RequestCode.GET_MAX_OFFSET, headers.GetMaxOffsetRequestHeader("orders", 0))
        assert end.ext_fields["offset"] == "1"
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(60_000)

    trace = run(script)
    details = [row.detail for row in trace.select("lifecycle", node=BROKER, event="stopping")]
    assert len(details) == 1
    assert details[0].startswith("start failed: the message at 0 names queues that are no LMQ")
    assert len(trace.select("lifecycle", node=BROKER, event="ready")) == 1


def test_without_the_option_the_queue_does_not_exist() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.beat(BROKER, group="g", topic=QUEUE)
        answer = await pull(guest, 0, group="g")
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST

    run(script, BrokerConfig())
