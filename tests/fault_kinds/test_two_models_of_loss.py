"""The same cluster with frames that vanish, and with segments that are sent again."""

import pytest

from emulator.time.mode import TimeMode
from fault_kinds.at_work import busy_cluster
from fault_kinds.by_script import broken, once

BEGIN_MS, END_MS = 20_000, 60_000


def sends(trace):
    """How long each answered send took, of those that began during the fault."""
    requested = {
        (row.connection, row.opaque): row.sent_ms
        for row in trace.select("rpc", kind="request", src="p1")
        if BEGIN_MS <= row.sent_ms < END_MS and row.code in (10, 310)
    }
    answers = (row for row in trace.select("rpc", kind="response", dst="p1", event="delivered"))
    return [
        row.at_ms - requested[row.connection, row.opaque]
        for row in answers
        if (row.connection, row.opaque) in requested
    ]


@pytest.fixture(scope="module")
def with_loss():
    return broken(busy_cluster(1), once("loss 20", BEGIN_MS, END_MS), for_ms=70_000)


@pytest.fixture(scope="module")
def with_tcp_loss():
    return broken(busy_cluster(1), once("tcp-loss 20", BEGIN_MS, END_MS), for_ms=70_000)


def test_calls_time_out_where_frames_vanish_and_take_longer_where_segments_are_sent_again(with_loss, with_tcp_loss):
    lost, late = (
        len(trace.select("rpc", event="timed_out", after_ms=BEGIN_MS, until_ms=END_MS))
        for trace in (with_loss, with_tcp_loss)
    )
    quick, slow = sends(with_loss), sends(with_tcp_loss)

    assert lost > 20
    assert late <= lost / 10
    assert max(quick) < 10
    assert max(slow) > 600
    assert len(with_loss.select("rpc", event="dropped", detail="it")) > 50


def test_no_segment_is_lost_for_good(with_tcp_loss):
    assert with_tcp_loss.select("rpc", event="dropped") == []
    assert with_tcp_loss.select("rpc", event="broken") == []


def test_no_message_is_stored_twice_by_a_kernel(with_tcp_loss):
    stored = with_tcp_loss.stored()
    assert len(stored) == len(dict.fromkeys(stored)) > 300


@pytest.mark.parametrize("line", ["loss 20", "tcp-loss 20"])
def test_the_trace_is_the_same_in_memory_and_over_loopback(line):
    sim, fast = (
        broken(busy_cluster(1), once(line, 5_000, 15_000), for_ms=20_000, mode=mode)
        for mode in (TimeMode.SIM, TimeMode.FAST)
    )
    assert sim.digest == fast.digest
