"""Pulls: held, woken, refused, corrected, slowed down."""

import itertools

import attrs
import pytest

from emulator.testing import GROUP, TOPIC, Stage, a_scenario, broker_groups, consumer_group, execute
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.registry import decode_body


def answers(trace, node="c1", **wanted):
    return trace.select("rpc", dst=node, code=11, kind="response", event="delivered", **wanted)


def held_ms(trace):
    """How long after each pull of c1 its answer came, by the instant of the answer."""
    sent = {row.opaque: row.sent_ms for row in trace.select("rpc", src="c1", code=11, kind="request")}
    return {row.at_ms: row.at_ms - sent[row.opaque] for row in answers(trace)}


def test_a_pull_that_finds_nothing_is_held_until_the_broker_looks_after_15_s_and_is_repeated_at_once():
    trace = execute(a_scenario(consumers=1, queues=1), for_ms=90_000)

    held = held_ms(trace)
    assert len(held) == 4
    assert {row.status for row in answers(trace)} == {ResponseCode.PULL_NOT_FOUND}
    # The broker looks every 5 s, and its answer takes 1 ms.
    assert [at_ms % 5_000 for at_ms in held] == [2] * 4
    first, *others = held.values()
    assert 15_002 < first < 20_000
    # A pull that is sent when a look has ended the one before misses the third look after that by its way there.
    assert others == [20_000] * 3
    requests = [row.sent_ms for row in trace.select("rpc", src="c1", code=11, kind="request", after_ms=10_000)]
    assert set(held) == {at_ms for at_ms in requests if at_ms < 90_000}


def test_without_long_polling_the_broker_looks_every_second():
    trace = execute(
        a_scenario(consumers=1, queues=1, brokers=broker_groups(config=BrokerConfig(long_polling_enable=False))),
        for_ms=10_000,
    )

    held = list(held_ms(trace).values())
    assert len(held) >= 4
    assert 1_002 < held[0] < 2_000
    assert set(held[2:]) == {2_000}


def test_without_long_polling_a_message_waits_for_the_look():
    broker = BrokerConfig(long_polling_enable=False)
    trace = execute(
        a_scenario(consumers=1, queues=1, brokers=broker_groups(config=broker), rate_per_s=3), for_ms=20_000
    )

    found = [row.at_ms for row in answers(trace, status=0) if row.at_ms > 5_000]
    assert len(found) == 15
    assert {at_ms % 1_000 for at_ms in found} == {2}


def only(expression, tags):
    """One queue, a producer of these tags in turn, a message a second, and a consumer of some of them."""
    scenario = a_scenario(consumers=1, queues=1, rate_per_s=1)
    consumers = tuple(attrs.evolve(consumer, expressions={TOPIC: expression}) for consumer in scenario.consumers)
    return attrs.evolve(
        scenario,
        consumers=consumers,
        producers=tuple(attrs.evolve(producer, tags=tags) for producer in scenario.producers),
    )


def test_a_message_of_an_unwanted_tag_wakes_no_pull_but_the_next_look_ends_its_wait():
    trace = execute(only("a", ("b",)), for_ms=40_000)

    skipped = [row.at_ms for row in answers(trace, status=int(ResponseCode.PULL_RETRY_IMMEDIATELY))]
    # Those of the first second or two are found by the first pulls.
    assert [at_ms for at_ms in skipped if at_ms > 5_000] == [5_002 + 5_000 * i for i in range(7)]


def test_a_message_of_an_unwanted_tag_ends_the_wait_of_a_pull_whose_time_is_up():
    async def script(stage: Stage) -> None:
        await stage.at_ms(3_000)
        await stage.kill("p1")
        await stage.at_ms(22_000)
        stage.start("p1")
        await stage.at_ms(24_000)

    trace = execute(only("a", ("b",)), script)

    # Its pull has been there since 5 s, so that the look of 20.001 s came 2 ms too early for it.
    arrived = trace.select("messages", event="stored", after_ms=22_000)[0].at_ms
    (skipped,) = answers(trace, status=int(ResponseCode.PULL_RETRY_IMMEDIATELY), after_ms=6_000, until_ms=arrived + 100)
    assert skipped.at_ms - arrived == 1


def test_a_message_of_a_wanted_tag_wakes_a_pull_that_slept_through_others():
    trace = execute(only("a", ("b", "b", "b", "a")), for_ms=40_000)

    stored = {row.offset: row.at_ms for row in trace.select("messages", event="stored")}
    waited = {row.at_ms - stored[row.offset] for row in trace.select("messages", event="consumed", after_ms=5_000)}
    assert waited == {1}


def test_a_message_wakes_the_pull_that_waits_for_it():
    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=1), for_ms=20_000)

    stored = {row.offset: row.at_ms for row in trace.select("messages", event="stored")}
    waited = [row.at_ms - stored[row.offset] for row in trace.select("messages", event="consumed", after_ms=3_000)]
    assert len(waited) == 17
    assert set(waited) == {1}


def test_a_pull_that_is_refused_is_repeated_a_second_later():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_000)
        await stage.kill("broker-a")
        await stage.at_ms(15_500)

    trace = execute(a_scenario(consumers=1, queues=1), script)

    refused = [row.sent_ms for row in trace.select("rpc", src="c1", event="refused")]
    assert refused == [11_001, 12_003, 13_005, 14_007, 15_009]


@pytest.mark.trap("C11")
def test_a_stranger_that_owns_nothing_pulls_from_a_queue_that_another_owns():
    got = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(10_000)
        probe = await stage.probe()
        header = headers.PullMessageRequestHeader(GROUP, TOPIC, 0, 0, 32, 0, 0, 0, 0)
        got.append(await probe.ask("broker-a", RequestCode.PULL_MESSAGE, header))

    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=4), script)

    assert trace.owners() == {("broker-a", 0): ["c1"]}
    assert got[0].code == ResponseCode.SUCCESS
    assert [m.queue_offset for m in decode_body(PullMessageResponseBody, got[0].body).messages] == list(range(32))


def test_a_position_beyond_the_end_is_corrected_and_the_queue_is_taken_up_afresh():
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.at_ms(10_000)
        probe = await stage.probe()
        header = headers.UpdateConsumerOffsetRequestHeader(GROUP, TOPIC, 0, 500)
        assert (await probe.ask("broker-a", RequestCode.UPDATE_CONSUMER_OFFSET, header)).code == 0
        await stage.at_ms(20_000)
        stage.start("c1")
        await stage.at_ms(30_000)

    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=4), script)

    first, second = trace.select("ownership", event="acquired", topic=TOPIC)
    (drop,) = trace.select("ownership", event="dropped", topic=TOPIC)
    moved = answers(trace, status=int(ResponseCode.PULL_OFFSET_MOVED))
    assert first.offset == 500
    assert [row.at_ms for row in moved] == [drop.at_ms]
    assert drop.at_ms - first.at_ms == 502
    end = len([row for row in trace.select("messages", event="stored") if row.at_ms <= drop.at_ms - 1])
    assert second.offset == end
    assert 0 < second.at_ms - drop.at_ms < 1_000
    assert min(row.offset for row in trace.select("messages", event="consumed")) == end


def test_a_slow_listener_stops_the_pulls_at_its_threshold_and_one_batch():
    config = ConsumerConfig(pull_threshold_for_queue=40, consume_thread_min=1)
    trace = execute(
        a_scenario(consumers=consumer_group(1, config, consume_ms=500), queues=1, rate_per_s=200), for_ms=6_000
    )

    stored, consumed = len(trace.stored()), len(trace.consumed())
    last = answers(trace)[-1].at_ms
    assert stored > 1_000
    assert consumed < 12
    # The broker had far more when the client stopped to ask for it.
    assert last < 2_500
    assert trace.select("rpc", src="c1", code=11, kind="request", after_ms=3_000) == []


def test_a_pull_with_a_version_that_the_broker_does_not_know_is_refused():
    got = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(10_000)
        probe = await stage.probe()
        version = 10**15
        for group, topic, queue_id, sub_version in (
            (GROUP, TOPIC, 0, version),
            ("nobody", TOPIC, 0, 0),
            (GROUP, "nothing", 0, 0),
            (GROUP, TOPIC, 7, 0),
        ):
            header = headers.PullMessageRequestHeader(group, topic, queue_id, 0, 32, 0, 0, 0, sub_version)
            got.append((await probe.ask("broker-a", RequestCode.PULL_MESSAGE, header)).code)

    execute(a_scenario(consumers=1, queues=1, rate_per_s=4), script)

    assert got == [
        ResponseCode.SUBSCRIPTION_NOT_LATEST,
        ResponseCode.SUBSCRIPTION_NOT_EXIST,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.INVALID_PARAMETER,
    ]


def test_a_lost_answer_to_a_pull_costs_30_s_and_a_second():
    async def script(stage: Stage) -> None:
        await stage.at_ms(5_000)
        stage.cut("broker-a", "c1", one_way=True)
        await stage.at_ms(8_000)
        stage.heal("broker-a", "c1")
        await stage.at_ms(50_000)

    # Heartbeats and lists do not fall into the cut.
    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=1), script)

    (timed_out,) = trace.select("rpc", src="c1", code=11, event="timed_out")
    consumed = [row.at_ms for row in trace.select("messages", event="consumed")]
    (gap,) = [(a, b) for a, b in itertools.pairwise(consumed) if b - a > 2_000]
    assert gap[1] - timed_out.at_ms in (1_002, 1_003)
    assert round(gap[1] - gap[0], -2) == 31_000
    assert [len(node) for node in trace.consumed().values()] == [1] * len(trace.consumed())
