"""Messages that a broker has to cut from its log: lost if their senders were answered that they are stored."""

from analysis.trace_rows import HandMadeTrace, found_in

SENT = "127.1.9.1@7"


def reported(trace):
    """(queue id, lost, cut) of each queue with losses."""
    return [(row.queue.queue_id, row.lost, row.cut) for row in found_in(trace, 50)["losses"]]


def begun():
    """Offset 0 is consumed, offset 1 is not, and no one has passed it."""
    trace = HandMadeTrace("cut").at(1).own("a", "acquired", offset=0)
    return trace.at(2).store(0, 1).consume("a", 0).commit("a", 1)


def cut(trace, offset=1, key=SENT):
    return trace.at(5).message("broker-a", "cut", offset, key=key)


def test_a_message_that_no_log_has_any_more_is_lost_though_no_one_has_passed_it():
    assert reported(begun()) == []
    assert reported(cut(begun())) == [(0, 1, 1)]


def test_a_message_whose_sender_was_not_reported_is_owed_to_no_one():
    unacknowledged = begun().message("producer-1", "unacknowledged", -1, key=SENT)
    assert reported(cut(unacknowledged)) == []
    assert reported(cut(begun()).at(6).message("producer-1", "unacknowledged", -1, key=SENT)) == [], "reported later"
    assert reported(cut(unacknowledged, key="127.1.9.1@8")) == [(0, 1, 1)], "another one"


def test_a_message_that_was_consumed_before_it_was_cut_is_not_lost():
    assert reported(cut(begun(), offset=0)) == []


def test_what_a_group_passes_before_another_message_gets_its_offset_is_lost_by_the_new_one():
    """The consumer had read on at the old master, and the group never asks for the new message."""
    trace = cut(begun().consume("a", 1).commit("a", 2))
    trace.at(6).message("broker-a", "stored", 1, stored_ms=9)
    assert [(row.lost, row.reused) for row in found_in(trace, 50)["losses"]] == [(1, 1)]
