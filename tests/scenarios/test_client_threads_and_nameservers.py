"""Which nameserver a client follows, and what waits behind what on its one scheduler thread."""

import json

import pytest

from emulator.spec.model.scenario import TopicSpec
from emulator.testing import GROUP, TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig

BOTH = ("broker-a", "broker-b")
TWO_TOPICS = (TopicSpec(TOPIC, ("broker-a",), 4), TopicSpec("bills", ("broker-b",), 2))


def followed(trace, node="c1", nameservers=3):
    """(instant, nameserver) of each choice."""
    names = {f"127.1.1.{i}:9876": f"ns-{i}" for i in range(1, nameservers + 1)}
    rows = trace.select("beliefs", node=node, kind="nameserver")
    return [(row.at_ms, names[json.loads(row.value)]) for row in rows]


def started(trace, name, **between):
    """When c1's scheduler thread began a job."""
    return [row.at_ms for row in trace.select("causes", node="c1", name=name, **between)]


@pytest.mark.trap("M28")
def test_a_dead_next_nameserver_costs_one_failure_and_the_call_after_it_moves_on():
    scenario = a_scenario(nameservers=3, consumers=1)
    (_, first), *_ = followed(execute(scenario, for_ms=1_000))
    order = [first]
    for _ in range(2):
        order.append(_next_after(scenario, order))

    async def script(stage: Stage) -> None:
        await stage.at_ms(35_000)
        await stage.kill(order[1])
        await stage.kill(order[0])
        await stage.at_ms(100_000)

    trace = execute(scenario, script)

    assert [name for _, name in followed(trace)] == order
    polls = started(trace, "updateTopicRouteInfo", after_ms=35_000)
    assert [at_ms for at_ms, _ in followed(trace)[1:]] == polls[:2]
    assert [row.dst for row in trace.select("rpc", src="c1", event="refused")] == [order[1]]


def _next_after(scenario, dead):
    """Target the client follows when those are gone."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(5_000)
        for name in dead:
            await stage.kill(name)
        await stage.at_ms(70_000 + 30_000 * len(dead))

    return followed(execute(scenario, script))[len(dead)][1]


@pytest.mark.trap("M28")
def test_a_silent_nameserver_costs_one_time_out_and_then_the_other_is_followed():
    scenario = a_scenario(nameservers=2, consumers=1)
    (_, first), *_ = followed(execute(scenario, for_ms=1_000))

    async def script(stage: Stage) -> None:
        await stage.at_ms(25_000)
        await stage.power_off(first)
        await stage.at_ms(70_000)

    trace = execute(scenario, script)

    polls = started(trace, "updateTopicRouteInfo", after_ms=25_000)
    assert [row.at_ms - polls[0] for row in trace.select("rpc", src="c1", code=105, event="timed_out")] == [3_000]
    assert followed(trace)[1:] == [(polls[1], "ns-2" if first == "ns-1" else "ns-1")]


@pytest.mark.trap("C19")
def test_one_nameserver_failure_ends_the_refresh_of_all_topics_after_it():
    async def script(stage: Stage) -> None:
        await stage.at_ms(25_000)
        await stage.power_off("ns-1")
        await stage.at_ms(50_000)

    trace = execute(a_scenario(consumers=1, brokers=BOTH, topics=TWO_TOPICS), script)

    (poll,) = started(trace, "updateTopicRouteInfo", after_ms=25_000)
    lost = trace.select("rpc", src="c1", code=105, event="lost", after_ms=poll)
    assert len(lost) == 1
    assert [row.at_ms - poll for row in trace.select("rpc", src="c1", code=105, event="timed_out")] == [3_000]
    assert trace.select("rpc", src="c1", dst="ns-1", kind="connection", after_ms=25_000, until_ms=50_000) == []


@pytest.mark.trap("C20")
def test_a_dead_broker_holds_up_commits_that_wait_behind_its_heartbeat():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.power_off("broker-b")
        await stage.at_ms(45_000)

    config = ConsumerConfig(heartbeat_broker_interval=33_000)
    trace = execute(a_scenario(consumers=consumer_group(1, config), brokers=BOTH, queues=2), script)

    # Due at 34 s and 35 s: the heartbeat has to wait for broker-b, the commit waits with it.
    assert started(trace, "sendHeartbeat", after_ms=30_000) == [34_004]
    lost = trace.select("rpc", src="c1", event="connect_lost", after_ms=35_500)[0].at_ms
    assert started(trace, "persistAllOffset", after_ms=26_000, until_ms=41_000) == [30_004, lost, 40_004]


def test_without_nameserver_a_consumer_does_not_start_and_no_broker_hears_of_it():
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.kill("ns-1")
        await stage.at_ms(10_000)
        stage.start("c1")
        await stage.at_ms(20_000)

    trace = execute(a_scenario(consumers=1), script)

    life = trace.select("lifecycle", node="c1", incarnation=2)
    assert [row.event for row in life] == ["started", "stopping", "stopped"]
    assert "refused the connection" in life[1].detail
    assert life[2].at_ms == 10_002
    assert trace.select("rpc", src="c1", code=34, after_ms=10_000) == []


@pytest.mark.trap(
    "X21", status="simplified", note="callers of a route wait in line, so a start never goes on next to a refresh"
)
def test_a_nameserver_that_answers_too_late_fails_the_start_as_a_dead_one_does():
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.at_ms(10_000)
        stage.start("c1")
        await stage.at_ms(10_003)
        stage.cut("c1", "ns-1")
        await stage.at_ms(13_000)
        stage.heal("c1", "ns-1")
        await stage.at_ms(20_000)

    trace = execute(a_scenario(consumers=1), script)

    assert trace.select("lifecycle", node="c1", incarnation=2)[-1].event == "stopped"
    assert trace.select("lifecycle", node="c1", incarnation=2, event="stopping")[0].at_ms == 13_000
    assert trace.select("rpc", src="c1", code=34, after_ms=10_000) == []


def test_a_consumer_starts_in_order_routes_then_heartbeat_then_the_first_pass_then_pulls():
    trace = execute(a_scenario(consumers=1, queues=1), for_ms=3_000)

    codes = [row.code for row in trace.select("rpc", src="c1", kind="request", until_ms=1_600)]
    assert codes[:3] == [105, 105, 34]
    ready = trace.select("lifecycle", node="c1", event="ready")[0]
    assert trace.select("rpc", src="c1", code=34)[0].sent_ms < ready.at_ms
    # The heartbeat timer, the list, the stored offset, the end of the queue where none is stored, the first pull.
    rest = [code for code in codes[3:] if code != 105]
    assert sorted(rest[:2]) == [34, 38]
    assert rest[2:5] == [14, 30, 34]
    assert rest[-1] == 11


@pytest.mark.trap("C15")
def test_only_a_later_version_of_a_subscription_replaces_the_one_that_a_broker_knows():
    versions = []

    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        consumers = stage.node("broker-a").tables.clients.consumers
        for instant, name in ((5_000, ""), (20_000, "c2"), (45_000, "")):
            await stage.at_ms(instant)
            versions.append(consumers.find_subscription(GROUP, TOPIC).sub_version)
            if name:
                stage.start(name)
        await stage.at_ms(65_000)
        versions.append(consumers.find_subscription(GROUP, TOPIC).sub_version)

    execute(a_scenario(consumers=2), script)

    epoch_ms = 1_735_689_600_000
    # c1's change at its first pass; then c2's join and c2's own change, which the heartbeats of c1 do not undo.
    assert round(versions[0] - epoch_ms, -2) == 1_000
    assert versions[1] == versions[0]
    assert round(versions[2] - epoch_ms, -2) == 21_000
    assert versions[3] == versions[2]
