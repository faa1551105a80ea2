"""Storms that are reported while they go on: those that the report finds, at every level and however rows come."""

from pathlib import Path

import attrs
import pytest

from analysis.trace_rows import HandMadeTrace
from emulator.analysis.live.storms import LiveStorms
from emulator.run import run_scenario
from emulator.spec import load
from emulator.trace.schema import COUNTS, OWNERSHIP, TraceLevel
from emulator.web.feed import PageFeed
from nodes.protocol.codes import RequestCode, ResponseCode

EXAMPLE = Path(__file__).parents[2] / "examples" / "acting_slave.toml"
PULL, RETRY = RequestCode.PULL_MESSAGE, ResponseCode.PULL_RETRY_IMMEDIATELY


def example(until_s):
    return attrs.evolve(load(EXAMPLE), run_for_ms=until_s * 1_000)


def reported(trace, batch=1_000):
    """What is reported about a hand-made trace whose rows come in batches."""
    storms, lines = LiveStorms(), []
    for table in (OWNERSHIP, COUNTS):
        rows = trace.rows[table.name]
        for at in range(0, len(rows), batch):
            lines += (change.line for change in storms.take(table, rows[at : at + batch]))
    return [line.split("request storm: ") for line in lines]


def stormy(times=500, seconds=range(60, 105)):
    trace = HandMadeTrace()
    for second in seconds:
        trace.at(second).ask("c1", "b", PULL, RETRY, times=times)
    return trace.at(130).ask("c1", "b", RequestCode.HEART_BEAT, 0)


@pytest.mark.parametrize("batch", [1, 7, 1_000])
def test_a_storm_is_reported_when_it_begins_and_when_it_is_over(batch):
    begun, over = reported(stormy(), batch)

    assert begun[1] == "c1 -> b: PULL_MESSAGE answered PULL_RETRY_IMMEDIATELY, 500 a second, healthy is 1"
    assert over == [" " * 3 + "105.000  ", "c1 -> b: PULL_MESSAGE is over"]


def test_it_is_reported_within_seconds():
    ((begun, _), _) = reported(stormy(), 1)
    assert float(begun) == 63, "1,500 requests within thirty seconds, 500 each second"


def test_what_is_no_storm_is_not_reported():
    assert reported(stormy(times=49, seconds=range(300))) == []
    assert reported(stormy(times=1_000, seconds=range(0, 600, 30))) == []


def test_a_client_with_many_queues_may_ask_more_often():
    trace = stormy(times=200)
    for queue_id in range(1_000):
        trace.own("c1", "acquired", queue_id)
    assert reported(trace) == []


@pytest.mark.parametrize("level", [TraceLevel.FINDINGS, pytest.param(TraceLevel.FULL, marks=pytest.mark.slow)])
def test_a_cluster_reports_the_storm_that_its_report_finds(tmp_path, level):
    storms, changes = LiveStorms(), []

    async def listen(session):
        recorder = session.cluster.world.recorder
        recorder.batch_listeners.append(lambda table, rows: changes.extend(storms.take(table, rows)))

    run_scenario(example(until_s=125), level=level, runs=tmp_path, session_tasks=(listen,))
    begun, over = (change.line.split("request storm: ")[1] for change in changes)

    assert begun.startswith("consumer-1 -> ba-s1: PULL_MESSAGE answered PULL_RETRY_IMMEDIATELY, 500 a second")
    assert over == "consumer-1 -> ba-s1: PULL_MESSAGE is over"


def test_the_feed_of_the_page_sends_it_among_the_events(tmp_path):
    shown = []

    async def look(session):
        feed = PageFeed(session)
        session.cluster.world.recorder.batch_listeners.append(feed.on_batch)
        world = session.cluster.world
        for at_s in (59, 80):
            await world.sleep_until_ns(at_s * 10**9)
            world.recorder.flush()
            shown.append([line for line in feed.whole()["lines"] if "request storm: " in line])

    run_scenario(example(until_s=81), level=TraceLevel.FINDINGS, runs=tmp_path, session_tasks=(look,))
    before, during = shown

    assert before == []
    assert len(during) == 1, during
