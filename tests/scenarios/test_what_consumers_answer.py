"""What emulated clients answer to the requests that brokers pass on from administrators."""

import json
from typing import Any

import attrs
import pytest

from emulator.guests.remoting.fastjson import read_json
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.testing import GROUP, TOPIC, Stage, Trace, a_scenario, broker_groups, consumer_group, execute
from faults.consume_mode import ConsumeMode
from nodes.config import BrokerConfig, ConsumerConfig, LitePullConsumerConfig
from nodes.protocol import bodies_admin as bodies
from nodes.protocol import headers_message as requested
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_body
from support.asking_guest import Guest, a_guest

BROKER = "broker-a"
AT_CLIENTS = BrokerConfig(use_server_side_reset_offset=False)
LOOK_MS = 60_500


def push(*, fail_times: int = 0, broker: BrokerConfig | None = None, pops: bool = False, **options: Any) -> Scenario:
    """A consumer c1 of the group, which pulls or pops."""
    group = consumer_group(1, ConsumerConfig(client_rebalance=not pops, **options), consume_ms=20)[0]
    group = attrs.evolve(group, fail_times=fail_times, mode=ConsumeMode.POP if pops else group.mode)
    brokers = broker_groups(config=broker or BrokerConfig())
    return a_scenario(queues=2, brokers=brokers, consumers=(group,), rate_per_s=4)


def lite_pull(broker: BrokerConfig | None = None) -> Scenario:
    group = ConsumerGroupSpec(GROUP, ("c1",), (TOPIC,), LitePullConsumerConfig())
    return a_scenario(
        queues=2, brokers=broker_groups(config=broker or BrokerConfig()), consumers=(group,), rate_per_s=4
    )


def look(scenario: Scenario, script: Any) -> Trace:
    async def execute_it(stage: Stage) -> None:
        await stage.at_ms(LOOK_MS)
        await script(stage, await a_guest(stage))

    return execute(scenario, execute_it)


async def running_info(stage: Stage, guest: Guest) -> Any:
    (client_id,) = stage.node(BROKER).tables.clients.consumers.client_ids(GROUP)
    header = requested.GetConsumerRunningInfoRequestHeader(GROUP, client_id)
    answer = await guest.ask(BROKER, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
    assert answer.code == ResponseCode.SUCCESS
    return read_json((answer.body or b"").decode())


async def consume_directly(stage: Stage, guest: Guest, offset: int = 3) -> Command:
    (client_id,) = stage.node(BROKER).tables.clients.consumers.client_ids(GROUP)
    message = stage.node(BROKER).context.store.get_message(TOPIC, 0, offset).messages[0]
    message_id = offset_message_id(message.store_host, message.commit_log_offset)
    header = requested.ConsumeMessageDirectlyResultRequestHeader(GROUP, client_id, message_id, topic=TOPIC)
    return await guest.ask(BROKER, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)


def by_topic(info: Any, table: str, topic: str = TOPIC) -> list[Any]:
    return [value for key, value in info[table].items() if dict(key)["topic"] == topic]


# 307


def test_a_push_consumer_reports_options_queues_and_rates():
    seen: dict[str, Any] = {}

    async def script(stage: Stage, guest: Guest) -> None:
        seen["info"] = await running_info(stage, guest)

    look(push(fail_times=1, consume_thread_min=7), script)
    info = seen["info"]
    properties = info["properties"]
    assert properties["PROP_CLIENT_VERSION"] == "V5_3_3"
    assert properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert (properties["PROP_CONSUMEORDERLY"], properties["PROP_THREADPOOL_CORE_SIZE"]) == ("false", "7")
    assert properties["PROP_NAMESERVER_ADDR"] == properties["namesrvAddr"] + ";"
    assert (properties["consumerGroup"], properties["consumeThreadMin"]) == (GROUP, "7")
    assert not {"accessKey", "secretKey", "exclusivity", "pullThreadNums"} & set(properties)
    assert [each["topic"] for each in info["subscriptionSet"]] == [f"%RETRY%{GROUP}", TOPIC]
    assert len(by_topic(info, "mqTable")) == 2
    assert (info["mqPopTable"], info["userConsumerInfo"]) == ({}, {})
    rates = info["statusTable"][TOPIC]
    # Each message fails once here, and succeeds when it comes back by the retry topic.
    assert rates["consumeFailedTPS"] == pytest.approx(4, rel=0.1)
    assert (rates["consumeOKTPS"], rates["consumeRT"]) == (0.0, 20.0)
    assert rates["pullTPS"] == pytest.approx(4, rel=0.1)
    assert rates["pullRT"] > 100
    assert info["statusTable"][f"%RETRY%{GROUP}"]["consumeOKTPS"] == pytest.approx(4, rel=0.2)


def test_the_offset_of_a_queue_that_is_not_in_memory_is_that_of_the_broker():
    seen: dict[str, Any] = {}

    async def script(stage: Stage, guest: Guest) -> None:
        for queue in stage.node("c1").rebalance.process_queues:
            stage.node("c1")._offsets.memory.remove(queue)
        broker = stage.node(BROKER).tables.clients.offsets
        seen["stored"] = [broker.query_offset(GROUP, TOPIC, queue_id) for queue_id in (0, 1)]
        seen["info"] = await running_info(stage, guest)

    look(push(), script)
    assert [queue["commitOffset"] for queue in by_topic(seen["info"], "mqTable")] == seen["stored"]


def test_a_member_that_pops_reports_the_queues_that_it_pops():
    seen: dict[str, Any] = {}

    async def script(stage: Stage, guest: Guest) -> None:
        seen["info"], seen["now_ms"] = await running_info(stage, guest), stage.host("c1").clock.now_ms()

    look(push(pops=True), script)
    popped = by_topic(seen["info"], "mqPopTable")
    assert by_topic(seen["info"], "mqTable") == []
    assert {(queue["droped"], queue["waitAckCount"] < 3) for queue in popped} == {(False, True)}
    assert all(seen["now_ms"] - 20_000 < queue["lastPopTimestamp"] <= seen["now_ms"] for queue in popped)
    rates = seen["info"]["statusTable"][TOPIC]
    assert rates["consumeOKTPS"] == pytest.approx(4, rel=0.1)
    assert rates["pullTPS"] == pytest.approx(4, rel=0.1)


def test_a_lite_pull_consumer_reports_its_queues_and_neither_threads_nor_rates():
    seen: dict[str, Any] = {}

    async def script(stage: Stage, guest: Guest) -> None:
        seen["info"] = await running_info(stage, guest)

    look(lite_pull(), script)
    info = seen["info"]
    assert info["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_ACTIVELY"
    assert info["properties"]["pullThreadNums"] == "20"
    assert not {"PROP_CONSUMEORDERLY", "PROP_THREADPOOL_CORE_SIZE"} & set(info["properties"])
    assert len(by_topic(info, "mqTable")) == 2
    assert info["statusTable"] == {}


# 309


@pytest.mark.parametrize(
    ("scenario", "result"),
    [
        (push(), {"order": False, "consumeResult": "CR_SUCCESS"}),
        (push(fail_times=1), {"order": False, "consumeResult": "CR_LATER"}),
        (push(consume_orderly=True), {"order": True, "consumeResult": "CR_SUCCESS"}),
        (push(pops=True), {"order": False, "consumeResult": "CR_SUCCESS"}),
    ],
    ids=["success", "later", "in_order", "popping"],
)
def test_a_message_that_is_consumed_directly_reaches_the_listener(scenario: Scenario, result: dict[str, Any]):
    seen: dict[str, Any] = {}

    async def script(stage: Stage, guest: Guest) -> None:
        answer = await consume_directly(stage, guest)
        assert answer.code == ResponseCode.SUCCESS
        seen["result"] = json.loads(answer.body or b"")

    trace = look(scenario, script)
    assert seen["result"] == {**result, "autoCommit": True, "spentTimeMills": 20}
    assert len(trace.select("messages", event="consumed", topic=TOPIC, queue_id=0, offset=3)) == 2


def test_a_lite_pull_consumer_has_no_listener_that_could_consume_a_message_directly():
    async def script(stage: Stage, guest: Guest) -> None:
        answer = await consume_directly(stage, guest)
        assert (answer.code, answer.remark) == (1, f"The Consumer Group <{GROUP}> not exist in this consumer")

    look(lite_pull(), script)


# 220, 221


def reset_to(stage: Stage, offset: int) -> requested.ResetOffsetRequestHeader:
    timestamp = stage.node(BROKER).context.store.store_timestamp(TOPIC, 0, offset)
    return requested.ResetOffsetRequestHeader(GROUP, TOPIC, timestamp=timestamp, is_force=True)


@pytest.mark.parametrize("options", [{}, {"consume_orderly": True}], ids=["concurrently", "in_order"])
def test_a_reset_through_its_clients_stops_the_consumer_for_10_s_and_then_it_consumes_again(options: dict[str, Any]):
    async def script(stage: Stage, guest: Guest) -> None:
        answer = await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset_to(stage, 10))
        assert answer.code == ResponseCode.SUCCESS
        await stage.for_ms(30_000)

    trace = look(push(broker=AT_CLIENTS, **options), script)
    consumed = trace.select("messages", event="consumed", topic=TOPIC, queue_id=0)
    times = [row.at_ms for row in consumed if row.at_ms > LOOK_MS]
    assert min(row.offset for row in consumed if row.at_ms == times[0]) == 10
    assert times[0] - LOOK_MS == pytest.approx(10_500, abs=100)
    dropped = trace.select("ownership", topic=TOPIC, queue_id=0, event="dropped")
    acquired = trace.select("ownership", topic=TOPIC, queue_id=0, event="acquired")
    assert [row.at_ms - LOOK_MS for row in dropped] == [pytest.approx(0, abs=10)]
    assert acquired[-1].at_ms - LOOK_MS == pytest.approx(10_000, abs=20)


def test_a_reset_through_clients_does_not_reach_a_lite_pull_consumer():
    async def script(stage: Stage, guest: Guest) -> None:
        await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset_to(stage, 10))
        await stage.for_ms(30_000)

    trace = look(lite_pull(AT_CLIENTS), script)
    assert [key for key, nodes in trace.consumed().items() if len(nodes) > 1] == []


def test_a_second_reset_waits_for_the_first_one():
    async def script(stage: Stage, guest: Guest) -> None:
        for offset in (10, 20):
            await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset_to(stage, offset))
        await stage.for_ms(40_000)

    trace = look(push(broker=AT_CLIENTS), script)
    again = [row.at_ms for row in trace.select("messages", event="consumed", topic=TOPIC, queue_id=0, offset=20)]
    assert len(again) == 2
    assert again[1] - LOOK_MS == pytest.approx(20_500, abs=200)


def test_the_status_of_a_consumer_is_its_offsets_in_memory_and_that_of_a_lite_pull_consumer_is_empty():
    found: list[dict[MessageQueue, int]] = []

    async def script(_stage: Stage, guest: Guest) -> None:
        header = requested.GetConsumerStatusRequestHeader(TOPIC, GROUP)
        answer = await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
        found.extend(
            dict(each) for each in decode_body(bodies.GetConsumerStatusBody, answer.body).consumer_table.values()
        )

    look(push(), script)
    look(lite_pull(), script)
    assert [[queue.queue_id for queue in each] for each in found] == [[0, 1], []]


# 326


def test_a_reply_for_which_no_request_waits_is_taken_all_the_same():
    async def script(stage: Stage, guest: Guest) -> None:
        groups = stage.node(BROKER).tables.clients.producers.groups
        (client_id,) = [member.client_id for member in groups["pg"].values()]
        properties = {"CORRELATION_ID": "7", "REPLY_TO_CLIENT": client_id}
        header = guest.header("DefaultCluster_REPLY_TOPIC", properties)
        answer = await guest.ask(BROKER, RequestCode.SEND_REPLY_MESSAGE_V2, header, b"pong")
        assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)

    look(push(), script)
