"""Consumers that pull for an application which polls."""

from itertools import pairwise

import pytest

from emulator.spec.model.scenario import ConsumerGroupSpec, TopicSpec
from emulator.testing import GROUP, RETRY, TOPIC, Stage, a_scenario, execute
from nodes.config import ConsumerConfig, LitePullConsumerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import SubscriptionGroupConfig

PULL, LITE_PULL, HEARTBEAT = RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.HEART_BEAT
BATCH = 10
STUCK_MS = 10**7
"""For longer than any of these runs."""


def topics(queues=4):
    """The retry topic is there from the start: else the first member waits for it while the second one joins."""
    return TopicSpec(TOPIC, ("broker-a",), queues), TopicSpec(RETRY, ("broker-a",), 1)


def lite(*, consumers=1, consume_ms=0, queues=4, rate_per_s=20, **options):
    """A group of lite pull consumers."""
    names = tuple(f"c{number}" for number in range(1, consumers + 1))
    group = ConsumerGroupSpec(GROUP, names, (TOPIC,), LitePullConsumerConfig(**options), consume_ms)
    return a_scenario(consumers=(group,), topics=topics(queues), rate_per_s=rate_per_s)


def one_that_is_stuck(**options):
    """c1 works, c2 takes for ever on what its first poll returns."""
    config = LitePullConsumerConfig(**options)
    groups = (
        ConsumerGroupSpec(GROUP, ("c1",), (TOPIC,), config),
        ConsumerGroupSpec(GROUP, ("c2",), (TOPIC,), config, STUCK_MS),
    )
    return a_scenario(consumers=groups, topics=topics(), rate_per_s=20)


def sent(trace, node, code, **between):
    """When a node sent the requests of a code."""
    rows = trace.select("rpc", src=node, code=int(code), event="delivered", **between)
    return [row.sent_ms for row in rows if row.kind != "response"]


def cached(stage, node):
    """How many messages of each queue wait for a poll."""
    return [pq.msg_count for pq in stage.node(node).rebalance.process_queues.values()]


def twice(trace):
    """The messages that were consumed more than once."""
    return [key for key, node in trace.consumed().items() if len(node) > 1]


def committed(trace, queue_id=0, **between):
    """(instant, offset) of each change of a queue's offset at its broker."""
    rows = trace.select("messages", event="committed", topic=TOPIC, queue_id=queue_id, **between)
    return [(row.at_ms, row.offset) for row in rows]


def test_members_share_the_queues_and_pull_under_a_code_of_their_own():
    trace = execute(lite(consumers=2), for_ms=30_000)

    assert sorted(node for (node,) in trace.owners().values()) == ["c1", "c1", "c2", "c2"]
    assert sent(trace, "c1", PULL) == []
    assert len(sent(trace, "c1", LITE_PULL)) > 100
    assert twice(trace) == []
    assert len(trace.stored()) - len(trace.consumed()) <= 4


def test_a_group_of_both_kinds_shares_the_queues_too():
    groups = (
        ConsumerGroupSpec(GROUP, ("c1",), (TOPIC,), LitePullConsumerConfig()),
        ConsumerGroupSpec(GROUP, ("c2",), (TOPIC,), ConsumerConfig()),
    )
    trace = execute(a_scenario(consumers=groups, queues=4, rate_per_s=20), for_ms=30_000)

    assert sorted(node for (node,) in trace.owners().values()) == ["c1", "c1", "c2", "c2"]


def test_brokers_hear_of_it_a_second_after_its_start_and_its_name_says_what_it_is():
    async def script(stage: Stage) -> None:
        await stage.at_ms(3_000)
        names.append(stage.node("c1").instance.client_id)

    names = []
    trace = execute(lite(), script)
    pushed = execute(a_scenario(consumers=1), for_ms=3_000)

    (ready,) = trace.select("lifecycle", node="c1", event="ready")
    (pushed_ready,) = pushed.select("lifecycle", node="c1", event="ready")
    assert 900 < sent(trace, "c1", HEARTBEAT)[0] - ready.at_ms < 1_100
    assert sent(pushed, "c1", HEARTBEAT)[0] <= pushed_ready.at_ms
    assert names[0].endswith("@STREAM")


def test_pulls_begin_with_the_rebalance_and_not_half_a_second_later():
    trace = execute(lite(), for_ms=5_000)

    taken = trace.select("ownership", node="c1", event="acquired")[-1]
    assert sent(trace, "c1", LITE_PULL)[0] - taken.at_ms < 10


def test_it_subscribes_to_no_retry_topic():
    trace = execute(lite(), for_ms=10_000)

    assert {row.topic for row in trace.select("ownership", node="c1")} == {TOPIC}


def test_polls_commit_every_5_s_and_brokers_hear_of_it_every_5_s():
    trace = execute(lite(queues=1), for_ms=40_000)

    found = committed(trace, after_ms=15_000)
    assert [after[0] - before[0] for before, after in pairwise(found)] == [5_000] * (len(found) - 1)
    consumed_ms = {row.offset: row.at_ms for row in trace.select("messages", event="consumed")}
    lags_ms = [at_ms - consumed_ms[offset - 1] for at_ms, offset in found]
    # Pulls carry no offset: a broker is behind by up to the two periods together.
    assert len(found) == 5
    assert min(lags_ms) > 0
    assert max(lags_ms) < 10_000


def test_without_auto_commit_the_application_commits_after_each_batch():
    trace = execute(lite(queues=1, auto_commit=False), for_ms=40_000)

    consumed_ms = {row.offset: row.at_ms for row in trace.select("messages", event="consumed")}
    lags_ms = [at_ms - consumed_ms[offset - 1] for at_ms, offset in committed(trace, after_ms=15_000)]
    assert lags_ms != []
    assert max(lags_ms) < 100


def test_an_orderly_stop_does_not_commit_what_polls_returned_last_and_the_restart_consumes_it_again():
    async def script(stage: Stage) -> None:
        await stage.at_ms(33_000)
        await stage.stop("c1")
        await stage.for_ms(1_000)
        stage.start("c1")
        await stage.for_ms(10_000)

    trace = execute(lite(queues=1), script)

    again = trace.select("ownership", event="acquired", topic=TOPIC)[-1]
    assert again.offset == committed(trace, until_ms=again.at_ms)[-1][1]
    offsets = [offset for _, _, offset in twice(trace)]
    assert offsets == list(range(again.offset, again.offset + len(offsets)))
    assert 0 < len(offsets) <= 5 * 20
    assert len(trace.stored()) - len(trace.consumed()) <= 1


def test_an_orderly_stop_without_auto_commit_repeats_nothing():
    async def script(stage: Stage) -> None:
        await stage.at_ms(33_000)
        await stage.stop("c1")
        await stage.for_ms(1_000)
        stage.start("c1")
        await stage.for_ms(10_000)

    trace = execute(lite(queues=1, auto_commit=False), script)

    assert len(trace.consumed()) > 700
    assert twice(trace) == []


def test_a_crash_repeats_what_the_broker_had_not_heard_of():
    async def script(stage: Stage) -> None:
        await stage.at_ms(34_500)
        await stage.kill("c1")
        await stage.for_ms(1_000)
        stage.start("c1")
        await stage.for_ms(10_000)

    trace = execute(lite(queues=1), script)

    again = trace.select("ownership", event="acquired", topic=TOPIC)[-1]
    offsets = [offset for _, _, offset in twice(trace)]
    assert again.offset == committed(trace, until_ms=again.at_ms)[-1][1]
    assert offsets[0] == again.offset
    # A commit and a report of it are up to 5 s old each.
    assert 0 < len(offsets) <= 10 * 20
    assert len(trace.stored()) - len(trace.consumed()) <= 1


def test_a_hand_over_repeats_what_the_old_owner_polled_since_its_last_auto_commit():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(33_000)
        stage.start("c2")
        await stage.for_ms(10_000)

    trace = execute(lite(consumers=2, queues=2), script)

    (drop,) = trace.select("ownership", node="c1", event="dropped", topic=TOPIC)
    (taken,) = [r for r in trace.select("ownership", node="c2", event="acquired") if r.queue_id == drop.queue_id]
    polled = trace.select("messages", event="consumed", node="c1", queue_id=drop.queue_id)
    both = {offset for _, queue_id, offset in twice(trace) if queue_id == drop.queue_id}
    assert {row.offset for row in polled if row.offset >= taken.offset} == both
    assert 0 < len(both) <= 10 * 10
    assert {queue_id for _, queue_id, _ in twice(trace)} == {drop.queue_id}


def test_who_stops_to_poll_keeps_its_queues_and_hears_of_every_rebalance():
    async def script(stage: Stage) -> None:
        await stage.at_ms(200_000)
        counts.extend(cached(stage, "c2"))

    counts = []
    trace = execute(one_that_is_stuck(pull_threshold_for_queue=100), script)

    assert [node for (node,) in trace.owners().values()] == ["c1", "c1", "c2", "c2"]
    assert trace.select("ownership", node="c2", event="dropped") == []
    assert trace.select("messages", event="consumed", node="c2") == []
    assert [at_ms for at_ms in sent(trace, "c2", HEARTBEAT) if at_ms > 170_000] != []
    assert [100 < count <= 100 + BATCH for count in counts] == [True, True]
    # It looks every 50 ms whether there is room, and asks no broker meanwhile.
    assert sent(trace, "c2", LITE_PULL, after_ms=140_000) == []


def test_who_stops_to_poll_gives_queues_to_a_newcomer_and_none_of_what_it_cached_is_lost():
    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.at_ms(40_000)
        stage.start("c1")
        await stage.for_ms(20_000)

    trace = execute(one_that_is_stuck(), script)

    assert [node for (node,) in trace.owners().values()] == ["c1", "c1", "c2", "c2"]
    given = {row.queue_id for row in trace.select("ownership", node="c2", event="dropped")}
    stored = {key for key in trace.stored()[:-1] if key[1] in given}
    assert len(stored) > 300
    assert len(stored - set(trace.consumed())) <= 2


@pytest.mark.parametrize(
    ("options", "minimum", "maximum"),
    [
        ({"pull_threshold_for_queue": 50}, 51, 60),
        ({"consume_max_span": 50}, 52, 61),
        ({"pull_threshold_for_all": 100, "pull_batch_size": 1}, 23, 30),
    ],
)
def test_a_threshold_is_looked_at_before_a_pull_so_a_batch_may_overshoot(options, minimum, maximum):
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        counts.extend(cached(stage, "c1"))

    counts = []
    execute(lite(rate_per_s=100, consume_ms=STUCK_MS, **options), script)

    assert len(counts) == 4
    assert all(minimum <= count <= maximum for count in counts)


def test_as_many_queues_are_pulled_at_once_as_there_are_threads():
    trace = execute(lite(queues=4, rate_per_s=0, pull_thread_nums=1), for_ms=90_000)

    requested = sent(trace, "c1", LITE_PULL)
    # Nothing is there: the one thread waits for the first queue before it asks for the second. It allows 20 s, which
    # are over a moment after the broker has looked for pulls whose time is up, as it does every 5 s.
    assert [after - before for before, after in pairwise(requested)][1:] == [25_000] * 2
    assert 20_000 < requested[1] - requested[0] < 25_000


def test_a_queue_that_no_consumer_pulled_for_more_than_two_minutes_stays():
    trace = execute(lite(queues=8, rate_per_s=0, pull_thread_nums=1), for_ms=200_000)

    assert len(trace.owners()) == 8
    assert trace.select("ownership", event="dropped") == []


def test_a_pull_that_was_refused_is_tried_again_after_a_second():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        closed = SubscriptionGroupConfig(GROUP, consume_enable=False)
        stage.node("broker-a").context.groups.update_subscription_group_config(closed, now_ms=0)
        await stage.at_ms(30_000)

    trace = execute(lite(queues=1), script)

    pulls = sent(trace, "c1", LITE_PULL, after_ms=21_100)
    # A millisecond there and one back.
    assert {after - before for before, after in pairwise(pulls)} == {1_002}
    assert len(pulls) > 5


def test_a_broker_that_is_away_is_tried_again_every_second():
    async def script(stage: Stage) -> None:
        await stage.at_ms(10_000)
        await stage.kill("broker-a")
        await stage.at_ms(15_500)

    trace = execute(lite(queues=1, rate_per_s=0), script)

    refused = [row.sent_ms for row in trace.select("rpc", src="c1", event="refused")]
    assert refused == [11_001, 12_003, 13_005, 14_007, 15_009]


def test_a_broker_that_moves_the_position_moves_the_next_pull_and_the_queue_stays():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.kill("c1")
        stage.node("broker-a").tables.clients.offsets.commit_offset(GROUP, TOPIC, 0, 1_000_000, now_ms=0)
        stage.start("c1")
        await stage.at_ms(60_000)

    trace = execute(lite(queues=1), script)

    taken = trace.select("ownership", node="c1", event="acquired")[-1]
    assert taken.offset == 1_000_000
    assert trace.select("ownership", node="c1", event="dropped") == []
    late = [row.offset for row in trace.select("messages", event="consumed", after_ms=30_000)]
    assert len(late) > 100
    assert max(late) < len(trace.stored())
