"""Nodes that cannot start, from traces small enough to check by eye."""

from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.measures.failed_starts import FailedStart
from emulator.analysis.measures.measured_symptoms import measured_symptoms
from nodes.beliefs import Lifecycle

END_S = 100
C1, REASON = "c1", "Message type is not specified"


def started(trace, node=C1):
    return trace.life(node, "started", "g")


def failed(trace, reason=REASON):
    record = Lifecycle.start_failed(ValueError(reason))
    return trace.life(C1, record.event.value, record.detail).life(C1, "stopped")


def failures(trace):
    return found_in(trace, END_S)["failed_starts"]


def symptom(trace):
    (found,) = (
        item
        for item in measured_symptoms(found_in(trace, END_S), Context(END_S * SECOND, {}, {}))
        if item.kind is SymptomKind.NOT_STARTED
    )
    return found.severity, found.text


def test_a_node_that_starts_late_and_stops_in_order_has_not_failed():
    trace = started(HandMadeTrace().at(1)).at(9).life(C1, "ready").at(50)
    assert failures(trace.life(C1, "stopping", "asked to").life(C1, "stopped")) == ()


def test_a_client_that_nothing_starts_again_is_away_until_the_end():
    trace = failed(started(HandMadeTrace().at(1)).at(4))
    assert failures(trace) == (FailedStart(C1, "consumer", 4 * SECOND, END_S * SECOND, True, 1, REASON),)
    assert symptom(trace) == (9.6, f"c1 could not start from 4.0 s on, and has not started since: {REASON}")


def test_a_client_that_is_started_again_is_away_until_it_is_ready():
    trace = failed(started(failed(started(HandMadeTrace().at(1)).at(4), "io exception").at(10)).at(13))
    trace = started(trace.at(20)).at(24).life(C1, "ready").at(30).life(C1, "killed")
    assert failures(trace) == (FailedStart(C1, "consumer", 4 * SECOND, 24 * SECOND, False, 2, REASON),)
    assert symptom(trace) == (2.0, f"c1 could not start 2 times from 4.0 s on, and started 20.0 s later: {REASON}")


def test_a_failure_in_the_last_second_is_below_the_limit():
    severity, _ = symptom(failed(started(HandMadeTrace().at(98)).at(99)))
    assert severity < 1
