"""The queues of a lite pull consumer, next to the table of its rebalance."""

import pytest

from nodes.client.tables.assigned_message_queues import NO_OFFSET, AssignedMessageQueues
from nodes.client.tables.process_queue import ProcessQueue
from nodes.protocol.model import MessageQueue

ONE, TWO, OTHER = MessageQueue("orders", "a", 0), MessageQueue("orders", "a", 1), MessageQueue("refunds", "a", 0)


@pytest.fixture
def known():
    return {queue: ProcessQueue(now_ms=0) for queue in (ONE, TWO, OTHER)}


def test_a_queue_has_the_process_queue_of_the_rebalance_and_no_offset_yet(known):
    assigned = AssignedMessageQueues(known)
    assigned.update("orders", [ONE], now_ms=0)

    state = assigned.get(ONE)
    assert state.process_queue is known[ONE]
    assert (state.pull_offset, state.consume_offset) == (NO_OFFSET, NO_OFFSET)
    assert assigned.get(TWO) is None


def test_what_stays_keeps_its_offsets_and_what_goes_is_dropped(known):
    assigned = AssignedMessageQueues(known)
    assigned.update("orders", [ONE, TWO], now_ms=0)
    assigned.get(ONE).consume_offset = 7
    assigned.update("orders", [ONE], now_ms=0)

    assert assigned.queues == (ONE,)
    assert assigned.get(ONE).consume_offset == 7
    assert (known[ONE].dropped, known[TWO].dropped) == (False, True)


def test_a_change_of_one_topic_leaves_the_others_alone(known):
    assigned = AssignedMessageQueues(known)
    assigned.update("refunds", [OTHER], now_ms=0)
    assigned.update("orders", [], now_ms=0)

    assert assigned.queues == (OTHER,)


def test_a_queue_that_the_rebalance_could_not_take_up_has_a_process_queue_that_only_this_table_knows(known):
    del known[TWO]
    assigned = AssignedMessageQueues(known)
    assigned.update("orders", [ONE, TWO], now_ms=5)
    own = assigned.get(TWO).process_queue
    known[TWO] = ProcessQueue(now_ms=9)
    assigned.update("orders", [ONE, TWO], now_ms=10)

    assert assigned.get(TWO).process_queue is own
    assert own.last_pull_ms == 5


def test_an_answer_from_before_a_queue_went_and_came_back_moves_nothing(known):
    assigned = AssignedMessageQueues(known)
    assigned.update("orders", [ONE], now_ms=0)
    before = known[ONE]
    assigned.update("orders", [], now_ms=0)
    known[ONE] = ProcessQueue(now_ms=1)
    assigned.update("orders", [ONE], now_ms=1)
    assigned.update_pull_offset(ONE, before, 40)

    assert assigned.get(ONE).pull_offset == NO_OFFSET
    assigned.update_pull_offset(ONE, known[ONE], 41)
    assert assigned.get(ONE).pull_offset == 41
