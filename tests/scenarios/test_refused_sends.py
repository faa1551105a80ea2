"""What a producer makes of refusals, of routes without a queue to send to, and of half-kept messages."""

import attrs
import pytest

from emulator.spec.model.scenario import NameserverSpec, TopicSpec
from emulator.testing import TOPIC, Stage, a_scenario, broker_groups, execute
from nodes.client.producer.default_producer import NoRouteInfoError, OutgoingMessage, SendStatus
from nodes.config import BrokerConfig, BrokerRole, NameserverConfig, ProducerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import TopicConfig
from nodes.rpc.errors import BrokerError, RemotingError
from support.retried import SEND, sent, stored_in

BOTH = ("broker-a", "broker-b")
HALF_RETAINED = BrokerConfig(broker_role=BrokerRole.SYNC_MASTER, in_sync_replicas=2, slave_timeout=500)
"""A master that waits half a second for a slave that there is not."""


def producing(config=None, rate_per_s=10, **options):
    scenario = a_scenario(rate_per_s=rate_per_s, **options)
    producers = tuple(attrs.evolve(producer, config=config or ProducerConfig()) for producer in scenario.producers)
    return attrs.evolve(scenario, producers=producers)


def routes_requested(trace, **between):
    return trace.select("rpc", src="p1", code=105, kind="request", event="delivered", **between)


async def send_all(stage, outcomes, *messages):
    """Send messages through the producer of p1; what became of each goes to `outcomes`."""
    producer = stage.node("p1").producer

    async def run():
        for message in messages:
            try:
                outcomes.append((await producer.send(message)).status)
            except (RemotingError, BrokerError, NoRouteInfoError) as error:
                outcomes.append(error)

    stage.host("p1").process.start_soon(run, name="application")
    await stage.for_ms(10_000)


def test_a_broker_without_write_permission_gets_sends_until_the_next_poll_and_refuses_none():
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(12_000)
        header = headers.WritePermRequestHeader("broker-b")
        assert (await probe.ask("ns-1", RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)).code == 0
        await stage.at_ms(40_000)

    trace = execute(producing(brokers=BOTH, queues=1), script)

    polled = trace.select("beliefs", node="p1", kind="route", subject=TOPIC, after_ms=12_000)[0].at_ms
    assert 30_000 <= polled <= 30_100
    assert len(stored_in(trace, TOPIC, node="broker-b", after_ms=12_100, until_ms=polled)) > 80
    assert stored_in(trace, TOPIC, node="broker-b", after_ms=polled + 10) == []
    assert trace.select("rpc", dst="p1", code=int(SEND), kind="response", status=16) == []


@pytest.mark.trap("X11")
def test_a_topic_that_no_one_may_write_to_is_asked_for_with_each_send_and_its_template_is_not():
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(12_000)
        header = headers.WritePermRequestHeader("broker-a")
        await probe.ask("ns-1", RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
        await stage.at_ms(45_000)

    trace = execute(producing(queues=1), script)

    assert stored_in(trace, TOPIC, after_ms=31_000) == []
    # Ten sends a second, one question each.
    assert 95 <= len(routes_requested(trace, after_ms=32_000, until_ms=42_000)) <= 105


def test_a_send_is_not_measured_by_its_topics_permission_but_by_its_brokers_where_the_topic_is_ordered():
    codes = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        topics = stage.node("broker-a").context.topics
        for perm, order in ((4, False), (6, True)):
            topics.update_topic_config(TopicConfig("bills", 4, 4, perm, order=order), now_ms=0)
            header = headers.SendMessageRequestHeader("pg", "bills", "TBW102", 4, 0, 0, 0, 0)
            codes.append((await probe.ask("broker-a", RequestCode.SEND_MESSAGE, header)).code)

    execute(a_scenario(brokers=broker_groups(config=BrokerConfig(broker_permission=4))), script)

    assert codes == [ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION]


def test_a_broker_that_may_not_be_written_to_reports_so_in_its_registration_and_no_one_sends():
    trace = execute(producing(queues=1, brokers=broker_groups(config=BrokerConfig(broker_permission=4))), for_ms=5_000)

    assert sent(trace, SEND, "p1") == stored_in(trace, TOPIC) == []
    assert len(routes_requested(trace)) > 40


def test_a_broker_that_may_not_be_read_reports_so_in_its_registration_and_no_consumer_pulls():
    trace = execute(
        producing(consumers=1, queues=1, brokers=broker_groups(config=BrokerConfig(broker_permission=2))), for_ms=5_000
    )

    assert trace.select("rpc", src="c1", code=11) == []
    assert stored_in(trace, TOPIC) != []


@pytest.mark.trap("X11")
def test_an_unknown_topic_gets_the_queues_of_the_template_only_if_the_nameserver_answers():
    outcomes = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(15_000)
        await send_all(stage, outcomes, OutgoingMessage("fresh", b"1"))
        await stage.kill("ns-1")
        await send_all(stage, outcomes, OutgoingMessage("fresher", b"1"), OutgoingMessage("fresh", b"2"))

    trace = execute(producing(rate_per_s=1), script)

    first, second, third = outcomes
    assert (first, third) == (SendStatus.SEND_OK, SendStatus.SEND_OK)
    assert isinstance(second, RemotingError)
    assert len(stored_in(trace, "fresh")) == 2


def test_without_a_template_an_unknown_topic_has_no_route():
    outcomes = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(15_000)
        await send_all(stage, outcomes, OutgoingMessage("fresh", b"1"))

    execute(producing(rate_per_s=1, brokers=broker_groups(config=BrokerConfig(auto_create_topic_enable=False))), script)

    assert [str(outcome) for outcome in outcomes] == ["No route info of this topic: fresh"]


def test_a_refusal_that_another_broker_would_repeat_ends_the_send_at_once():
    # The order configuration promises queues that the broker does not have.
    outcomes = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(1_000)
        await stage.kill("p1")
        probe = await stage.probe()
        header = headers.PutKvConfigRequestHeader("ORDER_TOPIC_CONFIG", TOPIC, "broker-a:9")
        await probe.ask("ns-1", RequestCode.PUT_KV_CONFIG, header)
        stage.start("p1")
        await stage.for_ms(100)
        await send_all(stage, outcomes, *[OutgoingMessage(TOPIC, b"") for _ in range(9)])

    trace = execute(
        producing(
            rate_per_s=1, queues=1, nameservers=(NameserverSpec("ns-1", NameserverConfig(order_message_enable=True)),)
        ),
        script,
    )

    refused = [outcome for outcome in outcomes if isinstance(outcome, BrokerError)]
    assert {outcome.code for outcome in refused} == {ResponseCode.INVALID_PARAMETER}
    assert len(refused) >= 7
    # One attempt each, of these and of the application's own.
    answers = trace.select("rpc", dst="p1", code=int(SEND), kind="response", event="delivered", after_ms=1_100)
    assert len(answers) == len(sent(trace, SEND, "p1", after_ms=1_100))


@pytest.mark.parametrize(("again", "copies"), [(False, 1), (True, 3)])
def test_what_a_broker_keeps_less_well_than_promised_is_sent_again_only_if_that_is_wanted(again, copies):
    outcomes = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(15_000)
        await send_all(stage, outcomes, OutgoingMessage("bills", b"again"))

    config = ProducerConfig(retry_another_broker_when_not_store_ok=again)
    topics = (TopicSpec(TOPIC, BOTH, 1), TopicSpec("bills", BOTH, 1))
    trace = execute(
        producing(config, rate_per_s=1, brokers=broker_groups(*BOTH, config=HALF_RETAINED), topics=topics), script
    )

    assert outcomes == [SendStatus.FLUSH_SLAVE_TIMEOUT]
    assert len(stored_in(trace, "bills")) == copies


def test_an_attempt_may_be_cut_short_so_that_another_broker_gets_the_message_but_no_attempt_to_connect():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        await stage.power_off("broker-b")
        await stage.at_ms(20_000)

    config = ProducerConfig(send_msg_max_timeout_per_request=500)
    trace = execute(producing(config, rate_per_s=1, brokers=BOTH, queues=1), script)

    # Over the connection that is open, half a second is waited. To connect takes its 3 s, in which the producer does
    # nothing else, and then no time is left for the other broker: these messages are lost.
    tried = trace.select("rpc", src="p1", event="connect_lost")
    assert [(row.sent_ns // 1_000_000, row.at_ms) for row in tried] == [(12_004, 15_004), (15_006, 18_006)]
    assert [row.at_ms for row in stored_in(trace, TOPIC, after_ms=10_050)] == [11_505, 15_005, 18_007]


@pytest.mark.trap("X10")
def test_a_producer_that_minds_latencies_leaves_a_dead_broker_alone_for_ten_seconds_at_a_time():
    async def script(stage: Stage) -> None:
        await stage.at_ms(5_050)
        await stage.kill("broker-b")
        await stage.at_ms(29_000)

    trace = execute(producing(ProducerConfig(send_latency_enable=True), brokers=BOTH, queues=1), script)

    refused = [row.at_ms for row in trace.select("rpc", src="p1", event="refused", after_ms=5_050)]
    assert len(refused) <= 6
    assert len(stored_in(trace, TOPIC, after_ms=5_051)) in (239, 240)
