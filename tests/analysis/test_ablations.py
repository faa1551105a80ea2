"""Each invariant is broken once by a cluster that lacks what protects it, and by none that is merely busy."""

import pytest

from analysis.executed_rows import found_in_executed
from emulator.analysis.report import judgements
from emulator.testing import GROUP, TOPIC, execute
from nodes.config import AllocateStrategy, BrokerConfig, ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from studies.sources.source import scenario

# What each oracle finds in a trace that can be checked by eye stands in two other files of this folder.
pytestmark = pytest.mark.slow

ORDERED = ConsumerConfig(consume_orderly=True)
AB = {"broker-a": BrokerConfig(), "broker-b": BrokerConfig()}


async def a_member_dies_and_returns(stage):
    await stage.at_ms(60_000)
    await stage.kill("c2")
    await stage.at_ms(75_000)
    stage.start("c2")
    await stage.at_ms(90_000)
    await stage.stop("c1")
    await stage.at_ms(100_000)


async def nothing_happens(stage):
    await stage.at_ms(80_000)


async def the_owner_is_cut_off_with_a_batch(stage):
    await stage.at_ms(30_000)
    stage.cut("c1", "broker-a")
    await stage.at_ms(230_000)


def a_stranger_commits(offset, *, owner_is_dead):
    async def script(stage):
        await stage.at_ms(60_000)
        if owner_is_dead:
            await stage.kill("c1")
        header = headers.UpdateConsumerOffsetRequestHeader(GROUP, TOPIC, 0, offset)
        # Oneway, as clients commit: a commit that waits for an answer is an administrator's.
        (await stage.probe()).send("broker-a", RequestCode.UPDATE_CONSUMER_OFFSET, header)
        await stage.at_ms(63_000)
        if owner_is_dead:
            stage.start("c1")
        await stage.at_ms(80_000)

    return script


async def the_master_dies_with_what_its_slave_has_not_copied(stage):
    await stage.at_ms(110_000)
    await stage.kill("c1")
    await stage.kill("broker-a")
    await stage.at_ms(115_000)
    stage.start("c1")
    await stage.at_ms(150_000)


async def a_broker_hears_one_member_no_more(stage):
    await stage.at_ms(60_000)
    stage.cut("c2", "broker-b", one_way=True)
    await stage.at_ms(260_000)


async def a_dead_queue_comes_back(stage):
    await stage.kill("c2")
    await stage.at_ms(25_000)
    stage.start("c2")
    await stage.at_ms(29_000)
    await stage.kill("c2")
    await stage.at_ms(160_000)


def two_strategies():
    circle = ConsumerConfig(allocate_message_queue_strategy=AllocateStrategy.AVG_BY_CIRCLE)
    return scenario(configs=(ConsumerConfig(), ConsumerConfig(), circle), queues=8)


@pytest.fixture(scope="module")
def traces():
    item = {"consumers": 1, "queues": 1, "rate_per_s": 5}
    slave_reads = {"brokers": {"broker-a": BrokerConfig(slave_read_enable=True)}, "slaves": 1}
    return {
        "busy": execute(
            scenario(consumers=3, rate_per_s=20, consume_ms=5, spread_ms=10_000), a_member_dies_and_returns
        ),
        "busy in order": execute(scenario(consumers=2, rate_per_s=10, consume_ms=90, config=ORDERED), nothing_happens),
        "V1": execute(two_strategies(), nothing_happens),
        "V2": execute(scenario(queues=2, rate_per_s=2, consume_ms=15_000, config=ORDERED), a_dead_queue_comes_back),
        "V3": execute(
            scenario(queues=2, rate_per_s=1, consume_ms=150_000, config=ORDERED), the_owner_is_cut_off_with_a_batch
        ),
        "V4": execute(scenario(**item), a_stranger_commits(3, owner_is_dead=False)),
        "V5": execute(scenario(**item, **slave_reads), the_master_dies_with_what_its_slave_has_not_copied),
        "V6": execute(scenario(brokers=AB, consumers=3, spread_ms=10_000), a_broker_hears_one_member_no_more),
        "V7": execute(scenario(**item), a_stranger_commits(310, owner_is_dead=True)),
    }


@pytest.fixture(scope="module")
def found(traces):
    """Run -> id -> findings that violate it."""
    judged = {run: judgements(found_in_executed(trace)) for run, trace in traces.items()}
    return {
        run: {item.id: [row for row in item.rows if getattr(row, "violation", True)] for item in ones}
        for run, ones in judged.items()
    }


@pytest.mark.parametrize("run", ["busy", "busy in order"])
def test_members_that_come_and_go_break_nothing(found, run):
    assert {name: rows for name, rows in found[run].items() if rows} == {}


@pytest.mark.parametrize("run", ["V1", "V2", "V3", "V4", "V5", "V6", "V7"])
def test_what_protects_an_invariant_is_missed_where_it_is_away(found, run):
    assert found[run][run]


def test_a_late_commit_moves_the_offset_back_to_where_it_says(found):
    (row,) = found["V4"]["V4"]
    assert row.offset == 3
    assert 290 < row.expected < 310


def test_a_successor_at_a_slave_replays_what_the_slave_had_not_copied(found):
    (row,) = found["V5"]["V5"]
    assert row.what == "replays"
    # The slave copied everything a minute after its start; since then there were five messages a second.
    assert 200 < row.expected - row.offset < 300


def test_a_commit_beyond_what_was_consumed_loses_what_lies_between(found):
    (row,) = found["V7"]["V7"]
    assert (row.first_offset, row.last_offset, row.lost) == (300, 309, 10)
