"""What explains an interval, and for how long: windows against counting each instant, and each cause by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.trace_rows import GROUP, SECOND, HandMadeTrace, found_in
from emulator.analysis.findings.finding import Cause
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.inputs.causes import CauseWindow, Windows
from support.every_case import each_case

INSTANTS = st.integers(0, 40)
SPANS = st.tuples(INSTANTS, INSTANTS).filter(lambda span: span[0] < span[1])
WINDOWS = st.lists(
    st.builds(
        lambda span, cause, external: CauseWindow(*span, cause, str(span), external, ""),
        SPANS,
        st.sampled_from([Cause.NOTIFIED, Cause.ROUTE, Cause.SILENT]),
        st.booleans(),
    ),
    max_size=6,
)


def windows_of(windows):
    return Windows(Bounds(), sorted(windows, key=lambda window: window.start_ns))


@given(windows=WINDOWS, span=SPANS, external=st.booleans())
def test_excess_is_every_instant_that_no_window_covers(windows, span, external):
    chosen = [window for window in windows if window.external or not external]
    bare = [t for t in range(*span) if not any(item.start_ns <= t < item.end_ns for item in chosen)]
    judged = windows_of(windows).explain(*span, (), external=external)
    assert judged.excess_ns == len(bare)
    reaching = [item.end_ns for item in chosen if item.start_ns <= span[0] < item.end_ns]
    if not reaching:
        assert (judged.cause, judged.explained_by) == (Cause.NONE, "")
    else:
        assert judged.explained_by in [item.what for item in chosen if item.end_ns == max(reaching)]
        assert (judged.excess_ns > judged.limit_ns) == bool(bare)


@given(windows=WINDOWS, spans=st.lists(SPANS, max_size=4))
def test_what_is_unexplained_is_what_no_external_window_covers(windows, spans):
    outside = [window for window in windows if window.external]
    bare = [t for span in spans for t in range(*span) if not any(item.start_ns <= t < item.end_ns for item in outside)]
    assert windows_of(windows).unexplained_ns(spans) == len(bare)


def overlap_after(begin, cause_at_s, lasts_s):
    """A group that agreed long ago, something that happens, and an overlap from then on."""
    trace = HandMadeTrace().life("a", "ready", GROUP, role="consumer").life("b", "ready", GROUP, role="consumer")
    trace.life("x", "ready", "another", role="consumer").life("p", "ready", role="producer")
    trace.roles |= {"broker-a": "broker", "broker-b": "broker"}
    trace.at(1).believe("a", 1).own("a", "acquired", offset=0)
    begin(trace.at(cause_at_s))
    trace.at(cause_at_s).own("b", "acquired", offset=0).at(cause_at_s + lasts_s).own("a", "dropped")
    (overlap,) = found_in(trace, 900)["overlaps"]
    return overlap


CAUSES = {
    "nothing": (lambda trace: trace, Cause.NONE, 21),
    "another member comes": (lambda trace: trace.believe("broker-a", ["a", "b"], GROUP, "consumer_ids"), "notified", 2),
    "a member is killed": (lambda trace: trace.life("b", "killed").life("b", "started", GROUP), "returned", 51),
    "a member is suspended": (lambda trace: trace.life("b", "suspended"), "silent", 151),
    "its link is cut": (lambda trace: trace.fault("begin", "f", "cut", "a -> broker-b"), "silent", 151),
    "its link is healed": (lambda trace: trace.fault("end", "f", "cut", "a -> broker-b"), "returned", 51),
    "a broker stops": (lambda trace: trace.life("broker-a", "stopping"), "route", 51),
    "a broker is silent": (lambda trace: trace.life("broker-b", "powered_off", role="broker"), "silent", 176),
    "a link of a nameserver is cut": (
        lambda trace: trace.life("ns", "ready", role="nameserver").fault("begin", "f", "cut", "ns <-> broker-a"),
        "silent",
        176,
    ),
    "a clock jumps": (lambda trace: trace.fault("begin", "f", "clock_jump", "broker-a"), "returned", 51),
    "a permission is taken": (lambda trace: trace.fault("begin", "f", "permission", "orders"), "route", 51),
    "a producer is cut off": (lambda trace: trace.fault("begin", "f", "cut", "p -> p"), Cause.NONE, 21),
    "another group's member is killed": (lambda trace: trace.life("x", "killed"), Cause.NONE, 21),
}


@each_case("name", [name for name in CAUSES if name != "a member is suspended"])
def test_an_interval_is_baseline_up_to_the_bound_of_its_cause_and_no_longer(name):
    begin, cause, bound_s = CAUSES[name]
    within, beyond = (overlap_after(begin, 300, bound_s + more_s) for more_s in (0, 0.1))
    assert (within.cause, within.violation) == (cause, False)
    assert (beyond.cause, beyond.violation) == (cause, True)


def test_an_owner_that_sleeps_makes_no_excess_however_long():
    found = overlap_after(CAUSES["a member is suspended"][0], 300, 400)
    assert (found.cause, found.active_ns, found.excess_ns, found.violation) == ("silent", 0, 0, False)


def test_an_owner_that_a_fault_keeps_from_the_broker_of_its_queue_makes_no_excess_while_the_fault_lasts():
    def cut_for(seconds):
        return lambda trace: (
            trace.fault("begin", "f", "cut", "a <-> broker-a")
            .at(300 + seconds)
            .fault("end", "f", "cut", "a <-> broker-a")
            .at(300)
        )

    assert not overlap_after(cut_for(400), 300, 400).violation
    assert overlap_after(cut_for(200), 300, 400).violation


def test_an_ordered_group_waits_for_the_lock_of_a_dead_member():
    def orphan(seconds):
        trace = HandMadeTrace().life("a", "ready", GROUP, role="consumer").life("b", "ready", GROUP, role="consumer")
        trace.roles["broker-a"] = "broker"
        trace.believe("broker-a", {}, GROUP, "queue_locks").at(1).believe("a", 1).own("a", "acquired", offset=0)
        trace.at(300).life("a", "killed").at(300 + seconds).own("b", "acquired", offset=0)
        (found,) = found_in(trace, 900)["orphans"]
        return found.cause, found.violation

    assert orphan(81) == (Cause.ORDER_LOCK, False)
    assert orphan(81.1) == (Cause.ORDER_LOCK, True)


def test_bounds_follow_the_timers_of_the_options():
    slow = Bounds(wait_interval_ms=5_000, route_poll_ms=10_000, heartbeat_ms=7_000, channel_expired_ms=45_000)
    assert {cause: slow.of(cause) / 1000 for cause in Cause} == {
        "start": 16,
        "notified": 2,
        "round": 6,
        "order lock": 66,
        "route": 16,
        "returned": 16,
        "silent": 61,
        "assigner": 26,
        "none": 6,
    }


def test_the_start_lasts_a_round_and_a_route_poll_after_the_first_agreement():
    def overlap(begins_s, lasts_s):
        trace = HandMadeTrace().at(1).believe("a", 1).at(5).own("a", "acquired", offset=0)
        trace.at(begins_s).own("b", "acquired", offset=0).at(begins_s + lasts_s).own("a", "dropped")
        (found,) = found_in(trace, 300)["overlaps"]
        return found.cause, found.violation

    # All agree for the first time at 5 s.
    assert overlap(10, 46) == (Cause.START, False)
    assert overlap(10, 46.1) == (Cause.START, True)
    assert overlap(57, 21) == (Cause.NONE, False)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_equally_long_harm_the_first_queue_is_reported_in_whichever_order_they_come(order):
    trace = HandMadeTrace().at(1).believe("a", 1)
    for queue_id in order:
        trace.own("a", "acquired", queue_id, offset=0)
    for event, at_s in (("acquired", 100), ("dropped", 110)):
        trace.at(at_s)
        for queue_id in order:
            trace.own("b", event, queue_id, offset=0)
    (found,) = found_in(trace, 1_052)["budgets"]
    assert (found.longest.queue.queue_id, found.longest.start_ns) == (0, 100 * SECOND)


def test_short_harm_without_a_cause_is_added_up_and_that_of_faults_is_not():
    def budget(times, fault=False):
        trace = HandMadeTrace().at(1).believe("a", 1).own("a", "acquired", offset=0)
        for number in range(times):
            start = 100 + 60 * number
            if fault:
                trace.at(start).fault("begin", f"f{number}", "cut", "broker-a <-> broker-b")
            trace.at(start).own("b", "acquired", offset=0).at(start + 10).own("b", "dropped")
        (found,) = found_in(trace, 1_052)["budgets"]
        return found

    # One queue, watched for 1,000 s after its start: 36 s per hour are 10 s.
    assert (budget(1).overlap_ns, budget(1).observed_ns, budget(1).violation) == (10 * SECOND, 1_000 * SECOND, False)
    assert budget(2).violation
    assert not budget(2, fault=True).violation
