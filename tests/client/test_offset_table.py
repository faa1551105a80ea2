import pytest

from nodes.client.offsets.pull_from_where import is_offset
from nodes.client.tables.offset_table import NO_OFFSET, OffsetTable
from nodes.protocol.model import MessageQueue
from nodes.rpc.errors import BrokerError

Q0, Q1 = MessageQueue("t", "b", 0), MessageQueue("t", "b", 1)


@pytest.fixture
def table():
    table = OffsetTable()
    table.update(Q1, 8, increase_only=True)
    table.update(Q0, 5, increase_only=True)
    return table


def test_an_offset_grows_only_or_is_set(table):
    table.update(Q0, 3, increase_only=True)
    assert table.read(Q0) == 5
    table.update(Q0, 3, increase_only=False)
    assert table.read(Q0) == 3
    assert table.read(MessageQueue("t", "b", 2)) == -1


def test_a_frozen_offset_stays_until_it_is_removed(table):
    table.update_and_freeze(Q0, 1)
    table.update(Q0, 99, increase_only=False)
    assert table.read(Q0) == 1
    table.update_and_freeze(Q0, 2)
    assert table.read(Q0) == 2
    table.remove(Q0)
    table.update(Q0, 99, increase_only=True)
    assert table.read(Q0) == 99


@pytest.mark.trap("C25")
def test_the_timer_sends_nothing_without_queues_and_forgets_those_of_others(table):
    assert table.take_for_persist_all([]) == ()
    assert table.read(Q1) == 8
    assert table.take_for_persist_all([Q0]) == ((Q0, 5),)
    assert table.read(Q1) == -1


def test_offsets_are_sent_in_the_order_of_the_queues(table):
    assert table.take_for_persist_all([Q1, Q0]) == ((Q0, 5), (Q1, 8))


def test_a_stored_offset_of_minus_one_stands_for_none_and_less_for_nothing_that_is_known():
    assert [is_offset(stored) for stored in (0, 7, NO_OFFSET, None)] == [True, True, False, False]
    with pytest.raises(BrokerError, match="the stored offset is -2"):
        is_offset(-2)
