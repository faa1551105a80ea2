"""Allocating queues among members that pop."""

import pytest

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.for_pop import ALL_QUEUES, allocate_for_pop
from nodes.allocation.strategy import AllocationError
from nodes.broker.tables.clients.assignments import do_load_balance
from nodes.protocol.bodies import QueryAssignmentRequestBody, SetMessageRequestModeRequestBody
from nodes.protocol.model import MessageModel, MessageQueue, MessageRequestMode

QUEUES = [MessageQueue("t", "b", queue_id) for queue_id in range(8)]
MEMBERS = ["c1", "c2", "c3", "c4"]


def popped(cid, share, queues=QUEUES, members=MEMBERS):
    return [queue.queue_id for queue in allocate_for_pop(allocate_averagely, "g", cid, queues, members, share)]


def test_a_member_also_pops_the_shares_of_those_that_follow_it_in_a_circle():
    assert popped("c1", 1) == [0, 1, 2, 3]
    assert popped("c4", 1) == [6, 7, 0, 1]
    assert popped("stranger", 1) == []


def test_with_more_members_than_queues_everybody_gets_one():
    assert [popped(cid, 1, QUEUES[:2]) for cid in MEMBERS] == [[0], [1], [0], [1]]
    with pytest.raises(AllocationError, match="currentCID is empty"):
        popped(" ", 1, QUEUES[:2])


@pytest.mark.trap("X12")
def test_where_everybody_pops_everything_there_is_an_entry_for_each_queue_whoever_asks_until_doubles_are_taken_out():
    assert popped("c1", 0) == popped("c1", 3) == popped("stranger", -1) == [ALL_QUEUES] * 8
    assert popped("c1", 0, [], []) == []

    requested = QueryAssignmentRequestBody("t", "g", "stranger", "AVG", MessageModel.CLUSTERING)
    mode = SetMessageRequestModeRequestBody("t", "g", MessageRequestMode.POP, 0)
    given = do_load_balance(requested, mode, QUEUES, MEMBERS, server_load_balancer_enable=True)
    assert given is not None
    assert [each.message_queue for each in given] == [MessageQueue("t", "b", ALL_QUEUES)]


def test_who_is_no_member_is_to_let_go_of_all_and_without_members_or_queues_everybody_keeps_what_he_has():
    requested = QueryAssignmentRequestBody("t", "g", "stranger", "AVG", MessageModel.CLUSTERING)
    mode = SetMessageRequestModeRequestBody("t", "g")

    def given(queues, members):
        return do_load_balance(requested, mode, queues, members, server_load_balancer_enable=True)

    assert given(QUEUES, MEMBERS) == ()
    assert given(None, MEMBERS) is None
    assert given(QUEUES, None) is None
    assert given([], MEMBERS) is None
    assert given(QUEUES, []) is None
