from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from emulator.base.hits import Hits
from emulator.machine.disk import EmulatedDisk
from emulator.time.timeline import Timeline
from nodes.broker.files import append_to_commit_log
from nodes.broker.tables.store.commit_log import COMMIT_LOG_FILE
from nodes.broker.tables.store.message_store import MessageStore
from nodes.protocol.model import Message

SIZE = 101
"""Of a message with a body of one byte and no properties."""


def filled(*queue_ids):
    store = MessageStore("10.0.0.1:10911")
    for queue_id in queue_ids:
        store.put_message(Message("t", queue_id, -1, -1, 0, -1, b"x"), now_ms=0)
    return store


def a_slave():
    """An empty store, and its disk."""
    disk = EmulatedDisk(Timeline(), Hits())
    return MessageStore("10.0.0.2:10911", disk.map_files(COMMIT_LOG_FILE)), disk


def restarted(disk):
    store = MessageStore("10.0.0.2:10911", disk.map_files(COMMIT_LOG_FILE))
    store.load()
    return store


def begins(data):
    return None if data is None else [message.commit_log_offset for message in data.messages]


def test_the_log_is_read_from_the_first_message_that_begins_at_an_offset_or_behind_it():
    store = filled(0, 1, 0)
    assert begins(store.commit_log_data(0, 1_000)) == [0, SIZE, 2 * SIZE]
    assert begins(store.commit_log_data(1, 1_000)) == begins(store.commit_log_data(SIZE, 1_000)) == [SIZE, 2 * SIZE]
    assert store.commit_log_data(2 * SIZE + 1, 1_000) is None
    assert store.commit_log_data(3 * SIZE, 1_000) is None


def test_a_piece_holds_whole_messages_up_to_the_limit_and_at_least_one():
    store = filled(0, 0, 0)
    assert begins(store.commit_log_data(0, 2 * SIZE)) == [0, SIZE]
    assert begins(store.commit_log_data(0, 2 * SIZE - 1)) == begins(store.commit_log_data(0, 1)) == [0]
    assert store.commit_log_data(0, 2 * SIZE).next_offset == 2 * SIZE


def test_of_a_file_that_is_deleted_nothing_is_read_and_a_log_without_a_beginning_begins_with_what_is_left():
    store = MessageStore("10.0.0.1:10911", {}, 2 * SIZE)
    for _ in range(5):
        store.put_message(Message("t", 0, -1, -1, 0, -1, b"x"), now_ms=0)
    store.delete_oldest_file()
    assert [begins(store.commit_log_data(at, 1_000)) for at in (1, 2 * SIZE - 1)] == [None, None]
    assert begins(store.commit_log_data(0, SIZE)) == begins(store.commit_log_data(2 * SIZE, SIZE)) == [2 * SIZE]


def test_deleted_messages_are_passed_over():
    store = filled(0, 1, 0, 1)
    store.delete_before("t", 1, 1)
    assert begins(store.commit_log_data(0, 1_000)) == [0, 2 * SIZE, 3 * SIZE]


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(1, 600))
def test_piece_by_piece_a_log_becomes_the_same_log(queue_ids, size_bytes_max):
    master, (slave, disk) = filled(*queue_ids), a_slave()
    while (data := master.commit_log_data(slave.max_commit_log_offset, size_bytes_max)) is not None:
        append_to_commit_log(slave, data.messages, partial(disk.flush, COMMIT_LOG_FILE))
        assert slave.max_commit_log_offset == data.next_offset
    again = restarted(disk)
    for store in (slave, again):
        assert store.commit_log_data(0, 1 << 20) == master.commit_log_data(0, 1 << 20)
        for queue_id in range(4):
            assert store.get_message("t", queue_id, 0) == master.get_message("t", queue_id, 0)
    assert again.init_max_commit_log_offset == master.max_commit_log_offset


def test_a_log_that_begins_in_the_middle_is_retained_with_its_offsets():
    master, (slave, disk) = filled(0, 0, 0), a_slave()
    append_to_commit_log(slave, master.commit_log_data(SIZE, 1_000).messages, partial(disk.flush, COMMIT_LOG_FILE))
    again = restarted(disk)
    for store in (slave, again):
        assert begins(store.commit_log_data(0, 1_000)) == [SIZE, 2 * SIZE]
        assert (store.min_offset("t", 0), store.max_offset("t", 0)) == (1, 3)


def test_a_message_whose_place_in_its_queue_is_taken_stays_out_of_the_queue():
    master, slave = filled(0, 0, 0), filled(0, 0)
    slave.restore(Message("t", 0, 1, 2 * SIZE, 0, 0, b"x"))
    assert slave.max_offset("t", 0) == 2
    assert slave.max_commit_log_offset == master.max_commit_log_offset
    assert begins(slave.commit_log_data(0, 1_000)) == [0, SIZE, 2 * SIZE]
