"""Listeners that fail, in traces written by hand: what is counted, and for how long a queue may wait for them."""

import pytest

from analysis.trace_rows import GROUP, SECOND, TOPIC, HandMadeTrace, found_in
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.measures.measured import LISTENER_FAILURES
from emulator.analysis.measures.measured_symptoms import measured_symptoms
from emulator.analysis.oracles.popped_messages import POPPED
from emulator.analysis.oracles.stalls import STALLS
from emulator.history.rows.queues import GroupQueue

QUEUE = GroupQueue(GROUP, TOPIC, "broker-a", 0)
HANDLE = "0 10000 60000 0 0 broker-a 0 0"
END_S = 200


def owned(*, queues=1, offset=0):
    """A member that owns queues, whose messages were stored when it had begun."""
    trace = (
        HandMadeTrace().life("broker-a", "started", role="broker").life("a", "started", GROUP).life("a", "ready", GROUP)
    )
    trace.subscribe("a")
    for queue_id in range(queues):
        trace.own("a", "acquired", queue_id, offset=offset)
    for queue_id in range(queues):
        trace.at(1).store(0, 1, 2, queue_id=queue_id)
    return trace


def fail(trace, offset, *instants_s, node="a", **of):
    for t_s in instants_s:
        trace.at(t_s).message(node, "consumed", offset, tags="later", **of)
    return trace


def failures(trace, **facts):
    return found_in(trace, END_S, **facts).of(LISTENER_FAILURES)


def severities(trace, **limits):
    context = Context(END_S * SECOND, {}, {}, **limits)
    found = measured_symptoms(found_in(trace, END_S), context)
    return {item.text: item.severity for item in found if item.kind is SymptomKind.FAILING}


# --- what is counted ------------------------------------------------------------------------


def test_the_message_it_failed_with_most_often_is_named_with_its_times():
    trace = fail(owned(), 0, 5)
    trace.at(6).consume("a", 0)
    fail(trace, 1, 7, 8, 9)

    (row,) = failures(trace)
    assert (row.queue, row.failures, row.messages) == (QUEUE, 4, 2)
    assert (row.start_ns, row.end_ns) == (5 * SECOND, 9 * SECOND)
    assert (row.offset, row.times, row.since_ns, row.until_ns) == (1, 3, 7 * SECOND, 9 * SECOND)
    assert (row.censored, row.node) == (True, "a")


def test_a_message_that_succeeds_at_last_is_over():
    (row,) = failures(fail(owned(), 0, 5, 6).at(7).consume("a", 0))
    assert (row.times, row.censored) == (2, False)


def test_a_listener_that_only_succeeds_has_no_row():
    assert failures(owned().at(5).consume("a", 0, 1, 2)) == ()


def test_each_consumer_of_a_group_that_broadcasts_fails_for_itself():
    trace = owned().subscribe("a", model="BROADCASTING").subscribe("b", model="BROADCASTING")
    (row,) = failures(fail(fail(trace, 0, 5), 0, 6, node="b"))
    assert (row.failures, row.messages, row.times) == (2, 2, 1)


def test_one_message_among_many_that_holds_its_queue_is_as_severe_as_it_is_old():
    trace = owned().at(2).store(*range(3, 2_000)).at(3).consume("a", *range(1_999))
    poisoned, brief = fail(trace, 1_999, *range(10, 19)), severities(trace)
    longer = severities(fail(poisoned, 1_999, 160))

    assert list(brief.values()) == [pytest.approx(9 / 2 / 10, rel=0.01)]
    assert list(longer.values()) == [pytest.approx(150 / 30, rel=0.01)]


# --- V8 -------------------------------------------------------------------------------------


def stalled(trace, **facts):
    """The stalls, and whether the longest of them breaks V8."""
    found = found_in(trace, END_S, **facts).of(STALLS.table)
    return max(found, key=lambda row: row.end_ns - row.start_ns)


def test_a_queue_waits_by_design_for_a_message_that_its_listener_fails_with():
    row = stalled(fail(owned(), 0, *range(2, END_S, 20)), ordered=(GROUP,))
    assert row.end_ns - row.start_ns > 190 * SECOND
    assert not row.violation
    assert row.causes[0].what == "the listener fails"


@pytest.mark.parametrize(("last_s", "violation"), [(100, True), (170, False)])
def test_a_queue_that_does_not_get_the_message_again_is_stalled(last_s, violation):
    """A pause is 30 s at most, and a stall of 21 s needs no cause."""
    row = stalled(fail(owned(), 0, *range(2, last_s, 20)), ordered=(GROUP,))
    assert row.violation is violation


@pytest.mark.parametrize(("instants_s", "violation"), [((2, 3, 8, 18, 48, 108), False), ((2, 3, 8, 18, 48), True)])
def test_a_fifo_push_consumer_waits_longer_with_each_attempt(instants_s, violation):
    """Its fifth delay is a minute, and its sixth is two."""
    assert stalled(fail(owned(), 0, *instants_s)).violation is violation


def test_a_message_of_another_queue_that_fails_is_no_reason():
    trace = owned(queues=2)
    fail(trace, 0, *range(2, END_S, 20), queue_id=1)
    rows = found_in(trace, END_S, ordered=(GROUP,)).of(STALLS.table)
    assert {row.queue.queue_id: row.violation for row in rows} == {0: True, 1: False}


def busy_thread(threads):
    """Queue 1 is consumed, a message in each second; queue 0 waits for longer than a batch takes."""
    trace = owned(queues=2).at(2).store(*range(3, 190), queue_id=1)
    for offset in range(190):
        trace.at(3 + offset).consume("a", offset, queue_id=1)
    bounds = Bounds(listener_threads=threads)
    rows = found_in(trace, END_S, consume_ms={GROUP: 1_000}, bounds=bounds).of(STALLS.table)
    return {row.queue.queue_id: row.violation for row in rows if row.end_ns - row.start_ns > 100 * SECOND}


def test_a_queue_may_wait_while_all_threads_of_its_owner_work_on_others():
    assert busy_thread(threads=1) == {0: False}
    assert busy_thread(threads=2) == {0: True}


# --- POP ------------------------------------------------------------------------------------


def revived(tags, *, after_s):
    """A message that was popped at 10 s, consumed, and revived at 72 s; the listener returns so long after the pop."""
    trace = owned().at(10).message("broker-a", "popped", 0, key=HANDLE)
    steps = {10 + after_s: ("a", "consumed", tags), 72: ("broker-a", "revived", "stored")}
    for t_s, (node, event, of) in sorted(steps.items()):
        trace.at(t_s).message(node, event, 0, tags=of, key="" if event == "consumed" else HANDLE)
    (row,) = found_in(trace, END_S).of(POPPED.table)
    return row.consumed_and_revived, row.consumed_after_revival


def test_what_is_revived_after_a_failure_was_to_come_again_and_what_its_listener_had_too_long_was_not():
    assert revived("later", after_s=1) == (0, 0)
    assert revived("", after_s=1) == (1, 0)
    assert revived("later", after_s=70) == (0, 1)


def test_a_queue_that_waited_for_a_suspended_owner_waits_for_its_listener_when_that_fails_again():
    trace = fail(owned(), 0, *range(2, 40, 10)).fault("begin", "f", "suspend", "a", node="a").life("a", "suspended")
    trace.at(60).fault("end", "f", "suspend", "a").life("a", "resumed")
    shares = {item.what: item.share for item in stalled(fail(trace, 0, *range(61, END_S, 10)), ordered=(GROUP,)).causes}
    assert shares["the listener fails"] > 0.6
