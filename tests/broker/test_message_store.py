import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.store.get_message_result import GetMessageStatus, pull_response_code
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.readable_end import ReadableEnd
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import Message
from support.every_case import each_case

S = GetMessageStatus


def filled(count, *, first=0, body=b""):
    store = MessageStore("10.0.0.1:10911")
    for number in range(count):
        tag = {"TAGS": "even" if number % 2 == 0 else "odd"}
        store.put_message(Message("t", 0, -1, -1, number, -1, body, tag), now_ms=1_000 + number)
    store.delete_before("t", 0, first)
    return store


@each_case(
    ("count", "first", "offset", "status", "code", "next_offset"),
    [
        (0, 0, 0, S.NO_MESSAGE_IN_QUEUE, ResponseCode.PULL_NOT_FOUND, 0),
        (0, 0, 7, S.NO_MESSAGE_IN_QUEUE, ResponseCode.PULL_OFFSET_MOVED, 0),
        (5, 0, 2, S.FOUND, ResponseCode.SUCCESS, 5),
        (5, 0, 5, S.OFFSET_OVERFLOW_ONE, ResponseCode.PULL_NOT_FOUND, 5),
        (5, 0, 6, S.OFFSET_OVERFLOW_BADLY, ResponseCode.PULL_OFFSET_MOVED, 5),
        (5, 3, 2, S.OFFSET_TOO_SMALL, ResponseCode.PULL_OFFSET_MOVED, 3),
        (5, 5, 4, S.OFFSET_TOO_SMALL, ResponseCode.PULL_OFFSET_MOVED, 5),
        (5, 5, 5, S.OFFSET_OVERFLOW_ONE, ResponseCode.PULL_NOT_FOUND, 5),
    ],
)
def test_a_pull_outside_the_queue_is_answered_by_where_it_is(count, first, offset, status, code, next_offset):
    store = filled(count, first=first)
    result = store.get_message("t", 0, offset)
    assert (result.status, pull_response_code(result.status, offset)) == (status, code)
    assert result.next_begin_offset == next_offset
    assert (result.min_offset, result.max_offset) == (first, count)
    if status is not S.FOUND:
        assert store.get_message("t", 0, offset, correct_offset=False).next_begin_offset == offset


def test_messages_that_do_not_match_are_passed_over():
    def is_odd(message):
        return message.properties["TAGS"] == "odd"

    result = filled(5).get_message("t", 0, 0, matches=is_odd)
    assert ([message.queue_offset for message in result.messages], result.next_begin_offset) == ([1, 3], 5)
    result = filled(5).get_message("t", 0, 4, matches=is_odd)
    assert (result.status, result.next_begin_offset) == (S.NO_MATCHED_MESSAGE, 5)
    assert pull_response_code(result.status, 4) is ResponseCode.PULL_RETRY_IMMEDIATELY


def test_one_answer_holds_32_messages_or_256_kib():
    assert filled(40).get_message("t", 0, 0, 100).next_begin_offset == 32
    assert filled(40).get_message("t", 0, 0, 100, transfer_count_max=36).next_begin_offset == 36
    assert filled(40).get_message("t", 0, 0, 3).next_begin_offset == 3
    assert filled(4, body=b"x" * 100_000).get_message("t", 0, 0).next_begin_offset == 2
    assert filled(4, body=b"x" * 300_000).get_message("t", 0, 0).next_begin_offset == 1


@pytest.mark.trap("C12")
def test_offset_0_is_in_memory_as_long_as_its_message_is_there():
    assert filled(0).is_in_memory("t", 0, 0) is False
    assert filled(2).is_in_memory("t", 0, 0) is True
    assert filled(2, first=1).is_in_memory("t", 0, 0) is False


def test_a_message_is_found_by_its_commit_log_offset_until_it_is_deleted():
    store = filled(3)
    stored = store.get_message("t", 0, 1).messages[0]
    assert store.look_message(stored.commit_log_offset) == stored
    assert (stored.store_timestamp, stored.store_host) == (1_001, "10.0.0.1:10911")
    store.delete_before("t", 0, 2)
    assert store.look_message(stored.commit_log_offset) is None


def test_the_offset_by_time_is_the_first_message_stored_then_or_later():
    store = filled(5, first=1)
    assert [store.offset_by_time("t", 0, at_ms) for at_ms in (0, 1_002, 1_004, 1_005)] == [1, 2, 4, 5]
    assert store.offset_by_time("ghost", 0, 0) == 0


@given(st.lists(st.tuples(st.sampled_from("tu"), st.integers(0, 1), st.binary(max_size=5)), max_size=30))
def test_every_queue_gives_back_what_was_put_in_order(puts):
    store = MessageStore("h")
    model, previous_end = {}, 0
    for topic, queue_id, body in puts:
        stored = store.put_message(Message(topic, queue_id, 0, 0, 0, 0, body), now_ms=0)
        assert stored.commit_log_offset == previous_end
        previous_end = store.max_commit_log_offset
        assert previous_end > stored.commit_log_offset
        model.setdefault((topic, queue_id), []).append(body)
    for (topic, queue_id), bodies in model.items():
        assert store.max_offset(topic, queue_id) == len(bodies)
        result = store.get_message(topic, queue_id, 0)
        assert [message.body for message in result.messages] == bodies
        assert [message.queue_offset for message in result.messages] == list(range(len(bodies)))


def put(store, now_ms=2_000):
    return store.put_message(Message("t", 0, -1, -1, 0, -1, b"", {"TAGS": "even", "KEYS": "k"}), now_ms=now_ms)


def test_what_is_not_confirmed_is_numbered_and_replicated_and_not_read():
    store = filled(4)
    store.confirm_offset = lambda: end
    end = store.max_commit_log_offset
    first, second = put(store), put(store)

    assert (first.queue_offset, second.queue_offset) == (4, 5)
    assert store.get_message("t", 0, 4).status is S.OFFSET_OVERFLOW_ONE
    assert (store.max_offset("t", 0), store.is_in_memory("t", 0, 4)) == (4, False)
    assert store.index.query_offset("t", "k", 9, 0, 9_999) == ()
    assert [message.queue_offset for message in store.commit_log_data(first.commit_log_offset, 10**6).messages] == [
        4,
        5,
    ]

    end = second.commit_log_offset
    assert store.reput() == (("t", 0),)
    assert store.max_offset("t", 0) == 5
    end = store.max_commit_log_offset
    assert store.reput() == (("t", 0),)
    assert store.reput() == ()
    assert store.max_offset("t", 0) == 6
    assert len(store.index.query_offset("t", "k", 9, 0, 9_999)) == 2
    assert put(store).queue_offset == 6


def test_where_all_is_confirmed_a_message_is_read_as_soon_as_it_is_stored():
    store = filled(0)
    store.confirm_offset = lambda: store.max_commit_log_offset
    assert [put(store).queue_offset, store.max_offset("t", 0), put(store).queue_offset] == [0, 1, 1]
    assert (store.max_offset("t", 0), store.reput()) == (2, ())


def test_what_could_be_read_once_stays_readable():
    store = filled(4)
    store.confirm_offset = lambda: 0
    store.reput()
    assert store.max_offset("t", 0) == 4


@given(st.integers(0, 6), st.integers(0, 6))
def test_a_log_that_is_cut_has_what_fits_and_of_that_what_could_be_read(confirmed, retained):
    store = MessageStore("10.0.0.1:10911")
    store.confirm_offset = lambda: end
    end, ends = 0, [0]
    for _ in range(6):
        put(store)
        ends.append(store.max_commit_log_offset)
    end = ends[confirmed]
    store.reput()
    dropped = store.truncate(ends[retained])

    assert [message.queue_offset for message in dropped] == list(range(retained, 6))
    assert store.max_commit_log_offset == ends[retained]
    assert store.max_offset("t", 0) == min(confirmed, retained)
    assert put(store).queue_offset == retained


def loaded(contents, file, confirmed):
    """The store of a next process; only the log up to `confirmed` may be read."""
    store = MessageStore("10.0.0.1:10911", contents, readable=ReadableEnd(file))
    store.confirm_offset = lambda: confirmed
    store.load()
    return store


def sent(store, number):
    return store.put_message(Message("t", 0, -1, -1, number, -1, b"", {}), now_ms=number).queue_offset


def test_what_could_not_be_read_waits_after_a_restart_and_keeps_its_offsets():
    contents, file = {}, bytearray()
    first = loaded(contents, file, 0)
    assert [sent(first, 1), sent(first, 2)] == [0, 1]
    first.confirm_offset = lambda: first.max_commit_log_offset
    assert first.reput() == (("t", 0),)
    first.confirm_offset = lambda: 0
    assert sent(first, 3) == 2

    second = loaded(contents, file, 0)
    assert second.max_offset("t", 0) == 2
    assert sent(second, 4) == 3
    second.confirm_offset = lambda: second.max_commit_log_offset
    second.reput()
    assert second.max_offset("t", 0) == 4
    assert loaded(contents, file, 0).max_offset("t", 0) == 4


def test_without_the_file_all_of_the_log_can_be_read():
    contents, file = {}, bytearray()
    sent(loaded(contents, file, 0), 1)
    assert loaded(contents, bytearray(), 0).max_offset("t", 0) == 1
