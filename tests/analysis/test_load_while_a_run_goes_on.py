"""The load of each second of a run that is under way: what its report says afterwards."""

import attrs
import pytest

from analysis.trace_rows import HandMadeTrace
from emulator.analysis.inputs.facts import facts_of
from emulator.analysis.live.load import LATE_S, STORED, LiveLoad
from emulator.analysis.rendering.shown_report import analyze
from emulator.history.rows.reader import StoredRows
from emulator.run import run_scenario
from emulator.testing import a_scenario
from emulator.trace.run_directory import open_run
from emulator.trace.schema import COUNTS, MESSAGES, TraceLevel
from faults.catalogue import fault_from_words
from faults.plan import Plan, TimedFault
from nodes.beliefs import MessageEvent
from nodes.protocol.codes import RequestCode

END_S = 60
FAULTS = Plan(
    (
        TimedFault("suspend-1", fault_from_words("suspend", ("c1",)), 20_000, 15_000),
        TimedFault("cut-1", fault_from_words("cut", ("p1", "broker-a")), 40_000, 8_000),
    )
)
SCENARIO = attrs.evolve(a_scenario(consumers=2, rate_per_s=10), run_for_ms=END_S * 1_000, faults=FAULTS)


@pytest.mark.parametrize("level", [TraceLevel.FULL, TraceLevel.FINDINGS])
def test_it_reports_what_the_report_finds(tmp_path, level):
    load, reported = LiveLoad(facts_of(SCENARIO, 0).broker_names), []

    async def listen(session):
        world = session.cluster.world
        world.recorder.listeners.append(load.note)
        world.recorder.batch_listeners.append(load.take_frames)
        while True:
            await world.sleep_until_ns(world.timeline.now_ns + 700_000_000)
            world.recorder.flush()
            reported.extend(load.take(world.timeline.now_ns))

    run = run_scenario(SCENARIO, level=level, runs=tmp_path, session_tasks=(listen,)).path
    found = analyze(run)

    assert [item.second for item in reported] == list(range(END_S - LATE_S - 1))
    for series in found["request_series"]:
        assert tuple(item.counts.get(series.name, 0) for item in reported) == series.per_s[: len(reported)], series.name
        assert any(series.per_s), series.name
    for series in found["lag_series"]:
        of = series.group, series.topic
        assert tuple(item.lag.get(of, 0) for item in reported) == series.per_s[: len(reported)]
    assert max(item.lag.get(("g", "orders"), 0) for item in reported) > 50
    rows = StoredRows(open_run(run)).rows(MESSAGES)
    stored = [row.t_ns // 10**9 for row in rows if row.event == MessageEvent.STORED]
    assert [item.counts.get(STORED, 0) for item in reported] == [
        stored.count(second) for second in range(len(reported))
    ]


def test_the_busiest_is_what_was_asked_most_often_without_messages(tmp_path):
    trace = HandMadeTrace().at(1).ask("c1", "b", RequestCode.PULL_MESSAGE, 0, times=900)
    trace.ask("c2", "b", RequestCode.HEART_BEAT, times=3).ask("c1", "b", RequestCode.PULL_MESSAGE, 20, times=400)
    load = LiveLoad({})
    load.take_frames(COUNTS, trace.rows[COUNTS.name])
    load.take_frames(COUNTS, trace.rows[COUNTS.name])

    none, second = load.take((2 + LATE_S) * 10**9)

    assert (none.busiest, none.maximum) == (None, 0)
    assert (second.busiest.answer, second.busiest.client, second.maximum) == ("PULL_RETRY_IMMEDIATELY", "c1", 800)
    load.take_frames(COUNTS, trace.rows[COUNTS.name])
    assert load.take((3 + LATE_S) * 10**9)[0].counts == {}, "what comes too late is left out"
