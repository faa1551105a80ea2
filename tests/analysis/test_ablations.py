"""Each invariant is broken once by a cluster that lacks what protects it, and by none that is merely busy."""

import pytest
from played_frames import frames_of_played

from emulator.analysis.agreement import layered
from emulator.analysis.baseline import with_violation
from emulator.analysis.disturbances import first_agreement
from emulator.analysis.loss import lost
from emulator.analysis.offsets import offset_faults
from emulator.analysis.order import order
from emulator.analysis.orphan import orphan
from emulator.analysis.overlap import overlap
from emulator.analysis.view import view
from emulator.analysis.view_parts import view_parts
from emulator.sources.stage import GROUP, TOPIC, play, scenario
from nodes.config import AllocateStrategy, BrokerConfig, ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode

ORDERED = ConsumerConfig(consume_orderly=True)
AB = {"broker-a": BrokerConfig(), "broker-b": BrokerConfig()}


async def a_member_dies_and_returns(stage):
    await stage.at(60)
    await stage.host("c2").kill()
    await stage.at(75)
    stage.host("c2").start()
    await stage.at(90)
    await stage.host("c1").shutdown()
    await stage.at(100)


async def nothing_happens(stage):
    await stage.at(80)


async def the_owner_is_cut_off_with_a_batch(stage):
    await stage.at(30)
    stage.cut("c1", "broker-a")
    await stage.at(230)


def a_stranger_commits(offset, *, owner_is_dead):
    async def script(stage):
        await stage.at(60)
        if owner_is_dead:
            await stage.host("c1").kill()
        header = headers.UpdateConsumerOffsetRequestHeader(GROUP, TOPIC, 0, offset)
        await stage.ask("broker-a", RequestCode.UPDATE_CONSUMER_OFFSET, header)
        await stage.at(63)
        if owner_is_dead:
            stage.host("c1").start()
        await stage.at(80)

    return script


async def the_master_dies_with_what_its_slave_has_not_copied(stage):
    await stage.at(110)
    await stage.host("c1").kill()
    await stage.host("broker-a").kill()
    await stage.at(115)
    stage.host("c1").start()
    await stage.at(150)


async def a_broker_hears_one_member_no_more(stage):
    await stage.at(60)
    stage.cut("c2", "broker-b", one_way=True)
    await stage.at(260)


async def a_dead_queue_comes_back(stage):
    await stage.host("c2").kill()
    await stage.at(25)
    stage.host("c2").start()
    await stage.at(29)
    await stage.host("c2").kill()
    await stage.at(160)


def two_strategies():
    circle = ConsumerConfig(allocate_message_queue_strategy=AllocateStrategy.AVG_BY_CIRCLE)
    return scenario(configs=(ConsumerConfig(), ConsumerConfig(), circle), queues=8)


@pytest.fixture(scope="module")
def traces():
    one = {"consumers": 1, "queues": 1, "rate_per_s": 5}
    slave_reads = {"brokers": {"broker-a": BrokerConfig(slave_read_enable=True)}, "slaves": 1}
    return {
        "busy": play(scenario(consumers=3, rate_per_s=20, consume_ms=5, spread_ms=10_000), a_member_dies_and_returns),
        "busy in order": play(scenario(consumers=2, rate_per_s=10, consume_ms=90, config=ORDERED), nothing_happens),
        "V1": play(two_strategies(), nothing_happens),
        "V2": play(scenario(queues=2, rate_per_s=2, consume_ms=15_000, config=ORDERED), a_dead_queue_comes_back),
        "V3": play(
            scenario(queues=2, rate_per_s=1, consume_ms=150_000, config=ORDERED), the_owner_is_cut_off_with_a_batch
        ),
        "V4": play(scenario(**one), a_stranger_commits(3, owner_is_dead=False)),
        "V5": play(scenario(**one, **slave_reads), the_master_dies_with_what_its_slave_has_not_copied),
        "V6": play(scenario(brokers=AB, consumers=3, spread_ms=10_000), a_broker_hears_one_member_no_more),
        "V7": play(scenario(**one), a_stranger_commits(310, owner_is_dead=True)),
    }


@pytest.fixture(scope="module")
def found(spark, traces):
    """Id -> rows of the runs that violate it, all runs asked at once."""
    frames = frames_of_played(spark, traces)
    overlaps = overlap(frames.ownership, frames.lifecycle, frames.runs).localCheckpoint()
    orphans = orphan(frames.ownership, frames.lifecycle, frames.runs).localCheckpoint()
    divergent = layered(view(frames.beliefs, frames.lifecycle, frames.runs), overlaps, orphans).localCheckpoint()
    agreed = first_agreement(frames.beliefs, frames.ownership, divergent).localCheckpoint()
    slips = offset_faults(frames.ownership, frames.messages).localCheckpoint()
    outside = order(frames.beliefs, frames.messages, frames.lifecycle)
    halves = view_parts(frames.beliefs, frames.lifecycle, frames.runs)
    rows = {
        "V1": with_violation(overlaps, agreed).where("violation"),
        "V2": with_violation(orphans, agreed).where("violation"),
        "V3": with_violation(outside, agreed).where("violation OR disordered"),
        "V4": slips.where("violation AND what = 'regressed'"),
        "V5": slips.where("violation AND what <> 'regressed'"),
        "V6": with_violation(halves, agreed).where("violation"),
        "V7": lost(frames.ownership, frames.messages, slips),
    }
    return {name: frame.collect() for name, frame in rows.items()}


@pytest.mark.parametrize("run", ["busy", "busy in order"])
def test_members_that_come_and_go_break_nothing(found, run):
    assert [name for name, rows in found.items() if any(row.run == run for row in rows)] == []


@pytest.mark.parametrize("run", ["V1", "V2", "V3", "V4", "V5", "V6", "V7"])
def test_what_protects_an_invariant_is_missed_where_it_is_away(found, run):
    assert run in [row.run for row in found[run]]


def test_a_late_commit_moves_the_offset_back_to_where_it_says(found):
    (row,) = [row for row in found["V4"] if row.run == "V4"]
    assert row.offset == 3
    assert 290 < row.expected < 310


def test_a_successor_at_a_slave_replays_what_the_slave_had_not_copied(found):
    (row,) = [row for row in found["V5"] if row.run == "V5"]
    assert row.what == "replays"
    # The slave copied everything a minute after its start; since then there were five messages a second.
    assert 200 < row.expected - row.offset < 300


def test_a_commit_beyond_what_was_consumed_loses_what_lies_between(found):
    (row,) = [row for row in found["V7"] if row.run == "V7"]
    assert (row.first_offset, row.last_offset, row.lost) == (300, 309, 10)
