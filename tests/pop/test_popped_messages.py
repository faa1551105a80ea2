"""V14: every popped message is acknowledged, hidden or revived, from traces small enough to check by eye."""

import pytest

from analysis.trace_rows import GROUP, SECOND, TOPIC, HandMadeTrace, found_in
from emulator.analysis.judge import broken
from emulator.analysis.report import judgements
from emulator.history.rows.queues import GroupQueue

INVISIBLE_S = 60


def handle(invisible_s=INVISIBLE_S, pop_time_s=1):
    return f"0 {pop_time_s * 1000} {invisible_s * 1000} 0 0 broker-a 0 7"


def a_pop():
    """A message is popped at 10 s, and hidden until 70 s."""
    trace = HandMadeTrace().at(1).subscribe("c1").own("c1", "pop_acquired", queue_id=-1).at(10)
    return trace.message("broker-a", "popped", 7, key=handle())


def row(trace, end_s=300):
    (found,) = found_in(trace, end_s=end_s)["popped"]
    assert found.queue == GroupQueue(GROUP, TOPIC, "broker-a", 0)
    return found


def test_an_acknowledged_message_is_done():
    found = row(a_pop().at(11).message("broker-a", "acked", 7, tags="stored", key=handle()))

    assert (found.popped, found.acked, found.late, found.violation) == (1, 1, 0, False)


def test_a_message_that_no_one_answers_or_revives_is_a_violation():
    found = row(a_pop())

    assert (found.late, found.start_ns, found.end_ns) == (1, 70 * SECOND, 300 * SECOND)
    assert found.violation
    assert "V14" in broken(found_in(a_pop(), end_s=300))


def test_a_message_whose_time_is_not_over_for_long_is_none():
    assert row(a_pop(), end_s=84).late == 0


def test_an_acknowledgement_that_was_refused_is_none():
    trace = a_pop().at(11).message("broker-a", "acked", 7, tags="refused", key=handle())

    assert (row(trace).acked, row(trace).violation) == (0, True)


def test_a_revived_message_was_late_for_as_long_as_reviving_takes():
    trace = a_pop().at(73).message("broker-a", "revived", 7, tags="stored", key=handle())

    assert (row(trace).revived, row(trace).late, row(trace).violation) == (1, 0, False)


def test_a_message_that_was_hidden_again_waits_from_then_on():
    trace = a_pop().at(60).message("broker-a", "invisible_changed", 7, tags="stored", key=handle(30))

    assert row(trace, end_s=100).late == 0
    assert row(trace, end_s=120).late == 1


def test_a_check_point_that_is_put_again_counts_from_the_pop():
    trace = a_pop().at(72).message("broker-a", "re_put", 7, tags="stored", key=handle(INVISIBLE_S + 30))

    assert row(trace, end_s=110).late == 0
    assert row(trace, end_s=130).start_ns == 100 * SECOND


def test_a_record_that_is_put_again_counts_from_the_instant_that_it_names():
    key = handle(INVISIBLE_S + 10, pop_time_s=1 + 61)
    trace = a_pop().at(71).message("broker-a", "re_put", 7, tags="stored", key=key)

    assert row(trace, end_s=71 + 70 + 15).late == 0
    assert row(trace, end_s=71 + 70 + 16).start_ns == (71 + 70) * SECOND


@pytest.mark.parametrize(("event", "outcome"), [("lost", "gone"), ("re_put", "refused")])
def test_a_message_that_a_broker_gives_up_is_lost(event, outcome):
    trace = a_pop().at(72).message("broker-a", event, 7, tags=outcome, key=handle())

    assert (row(trace).lost, row(trace).violation) == (1, True)


def test_what_is_given_up_after_it_was_acknowledged_is_no_loss():
    trace = a_pop().at(11).message("broker-a", "acked", 7, tags="stored", key=handle())
    trace.at(72).message("broker-a", "lost", 7, tags="gone", key=handle())

    assert (row(trace).lost, row(trace).violation) == (0, False)


def test_a_message_that_is_revived_although_it_was_consumed_comes_again():
    trace = a_pop().at(20).message("c1", "consumed", 7).at(73)
    found = row(trace.message("broker-a", "revived", 7, tags="stored", key=handle()))

    assert (found.consumed_and_revived, found.acked_and_revived, found.violation) == (1, 0, False)


def test_a_message_that_is_handed_out_while_it_is_hidden_is_counted_and_allowed():
    trace = a_pop().at(20).message("broker-a", "popped", 7, key=handle()).at(21)
    found = row(trace.message("broker-a", "acked", 7, tags="stored", key=handle()))

    assert (found.popped, found.twice, found.violation) == (1, 1, False)


def test_what_waits_while_its_broker_is_away_is_explained():
    trace = a_pop().at(65).life("broker-a", "started", role="broker").life("broker-a", "killed")
    trace.at(200).life("broker-a", "started").at(212).message("broker-a", "revived", 7, tags="stored", key=handle())

    found = row(trace)

    assert (found.late, found.violation) == (1, False)


def test_a_queue_that_is_popped_is_not_without_an_owner_and_has_no_two():
    trace = HandMadeTrace().at(1)
    for node in ("c1", "c2"):
        trace.subscribe(node).own(node, "pop_acquired", queue_id=-1)
        trace.believe(node, {"cids": ["c1", "c2"], "queues": {"broker-a": 2}})
    left = found_in(trace.at(20).own("c1", "pop_dropped", queue_id=-1), end_s=100)
    gone = found_in(trace.at(40).own("c2", "pop_dropped", queue_id=-1), end_s=100)

    assert (left["orphans"], left["overlaps"]) == ((), ())
    assert {orphan.start_ns for orphan in gone["orphans"]} == {40 * SECOND}


def test_a_run_without_pops_says_nothing_about_them():
    found = found_in(HandMadeTrace().at(1).subscribe("c1").own("c1", "acquired"), end_s=10)

    assert next(judgement for judgement in judgements(found) if judgement.id == "V14").rows == ()
