"""A producer and the brokers it sends to."""

from emulator.testing import TOPIC, Stage, a_scenario, execute

BROKERS = ("broker-a", "broker-b")


def stored(trace, broker=None, **between):
    rows = trace.select("messages", event="stored", topic=TOPIC, **between)
    return [row for row in rows if broker in (None, row.node)]


def test_messages_go_round_the_queues_of_all_brokers():
    trace = execute(a_scenario(brokers=BROKERS, queues=2, rate_per_s=10), for_ms=12_000)

    queues = [(row.node, row.queue_id) for row in stored(trace)]
    assert len(queues) == 120
    assert {queues.count(queue) for queue in set(queues)} == {30}
    assert queues[:4] == queues[4:8]
    assert {b.at_ms - a.at_ms for a, b in zip(stored(trace)[4:], stored(trace)[5:], strict=False)} == {100}


def test_a_send_to_a_killed_broker_is_repeated_at_the_other_and_nothing_is_lost():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        await stage.kill("broker-b")
        await stage.at_ms(29_950)

    trace = execute(a_scenario(brokers=BROKERS, queues=2, rate_per_s=10), script)

    assert stored(trace, "broker-b", after_ms=10_051) == []
    assert len(stored(trace, after_ms=10_051)) == 199
    # Until the next poll every second message is refused first.
    assert len(trace.select("rpc", src="p1", event="refused")) in (99, 100)


def test_after_the_next_poll_the_producer_leaves_the_dead_broker_alone():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        await stage.kill("broker-b")
        await stage.at_ms(40_000)

    trace = execute(a_scenario(brokers=BROKERS, queues=2, rate_per_s=10), script)

    polled = trace.select("beliefs", node="p1", kind="route", subject=TOPIC, after_ms=10_050)[0].at_ms
    assert 30_000 < polled < 30_100
    assert trace.select("rpc", src="p1", event="refused", after_ms=polled + 10) == []
    assert len(stored(trace, after_ms=31_000)) == 90


def test_a_silent_broker_eats_the_budget_of_a_send_so_the_message_is_lost_after_3_s():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        await stage.power_off("broker-b")
        await stage.at_ms(20_000)

    trace = execute(a_scenario(brokers=BROKERS, queues=1, rate_per_s=10), script)

    gaps = [b.at_ms - a.at_ms for a, b in zip(stored(trace), stored(trace)[1:], strict=False) if b.at_ms > 10_050]
    assert [round(gap, -3) for gap in gaps if gap > 1_000] == [3_000] * 3
    # No time is left to send the message elsewhere; the other broker gets the one after it, at once.
    assert len(trace.select("causes", node="p1", name="send", after_ms=10_050)) == 7
    assert len(stored(trace, after_ms=10_050)) == 3


def test_an_answer_that_is_lost_leaves_a_message_that_its_producer_takes_for_failed():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        stage.cut("broker-a", "p1", one_way=True)
        await stage.at_ms(12_000)
        stage.heal("broker-a", "p1")
        await stage.at_ms(20_000)

    trace = execute(a_scenario(queues=1, rate_per_s=10), script)

    unanswered = trace.select("rpc", src="p1", event="timed_out", code=310)
    assert len(unanswered) == 1
    assert 13_100 <= unanswered[0].at_ms <= 13_110
    assert len(stored(trace, after_ms=10_050, until_ms=13_100)) == 1


def test_without_any_broker_each_send_asks_for_the_route_and_goes_on_when_there_is_one():
    async def script(stage: Stage) -> None:
        await stage.kill("p1")
        await stage.kill("broker-a")
        await stage.at_ms(5_000)
        stage.start("p1")
        await stage.at_ms(15_050)
        stage.start("broker-a")
        await stage.at_ms(20_000)

    trace = execute(a_scenario(queues=1, rate_per_s=10), script)

    requested = trace.select("rpc", src="p1", code=105, kind="request", after_ms=5_000, until_ms=15_000)
    # Each time for the topic, and then for the template that new topics are made from.
    assert 190 <= len(requested) <= 204
    first = stored(trace, after_ms=5_000)[0].at_ms
    assert 15_100 <= first < 15_120


def test_a_producer_that_stops_says_farewell_and_sends_no_more():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        await stage.stop("p1")
        await stage.at_ms(15_000)

    trace = execute(a_scenario(queues=1, rate_per_s=10), script)

    assert [row.at_ms for row in trace.select("rpc", src="p1", code=35, kind="request")] == [10_051]
    assert stored(trace, after_ms=10_100) == []


def test_a_frozen_producer_makes_up_for_its_sends_back_to_back():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_050)
        await stage.suspend("p1", 5_000)
        await stage.at_ms(16_000)

    trace = execute(a_scenario(queues=1, rate_per_s=10), script)

    assert stored(trace, after_ms=10_060, until_ms=15_050) == []
    # One after the other, 2 ms each, until it has caught up.
    caught_up = stored(trace, after_ms=15_050, until_ms=15_170)
    assert len(caught_up) >= 50
    assert len(stored(trace)) in (159, 160)
