"""When passes run and how long they take."""

import itertools

import pytest

from emulator.spec.model.networks import Network
from emulator.spec.model.scenario import TopicSpec
from emulator.testing import RETRY, TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import PermName, TopicConfig

TWO_TOPICS = (TopicSpec(TOPIC, ("broker-a",), 4), TopicSpec("bills", ("broker-b",), 2))
BOTH = ("broker-a", "broker-b")
STARTED_MS = 4


def lists_requested(trace, node="c1", **between):
    """When the client asked for the members of its group."""
    return [row.sent_ms for row in trace.select("rpc", src=node, code=38, kind="request", **between)]


def test_the_first_pass_comes_a_second_after_the_start_and_the_others_20_s_after_the_end_of_the_last():
    trace = execute(a_scenario(consumers=1), for_ms=50_000)

    assert lists_requested(trace)[0] == STARTED_MS + 1_000
    requested = lists_requested(trace)
    # Two topics, 2 ms each: the next pass begins 20 s after the answer to the second.
    assert trace.passes("c1")[1] - trace.passes("c1")[0] == 20_000 + 4
    assert requested[-4:] == [at + d for at in trace.passes("c1") for d in (0, 2)]


def test_wake_ups_within_a_second_of_a_pass_wait_for_the_second_to_be_over():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(21_100)
        stage.start("c2")
        await stage.at_ms(21_600)
        await stage.kill("c2")
        await stage.at_ms(23_500)

    trace = execute(a_scenario(consumers=2), script)

    (tick,) = trace.passes("c1", until_ms=22_000)
    # The pass of the tick ends after two answers; two wake-ups until then are served by one pass.
    assert lists_requested(trace, after_ms=21_100) == [tick + 4 + 1_000, tick + 4 + 1_002]


def test_a_join_is_served_within_a_second_and_pulled_half_a_second_later():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(30_000)
        stage.start("c2")
        await stage.at_ms(33_000)

    trace = execute(a_scenario(consumers=2), script)

    taken = trace.select("ownership", node="c2", event="acquired", topic=TOPIC)
    pulls = trace.select("rpc", src="c2", code=11, kind="request")
    assert [row.queue_id for row in taken] == [2, 3]
    assert 31_000 < taken[0].at_ms < taken[1].at_ms < 31_010
    assert [row.sent_ms for row in pulls[:2]] == [taken[1].at_ms + 500] * 2


@pytest.mark.trap("C2")
def test_a_consumer_that_gets_no_list_keeps_its_queues_and_tries_again_after_20_s():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.cut("c1", "broker-a")

    trace = execute(a_scenario(consumers=1), script, for_ms=110_000)

    passes = trace.passes("c1", after_ms=30_000)
    # Each topic's call takes up to 3 s to fail, then 20 s pass.
    gaps = [after - before for before, after in itertools.pairwise(passes)]
    assert [20_000 < gap <= 26_000 for gap in gaps] == [True, True]
    assert trace.select("ownership", after_ms=30_000) == []


@pytest.mark.trap("C3")
def test_a_consumer_that_is_missing_in_the_list_drops_everything_one_that_gets_no_list_keeps_it():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(30_000)
        stage.start("c2")
        await stage.at_ms(62_000)
        await stage.host("broker-a").restart()
        await stage.at_ms(120_000)

    # Neither sends a broker that it is there when it connects, only each 60 s: c2 at 91 s, c1 at 121 s.
    config = ConsumerConfig(enable_heartbeat_channel_event_listener=False, heartbeat_broker_interval=60_000)
    trace = execute(a_scenario(consumers=consumer_group(2, config)), script)

    back = trace.select("rpc", src="c2", code=34, after_ms=62_000)[0].at_ms
    assert round(back, -2) == 91_000
    assert trace.select("rpc", src="broker-a", code=38, status=1, after_ms=62_000, until_ms=back) != []
    assert trace.select("ownership", after_ms=62_000, until_ms=back) == []
    gone = trace.select("ownership", node="c1", event="dropped", after_ms=back, topic=TOPIC)
    assert [row.queue_id for row in gone][:2] == [0, 1]
    assert back < gone[0].at_ms < back + 20_000
    # Losing them is a change, which it notifies the broker: a second later it has its share again.
    again = trace.select("ownership", node="c1", event="acquired", after_ms=gone[0].at_ms, topic=TOPIC)
    assert 1_000 < again[0].at_ms - gone[0].at_ms < 1_100
    assert trace.owners() == {("broker-a", i): ["c1" if i < 2 else "c2"] for i in range(4)}


@pytest.mark.trap("C18")
@pytest.mark.trap("C47")
def test_the_queues_of_a_dead_broker_stay_until_the_route_is_polled_and_the_next_tick_comes():
    async def script(stage: Stage) -> None:
        await stage.at_ms(32_000)
        await stage.kill("broker-b")
        await stage.at_ms(90_000)

    trace = execute(a_scenario(consumers=1, brokers=BOTH, queues=2), script)

    polled = trace.select("beliefs", node="c1", kind="route", subject=TOPIC, after_ms=32_000)[0].at_ms
    assert round(polled, -1) == 60_020
    gone = trace.select("ownership", node="c1", event="dropped", broker_name="broker-b", topic=TOPIC)
    tick = next(at for at in trace.passes("c1") if at > polled)
    assert tick - polled > 1_000
    assert [tick <= row.at_ms <= tick + 5 for row in gone] == [True, True]
    # Meanwhile it went on trying to pull them, once a second.
    refused = trace.select("rpc", src="c1", dst="broker-b", event="refused", after_ms=32_000, until_ms=60_000)
    assert len(refused) > 25


@pytest.mark.trap("C18")
def test_a_topic_that_no_nameserver_knows_any_more_stays_owned():
    async def script(stage: Stage) -> None:
        await stage.at_ms(32_000)
        await stage.kill("broker-b")
        await stage.at_ms(150_000)

    trace = execute(a_scenario(consumers=1, brokers=BOTH, topics=TWO_TOPICS), script)

    assert trace.select("rpc", src="ns-1", dst="c1", code=105, status=17, after_ms=60_000) != []
    assert trace.owners(topic="bills") == {("broker-b", 0): ["c1"], ("broker-b", 1): ["c1"]}


@pytest.mark.trap("C17")
def test_each_pass_of_a_topic_without_route_heartbeats_all_brokers_and_looks_for_the_route():
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.kill("broker-b")
        await stage.at_ms(5_000)
        stage.start("c1")
        await stage.at_ms(100_000)
        stage.start("broker-b")
        await stage.at_ms(150_000)

    config = ConsumerConfig(poll_name_server_interval=3_600_000, heartbeat_broker_interval=3_600_000)
    trace = execute(
        a_scenario(consumers=consumer_group(1, config, topics=(TOPIC, "bills")), brokers=BOTH, topics=TWO_TOPICS),
        script,
    )

    passes = trace.passes("c1", after_ms=20_000, until_ms=100_000)
    assert len(passes) == 4
    beats = [
        row.at_ms for row in trace.select("rpc", src="c1", dst="broker-a", code=34, after_ms=20_000, until_ms=100_000)
    ]
    assert [sum(at < beat < at + 100 for beat in beats) for at in passes] == [1, 1, 1, 1]
    # The next pass finds the route; the one after that, woken by the new broker, uses it.
    found = trace.select("beliefs", node="c1", kind="route", subject="bills", after_ms=100_000)[0].at_ms
    first = trace.passes("c1", after_ms=100_000)[0]
    assert first < found < first + 20
    taken = trace.select("ownership", node="c1", event="acquired", topic="bills", after_ms=100_000)
    assert [found + 1_000 < row.at_ms < found + 1_100 for row in taken] == [True, True]


@pytest.mark.trap("X2")
def test_a_topic_without_route_and_without_nameserver_makes_the_client_try_every_second():
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.kill("broker-b")
        await stage.at_ms(5_000)
        stage.start("c1")
        await stage.at_ms(40_000)
        await stage.kill("ns-1")
        await stage.at_ms(65_000)

    trace = execute(a_scenario(consumers=1, brokers=BOTH, topics=TWO_TOPICS), script)

    passes = trace.passes("c1", after_ms=50_000)
    assert len(passes) > 10
    assert {round(after - before, -1) for before, after in itertools.pairwise(passes)} == {1_010}
    assert trace.owners() == {("broker-a", i): ["c1"] for i in range(4)}


@pytest.mark.trap("X1")
def test_a_retry_topic_that_is_new_is_owned_with_the_pass_after_the_one_that_found_its_route():
    config = ConsumerConfig(poll_name_server_interval=3_600_000)
    trace = execute(a_scenario(consumers=consumer_group(1, config), network=Network(8)), for_ms=45_000)

    # The poll came before the first heartbeat had made the topic.
    (taken,) = trace.select("ownership", topic=RETRY, event="acquired")
    (found,) = trace.select("beliefs", node="c1", kind="route", subject=RETRY)
    assert 1_000 < found.at_ms < 1_300
    assert 20_000 < taken.at_ms - found.at_ms < 20_100


@pytest.mark.trap("C46")
def test_a_dead_broker_makes_a_pass_last_and_healthy_queues_wait_for_its_end():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(30_000)
        await stage.power_off("broker-b")
        stage.start("c2")
        await stage.at_ms(40_000)

    trace = execute(a_scenario(consumers=3, brokers=BOTH, queues=4), script)

    # Its share is one queue of broker-a and two of broker-b, whose offsets cannot be read.
    (taken,) = trace.select("ownership", node="c2", event="acquired", topic=TOPIC)
    (pull,) = trace.select("rpc", src="c2", code=11, kind="request")
    assert (taken.broker_name, taken.queue_id, taken.at_ms) == ("broker-a", 3, 31_004)
    assert pull.sent_ms > taken.at_ms + 5_000


@pytest.mark.trap("C4")
def test_a_topic_without_readable_queue_is_retained_and_tried_every_second():
    async def script(stage: Stage) -> None:
        await stage.at_ms(35_000)
        topics = stage.node("broker-a").context.topics
        topics.update_topic_config(TopicConfig(TOPIC, 4, 4, perm=PermName.WRITE), now_ms=0)
        await stage.at_ms(100_000)

    trace = execute(a_scenario(consumers=1), script)

    polled = trace.select("beliefs", node="c1", kind="route", subject=TOPIC, after_ms=35_000)[0].at_ms
    assert trace.select("ownership", after_ms=35_000) == []
    passes = trace.passes("c1", after_ms=polled + 20_000)
    assert {after - before for before, after in itertools.pairwise(passes)} == {1_004}
    refused = trace.select("rpc", dst="c1", code=11, status=int(ResponseCode.NO_PERMISSION))
    assert len(refused) > 20


@pytest.mark.trap("C16")
def test_a_version_that_could_not_be_reported_has_pulls_refused_until_the_next_heartbeat():
    async def script(stage: Stage) -> None:
        await stage.at_ms(25_000)
        await stage.power_off("broker-b")
        await stage.at_ms(32_000)
        await stage.kill("c2")
        await stage.at_ms(65_000)

    # At 32 s the timer's heartbeat hangs at broker-b and has the lock.
    trace = execute(a_scenario(consumers=2, brokers=BOTH, topics=TWO_TOPICS, seed=2), script)

    taken = trace.select("ownership", node="c1", event="acquired", topic=TOPIC, after_ms=32_000)
    assert [round(row.at_ms, -2) for row in taken] == [32_000, 32_000]
    refused = [row.at_ms for row in trace.select("rpc", dst="c1", code=11, status=25)]
    reported = trace.select("rpc", src="c1", dst="broker-a", code=34, after_ms=32_000)[0].at_ms
    assert reported == 61_005
    assert 32_500 < refused[0] < 47_100
    assert reported - 1_100 < refused[-1] < reported
