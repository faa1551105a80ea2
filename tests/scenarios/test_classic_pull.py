"""Classic pull consumers: a list of queues from the rebalance, and an application that pulls what it wants."""

from itertools import pairwise

import attrs
import pytest

from emulator.spec import load
from emulator.spec.bundled import example
from emulator.spec.model.scenario import ConsumerGroupSpec, TopicSpec
from emulator.testing import GROUP, TOPIC, Stage, a_scenario, execute
from nodes.config import PullApplication, PullConsumerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import MessageModel

PULL, HEARTBEAT, COMMIT = RequestCode.PULL_MESSAGE, RequestCode.HEART_BEAT, RequestCode.UPDATE_CONSUMER_OFFSET
QUERY = RequestCode.QUERY_CONSUMER_OFFSET
SETTLED_MS = 20_000
"""All members have joined by then. Before, the last one may find no stored offset of a queue and start at 0."""
CALM_MS = 120_000
LOOP, ALL = PullApplication.QUEUES_IN_BALANCE, PullApplication.SUBSCRIBE_QUEUES


def classic(*, consumers=1, consume_ms=0, queues=4, rate_per_s=20, **options):
    """A group of classic pull consumers."""
    names = tuple(f"c{number}" for number in range(1, consumers + 1))
    group = ConsumerGroupSpec(GROUP, names, (TOPIC,), PullConsumerConfig(**options), consume_ms)
    return a_scenario(consumers=(group,), topics=(TopicSpec(TOPIC, ("broker-a",), queues),), rate_per_s=rate_per_s)


def sent(trace, node, code, **between):
    """When a node sent the requests of a code."""
    rows = trace.select("rpc", src=node, code=int(code), event="delivered", **between)
    return [row.sent_ms for row in rows if row.kind != "response"]


def consumed(trace, **chosen):
    """(queue, offset) of each message that a node consumed, in order."""
    return [(row.queue_id, row.offset) for row in trace.select("messages", event="consumed", topic=TOPIC, **chosen)]


def twice(trace, *, after_ms=0):
    """(queue, offset) of each message that was consumed more than once from an instant on."""
    found = consumed(trace, after_ms=after_ms)
    return sorted({item for item in found if found.count(item) > 1})


def test_members_share_the_queues_and_each_queue_is_pulled_by_its_own_task():
    trace = execute(classic(consumers=2), for_ms=60_000)

    assert sorted(node for (node,) in trace.owners().values()) == ["c1", "c1", "c2", "c2"]
    assert twice(trace, after_ms=SETTLED_MS) == []
    assert len(trace.stored()) - len(trace.consumed()) <= 8


def test_the_first_rebalance_follows_the_first_heartbeat_and_the_first_pull_follows_at_once():
    trace = execute(classic(), for_ms=10_000)

    (ready,) = trace.select("lifecycle", node="c1", event="ready")
    taken = trace.select("ownership", node="c1", event="acquired", topic=TOPIC)[0]
    assert 900 < sent(trace, "c1", HEARTBEAT)[0] - ready.at_ms < 1_100
    assert 0 < taken.at_ms - sent(trace, "c1", HEARTBEAT)[0] < 100
    assert sent(trace, "c1", PULL)[0] - taken.at_ms < 10


def test_a_queue_pauses_for_200_ms_between_pulls_which_brokers_do_not_hold():
    trace = execute(classic(queues=1, rate_per_s=0), for_ms=30_000)

    pulls = sent(trace, "c1", PULL, after_ms=10_000)
    # A millisecond there and one back.
    assert {after - before for before, after in pairwise(pulls)} == {202}


def test_with_pull_block_if_not_found_brokers_hold_pulls_for_20_s():
    trace = execute(classic(queues=1, rate_per_s=0, pull_block_if_not_found=True), for_ms=90_000)

    pulls = sent(trace, "c1", PULL)
    assert all(20_000 < after - before <= 25_300 for before, after in pairwise(pulls))
    assert len(pulls) >= 3


def test_brokers_learn_an_offset_5_s_later_at_most_and_a_crash_repeats_what_was_not_sent():
    async def script(stage: Stage) -> None:
        await stage.at_ms(34_500)
        await stage.kill("c1")
        await stage.for_ms(1_000)
        stage.start("c1")
        await stage.for_ms(20_000)

    trace = execute(classic(queues=1), script)

    commits = sent(trace, "c1", COMMIT, after_ms=15_000, until_ms=34_500)
    assert {after - before for before, after in pairwise(commits)} == {5_000}
    offsets = [offset for _, offset in twice(trace)]
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    assert 0 < len(offsets) <= 6 * 20


@pytest.mark.trap("C52")
def test_the_batch_in_process_when_a_queue_is_given_away_is_consumed_again():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(33_000)
        stage.start("c2")
        await stage.for_ms(30_000)

    trace = execute(classic(consumers=2, queues=2, consume_ms=3_000), script)

    (drop,) = trace.select("ownership", node="c1", event="dropped", topic=TOPIC)
    after_drop = consumed(trace, node="c1", queue_id=drop.queue_id, after_ms=drop.at_ms + 1)
    # The task was cancelled, and its batch was not: the drop has committed the offset before it.
    assert after_drop != []
    assert set(after_drop) <= set(consumed(trace, node="c2"))


@pytest.mark.trap("C53")
def test_a_query_for_the_offset_that_fails_makes_the_application_start_at_0():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.kill("c1")
        stage.start("c1")
        # The query is given up after 5 s, the pull from 0 is answered when the broker runs on.
        await stage.suspend("broker-a", 10_000)
        await stage.for_ms(10_000)

    trace = execute(classic(queues=1, pull_application=ALL), script)

    assert consumed(trace, node="c1", after_ms=31_000)[0] == (0, 0)


def test_one_thread_pulls_the_queues_in_balance_in_turn():
    trace = execute(classic(consumers=2, pull_application=LOOP, consume_ms=100), for_ms=60_000)

    assert sorted(node for (node,) in trace.owners().values()) == ["c1", "c1", "c2", "c2"]
    assert twice(trace, after_ms=SETTLED_MS) == []
    # One thread processes two queues, so a batch of the one waits for a batch of the other.
    batches = trace.select("messages", event="consumed", node="c1", after_ms=20_000)
    assert all(after.at_ms - before.at_ms >= 100 for before, after in pairwise(batches) if after.at_ms != before.at_ms)


@pytest.mark.trap("C51")
def test_members_that_pull_all_queues_consume_each_message_and_some_of_them_every_5_s():
    config = PullConsumerConfig(pull_application=ALL)
    groups = (
        ConsumerGroupSpec(GROUP, ("c1",), (TOPIC,), config),
        ConsumerGroupSpec(GROUP, ("c2",), (TOPIC,), config, start_after_ms=2_500),
    )
    trace = execute(a_scenario(consumers=groups, queues=4, rate_per_s=20), for_ms=60_000)

    assert sorted(node for (node,) in trace.owners().values()) == ["c1", "c1", "c2", "c2"]
    by_c1 = consumed(trace, node="c1")
    missing = {(queue_id, offset) for _, queue_id, offset in trace.stored()} - set(by_c1)
    assert len(missing) <= 8
    # The periodic commit forgets offsets of queues that are not allocated, and the broker has that of their owner.
    foreign = [queue_id for (_, queue_id), (node,) in trace.owners().items() if node == "c2"]
    settled = consumed(trace, node="c1", after_ms=SETTLED_MS)
    repeated = [item for item in settled if settled.count(item) > 1]
    assert repeated != []
    assert {queue_id for queue_id, _ in repeated} <= set(foreign)


def test_without_rebalance_it_owns_nothing_and_pulls_all_queues():
    trace = execute(classic(enable_rebalance=False, pull_application=ALL), for_ms=30_000)

    assert trace.select("ownership") == []
    assert sent(trace, "c1", COMMIT) == []
    assert len(trace.consumed()) > 300


def test_broadcasting_members_pull_all_queues_and_keep_their_offsets_in_a_file():
    trace = execute(classic(consumers=2, message_model=MessageModel.BROADCASTING), for_ms=60_000)

    assert sent(trace, "c1", COMMIT) == sent(trace, "c1", QUERY) == []
    for node in ("c1", "c2"):
        assert len(consumed(trace, node=node)) > 700
        assert len(set(consumed(trace, node=node))) == len(consumed(trace, node=node))


@pytest.mark.parametrize("application", [PullApplication.SCHEDULE_SERVICE, LOOP])
def test_an_orderly_stop_commits_what_the_application_has_set(application):
    async def script(stage: Stage) -> None:
        await stage.at_ms(33_000)
        await stage.stop("c1")
        await stage.for_ms(1_000)
        stage.start("c1")
        await stage.for_ms(10_000)

    trace = execute(classic(queues=1, pull_application=application), script)

    assert len(trace.consumed()) > 700
    assert twice(trace) == []


def test_in_the_example_a_member_that_comes_back_repeats_batches_and_auditors_repeat_foreign_queues():
    scenario = load(example("classic_pull.toml"))
    (producer,) = scenario.producers
    few = attrs.evolve(scenario, producers=(attrs.evolve(producer, rate_per_s=12),))
    trace = execute(few, for_ms=scenario.run_for_ms)

    def repeated(group, **between):
        rows = trace.select("messages", event="consumed", topic=TOPIC, group=group, **between)
        found = [(row.node, row.broker_name, row.queue_id, row.offset) for row in rows]
        return len(found) - len(set(found)), len(found) - len({place[1:] for place in found})

    _, by_anyone = repeated("invoices", until_ms=CALM_MS)
    assert by_anyone > 0
    assert repeated("invoices", after_ms=CALM_MS) == (0, 0)
    by_one, by_anyone = repeated("audits", after_ms=CALM_MS)
    assert 0 < by_one < by_anyone
