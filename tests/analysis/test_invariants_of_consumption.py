"""V3 to V7 and the limits of rebalancing, on traces small enough to check by eye."""

import pytest

from analysis.trace_rows import GROUP, SECOND, TOPIC, HandMadeTrace, found_in
from emulator.analysis.inputs.offsets import OffsetFault
from support.findings import half_views_of, offset_anomalies_of

END_S = 100
LOCK = f"{TOPIC}@broker-a@0"


def locks(trace, at_s, holder, broker="broker-a"):
    trace.roles[broker] = "broker"
    return trace.at(at_s).believe(broker, {LOCK: holder} if holder else None, GROUP, "queue_locks")


def disorder():
    """a has the lock until 30 s, b from then on; a's listener has two messages more, and no one the lock at 60 s."""
    trace = HandMadeTrace("order")
    locks(trace, 1, "a").at(5).consume("a", 0)
    locks(trace, 30, "b").at(31).consume("b", 1).at(32).consume("a", 1).at(33).consume("a", 2)
    return locks(trace, 60, None).at(61).consume("b", 2)


def offsets():
    """Queue 0: a late commit; 1: a healthy hand-over; 2: an old start, and a skip; 3: a young start and its commits."""
    trace = HandMadeTrace("offsets")
    trace.at(1).own("a", "acquired", offset=0).at(10).commit("a", 5).at(40).commit("late", 2).at(45).commit("a", 9)
    trace.at(1).own("a", "acquired", 1, offset=0).at(10).commit("a", 5, 1).at(20).own("b", "acquired", 1, offset=5)
    trace.at(25).commit("b", 6, 1)
    trace.at(1).own("a", "acquired", 2, offset=0).at(10).commit("a", 50, 2).at(20).own("b", "acquired", 2, offset=40)
    trace.at(30).commit("b", 60, 2).at(50).own("a", "acquired", 2, offset=70)
    trace.at(1).own("a", "acquired", 3, offset=0).at(10).commit("a", 5, 3).at(19.5).commit("a", 6, 3)
    return trace.at(20).own("b", "acquired", 3, offset=5).at(20.6).commit("b", 5, 3).at(21).commit("b", 7, 3)


def losses():
    """Ten messages; 3 is jumped over, 6 passed over, 8 and 9 wait; of another group only two are owed."""
    trace = HandMadeTrace("lost").at(1).store(*range(10)).own("a", "acquired", offset=1).at(2).consume("a", 1, 2)
    trace.at(3).commit("a", 3).at(10).own("b", "acquired", offset=4).consume("b", 4, 5, 7).at(11).commit("b", 8)
    return trace.store(0, 1, topic=f"%DLQ%{GROUP}")


def hand_over():
    """One message a second; a dies after the fifth, b resumes 4 s later and has one of them again."""
    trace = HandMadeTrace("hand-over").life("a", "ready", GROUP, role="consumer").life("b", "ready", GROUP)
    trace.life("c", "ready", GROUP).own("a", "acquired", offset=0).own("b", "acquired", 0, "u", offset=0)
    for second in range(9):
        trace.at(second + 1).store(second)
        if second < 5:
            trace.consume("a", second)
    trace.at(8.5).own("a", "dropped").own("b", "acquired", offset=4)
    return trace.at(9.5).consume("b", 4, 5, 6, 7).at(9.6).consume("b", 8).at(20).store(9).consume("b", 9)


def views():
    trace = HandMadeTrace("views")
    trace.at(1).believe("a", {"cids": ["a"], "queues": {"x": 4}}).at(2).believe(
        "b", {"cids": ["a", "b"], "queues": {"x": 4}}
    )
    trace.at(10).believe("a", {"cids": ["a", "b"], "queues": {"x": 4}}).at(30)
    return trace.believe("b", {"cids": ["a", "b"], "queues": {"x": 8}}).at(50).life("b", "killed")


@pytest.fixture(scope="module")
def found():
    traces = {"order": disorder(), "offsets": offsets(), "lost": losses(), "hand-over": hand_over(), "views": views()}
    return {name: found_in(trace, END_S) for name, trace in traces.items()}


def reported(rows, *columns):
    def cell(row, column):
        value = getattr(row.queue if column == "queue_id" else row, column)
        return value / SECOND if column.endswith("_ns") else value

    return sorted(tuple(cell(row, column) for column in columns) for row in rows)


def test_a_listener_is_outside_from_its_first_message_without_the_lock_to_its_last(found):
    rows = found["order"]["disorders"]
    assert reported(rows, "queue_id", "node", "start_ns", "end_ns", "messages", "disordered", "violation") == [
        (0, "a", 32, 33, 2, True, True),
        (0, "b", 61, 61, 1, False, False),
    ]


def test_groups_whose_queues_no_one_locks_have_no_order(found):
    assert found["hand-over"]["disorders"] == ()


def test_commits_that_fall_and_starts_elsewhere_are_reported_with_what_was_expected(found):
    rows = offset_anomalies_of(found["offsets"])
    assert reported(rows, "queue_id", "what", "t_ns", "who", "expected", "offset", "violation") == [
        (0, "regressed", 40, "late", 5, 2, True),
        (2, "replays", 20, "b", 50, 40, True),
        (2, "skips", 50, "a", 60, 70, True),
        (3, "regressed", 20.6, "b", 6, 5, False),
        (3, "replays", 20, "b", 6, 5, False),
    ]


@pytest.mark.parametrize(("after_s", "violation"), [(0.4, False), (1.5, True)])
def test_an_owner_may_commit_from_its_own_start_if_the_next_owner_begins_within_a_second(after_s, violation):
    trace = HandMadeTrace().own("a", "acquired", offset=0).at(10).commit("a", 5).at(19.9).commit("a", 6)
    trace.at(20).own("b", "acquired", offset=5).at(20 + after_s).own("c", "acquired", offset=6)
    rows = offset_anomalies_of(found_in(trace.at(20.1 + after_s).commit("b", 5), END_S))
    (fell,) = [row for row in rows if row.what is OffsetFault.REGRESSED]
    assert (fell.expected, fell.offset, fell.violation) == (6, 5, violation)


def test_a_message_below_the_highest_commit_that_no_consumer_consumed_is_lost(found):
    losses = found["lost"]["losses"]
    assert reported(losses, "queue_id", "first_offset", "last_offset", "lost", "skipped") == [(0, 3, 6, 2, 1)]


def test_a_hand_over_is_measured_from_the_last_message_before_to_the_one_that_drains_the_queue(found):
    of_run = found["hand-over"]
    columns = ("acquired_ns", "resume_ns", "pause_ns", "overlap_ns", "before", "after", "predicted", "duplicates")
    assert reported(of_run["hand_overs"], *columns) == [(8.5, 9.5, 4.5, 0, "a", "b", 1, 1)]
    # Five messages within a second, where there were five in ten: ten times the rate.
    assert reported(of_run["hand_overs"], "backlog", "spike_percent", "drain_ns") == [(5, 1000, 0.1)]
    assert reported(of_run["duplicates"], "queue_id", "duplicates") == [(0, 1)]


def test_a_pause_that_had_not_ended_is_at_least_as_long_as_what_was_seen_of_it():
    trace = HandMadeTrace().life("a", "ready", GROUP).life("b", "ready", GROUP).own("a", "acquired", offset=0)
    trace.at(1).store(0).consume("a", 0).at(10).own("a", "dropped").own("b", "acquired", offset=1)
    trace.at(30).own("b", "dropped").own("a", "acquired", offset=1).at(32).own("c", "acquired", offset=1)
    assert reported(found_in(trace, 50)["hand_overs"], "before", "after", "pause_ns", "censored") == [
        ("a", "b", 29, True),
        ("a", "c", 49, True),
    ]


def test_a_view_is_split_into_members_and_queues(found):
    rows = half_views_of(found["views"])
    assert reported(rows, "kind", "start_ns", "end_ns", "views_max") == [
        ("view.cids", 2, 10, 2),
        ("view.queues", 30, 50, 2),
    ]


def test_idle_members_and_uneven_shares_are_counted_at_the_end(found):
    of_run = found["hand-over"]
    assert reported(of_run["idle"], "topic", "members", "queues", "idle", "unavoidable") == [
        (TOPIC, 3, 1, 2, 2),
        ("u", 3, 1, 2, 2),
    ]
    assert reported(of_run["queue_balance"], "topics", "members", "minimum", "maximum") == [(2, 3, 0, 2)]
