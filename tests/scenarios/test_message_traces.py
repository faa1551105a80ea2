"""Producers and consumers that send traces of their messages to a topic."""

from collections import Counter
from itertools import pairwise
from typing import Any

import attrs
import pytest

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.testing import RETRY, TOPIC, Stage, Trace, a_scenario, broker_groups, consumer_group, execute
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from nodes.config import BrokerConfig, ConsumerConfig, LitePullConsumerConfig, ProducerConfig
from nodes.protocol.bodies_admin import ProducerTableInfo
from nodes.protocol.codes import RequestCode
from nodes.protocol.registry import decode_body

BROKER = "broker-a"
TRACES = "RMQ_SYS_TRACE_TOPIC"
WITH_TOPIC = BrokerConfig(trace_topic_enable=True)
TRACED = ProducerConfig(enable_trace=True)
SEND, ROUTE = int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.GET_ROUTEINFO_BY_TOPIC)


def a_shop(
    rate_per_s: int = 10,
    *,
    config: ProducerConfig = TRACED,
    broker: BrokerConfig = WITH_TOPIC,
    consumers: tuple[ConsumerGroupSpec, ...] = (),
    brokers: tuple[str, ...] = (BROKER,),
    **producer: Any,
) -> Scenario:
    """A producer `p1`, and what receives its messages."""
    scenario = a_scenario(brokers=broker_groups(*brokers, config=broker), queues=2, consumers=consumers)
    spec = ProducerSpec("p1", "shop", TOPIC, rate_per_s, config=config, **producer)
    return attrs.evolve(scenario, producers=(spec,))


def traces_at(stage: Stage, node: str = BROKER, topic: str = TRACES) -> list[list[str]]:
    """The traces that a broker has, each as its fields, in the order of its queues."""
    store = stage.node(node).context.store
    queues = stage.node(node).context.topics.topics[topic].write_queue_nums
    stored = [message for queue in range(queues) for message in store.messages(topic, queue, 0, 1_000)]
    return [text.split("\x01") for message in stored for text in message.body.decode().split("\x02")[:-1]]


def run(scenario: Scenario, for_ms: float, topic: str = TRACES) -> tuple[Trace, list[list[str]]]:
    """The rows of a run, and the traces that its broker has at the end."""
    found: list[list[str]] = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(for_ms)
        found.extend(traces_at(stage, topic=topic))

    return execute(scenario, script), found


def sends(trace: Trace, node: str) -> Counter[str]:
    """How many messages of each topic the brokers stored that a node sent: its own and its traces."""
    return Counter(row.topic for row in trace.select("messages", event="stored") if row.node == node)


def test_ten_sends_are_one_message_to_the_trace_topic() -> None:
    trace, traces = run(a_shop(), 30_000)

    stored = sends(trace, BROKER)
    assert stored[TOPIC] == 300
    assert stored[TRACES] == 30
    assert {fields[0] for fields in traces} == {"Pub"}
    assert len({fields[5] for fields in traces}) == 300
    *_, regions, _ = zip(*(fields[:4] for fields in traces), strict=True)
    assert set(regions) == {"DefaultRegion"}


def test_traces_that_are_no_batch_are_sent_5_s_after_the_last_ones() -> None:
    trace, _ = run(a_shop(1), 30_000)

    instants = [row.at_ms for row in trace.select("messages", event="stored", topic=TRACES)]
    first, *gaps = (round(later - earlier) for earlier, later in pairwise(instants))
    assert first == 5_005 - 6  # the first ones waited for their route
    assert gaps == [5_005] * 3


@pytest.mark.trap("S7")
def test_a_send_that_is_refused_or_not_answered_leaves_no_trace() -> None:
    found: list[list[str]] = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(3_050)
        await stage.begin("refuse SEND_MESSAGE_V2 with SYSTEM_ERROR from p1 topic orders next 9")
        await stage.at_ms(6_050)
        await stage.suspend(BROKER, 8_000)
        await stage.at_ms(60_000)
        found.extend(traces_at(stage))

    trace = execute(a_shop(messages=100), script)

    assert len(found) == 100
    assert {fields[13] for fields in found} == {"true"}
    assert len(trace.select("messages", event="stored", topic=TOPIC)) > 100  # what the broker stored when it woke
    assert len(trace.select("messages", event="unacknowledged", topic=TOPIC)) > 0


@pytest.mark.trap("S8")
def test_a_client_that_traces_is_two_clients() -> None:
    known: list[ProducerTableInfo] = []

    async def script(stage: Stage) -> None:
        guest = await stage.probe()
        await stage.at_ms(40_000)
        answer = await guest.ask(BROKER, RequestCode.GET_ALL_PRODUCER_INFO)
        known.append(decode_body(ProducerTableInfo, answer.body))

    trace = execute(a_shop(), script)

    clients = {group: [client.client_id for client in of_group] for group, of_group in known[0].data.items()}
    assert sorted(clients, reverse=True) == ["shop", "_INNER_TRACE_PRODUCER-shop-PRODUCE-1"]
    (traces,) = clients["_INNER_TRACE_PRODUCER-shop-PRODUCE-1"]
    assert traces.endswith("@PID_CLIENT_INNER_TRACE_PRODUCER_127.1.1.1:9876")
    connected = [row.dst for row in trace.select("rpc", src="p1", event="connected")]
    assert Counter(connected) == {"ns-1": 2, BROKER: 2}


def test_a_consumption_is_traced_before_and_after_with_one_request_id() -> None:
    traced = ConsumerConfig(enable_trace=True)
    shop = a_shop(consumers=consumer_group(1, traced, consume_ms=40), config=ProducerConfig())
    _, traces = run(shop, 30_000)

    before = {fields[4]: fields for fields in traces if fields[0] == "SubBefore"}
    after = {fields[1]: fields for fields in traces if fields[0] == "SubAfter"}
    assert len(after) > 250
    both = before.keys() & after.keys()
    assert len(both) > 250
    assert all(before[request][5] == after[request][2] for request in both)
    assert {(fields[3], fields[4], fields[6]) for fields in after.values()} == {("40", "true", "0")}


def test_a_message_that_is_consumed_again_keeps_its_id_and_counts_its_redeliveries() -> None:
    traced = ConsumerConfig(enable_trace=True)
    (group,) = consumer_group(1, traced)
    shop = a_shop(1, consumers=(attrs.evolve(group, fail_times=1),), messages=3)
    trace, traces = run(shop, 60_000)

    assert len([row for row in trace.select("messages", event="consumed") if row.topic == RETRY]) == 3
    times = sorted((fields[5], fields[6]) for fields in traces if fields[0] == "SubBefore")
    sent = sorted(fields[5] for fields in traces if fields[0] == "Pub")
    assert times == sorted((msg_id, str(times)) for msg_id in sent for times in (0, 1))
    assert Counter(fields[6] for fields in traces if fields[0] == "SubAfter") == {"0": 3, "4": 3}


def test_a_lite_pull_consumer_traces_a_poll_as_consumed_at_once() -> None:
    config = LitePullConsumerConfig(enable_trace=True)
    shop = a_shop(consumers=consumer_group(1, config, consume_ms=200), config=ProducerConfig())
    _, traces = run(shop, 30_000)

    after = [fields for fields in traces if fields[0] == "SubAfter"]
    assert len(after) > 100
    assert {(fields[3], fields[4]) for fields in after} == {("0", "true")}


def test_the_end_of_a_transaction_is_traced_and_so_is_the_answer_to_a_check() -> None:
    unknown = LocalTransactions(LocalTransactionState.UNKNOWN, check_state=LocalTransactionState.COMMIT)
    broker = attrs.evolve(WITH_TOPIC, transaction_check_interval=5_000, transaction_time_out=2_000)
    _, traces = run(a_shop(1, broker=broker, transactions=unknown), 60_000)

    states = Counter((fields[11], fields[12]) for fields in traces if fields[0] == "EndTransaction")
    assert states["UNKNOW", "false"] > 40
    assert states["COMMIT_MESSAGE", "true"] > 10
    assert {fields[11] for fields in traces if fields[0] == "Pub"} == {"1"}


def test_a_broker_may_forbid_traces_and_names_its_region() -> None:
    _, allowed = run(a_shop(broker=attrs.evolve(WITH_TOPIC, region_id="north")), 10_000)
    both = a_shop(
        broker=attrs.evolve(WITH_TOPIC, trace_on=False),
        consumers=consumer_group(1, ConsumerConfig(enable_trace=True)),
    )
    _, forbidden = run(both, 10_000)

    assert {fields[2] for fields in allowed} == {"north"}
    assert forbidden == []


def test_traces_go_to_a_topic_of_another_name() -> None:
    broker = attrs.evolve(WITH_TOPIC, msg_trace_topic_name="my_traces")
    _, traces = run(a_shop(config=attrs.evolve(TRACED, trace_topic="my_traces")), 10_000, "my_traces")
    assert len(traces) > 80  # made of TBW102

    _, traces = run(a_shop(broker=broker, config=attrs.evolve(TRACED, trace_topic="my_traces")), 10_000, "my_traces")
    assert len(traces) > 80


def test_without_a_trace_topic_brokers_make_one_of_four_queues() -> None:
    queues: list[int] = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        queues.append(stage.node(BROKER).context.topics.topics[TRACES].write_queue_nums)

    execute(a_shop(broker=BrokerConfig()), script)

    assert queues == [4]


@pytest.mark.trap("S9")
def test_without_a_route_each_batch_costs_three_questions_and_the_application_sends_on() -> None:
    trace = execute(a_shop(broker=BrokerConfig(auto_create_topic_enable=False)), for_ms=30_000)

    assert sends(trace, BROKER) == {TOPIC: 300}
    questions = trace.select("rpc", src="p1", code=ROUTE, kind="request", event="delivered")
    assert 3 * 29 <= len(questions) <= 3 * 30 + 6


def test_traces_are_lost_with_the_only_broker_of_their_topic_and_messages_are_not() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        await stage.kill(BROKER)
        await stage.at_ms(25_000)

    scenario = a_shop(consumers=consumer_group(1), brokers=(BROKER, "broker-b"))
    first, second = scenario.brokers
    with_topic_on_first = attrs.evolve(scenario, brokers=(first, attrs.evolve(second, config=BrokerConfig())))
    trace = execute(with_topic_on_first, script)

    stored = trace.select("messages", event="stored", after_ms=10_060)
    assert {(row.node, row.topic) for row in stored} == {("broker-b", TOPIC)}
    assert len(stored) == 149
    refused = trace.select("rpc", src="p1", event="refused", after_ms=10_060)
    assert len(refused) >= 14 * 3


def test_a_client_that_stops_sends_what_waits_and_one_that_is_killed_loses_it() -> None:
    counts: dict[str, int] = {}

    async def stopped(stage: Stage) -> None:
        await stage.at_ms(4_000)
        await stage.stop("p1")
        await stage.for_ms(100)
        counts["stopped"] = len(traces_at(stage))

    async def killed(stage: Stage) -> None:
        await stage.at_ms(4_000)
        await stage.kill("p1")
        await stage.for_ms(10_000)
        counts["killed"] = len(traces_at(stage))

    execute(a_shop(1), stopped)
    execute(a_shop(1), killed)

    assert counts == {"stopped": 4, "killed": 0}
