"""When a server last heard from a node, from the frames of a run."""

import pytest

from analysis.trace_rows import HandMadeTrace
from emulator.run import run_scenario
from emulator.testing import a_scenario
from emulator.trace.schema import COUNTS, TraceLevel
from emulator.web.heartbeats import LastHeartbeats
from nodes.protocol.codes import RequestCode

BEATS, PULL = RequestCode.HEART_BEAT, RequestCode.PULL_MESSAGE


def test_only_a_heartbeat_that_arrived_counts():
    trace = HandMadeTrace().at(3).ask("c1", "b", BEATS, -1, kind="request")
    trace.at(5).ask("c1", "b", BEATS, -1, kind="request", event="dropped")
    trace.at(7).ask("c1", "b", BEATS).ask("c1", "b", PULL, -1, kind="request")
    beats = LastHeartbeats()
    beats.take(COUNTS, trace.rows[COUNTS.name])
    assert beats.changed == {"b c1": 3_000}


@pytest.mark.parametrize(("level", "exact"), [(TraceLevel.FULL, True), (TraceLevel.FINDINGS, False)])
def test_a_cluster_notifies_them_at_each_level(tmp_path, level, exact):
    beats = LastHeartbeats()

    async def listen(session):
        session.cluster.world.recorder.batch_listeners.append(beats.take)

    run_scenario(a_scenario(consumers=1, run_for_ms=45_000), level=level, runs=tmp_path, session_tasks=(listen,))
    assert list(beats.changed) == ["ns-1 broker-a", "broker-a c1"]
    assert all(at_ms >= 29_000 for at_ms in beats.changed.values())
    assert all(at_ms % 1_000 == 0 for at_ms in beats.changed.values()) is not exact
