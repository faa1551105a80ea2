"""Half messages apart from any broker: what ends them, how often they are checked, what a batch is made of."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.transaction_messages import (
    OP_TOPIC,
    EndedHalfMessages,
    checked_message,
    committed_message,
    ended_offsets,
    escaping_message,
    half_message,
    immune_message,
    is_checked_too_often,
    is_prepared,
    op_message,
)
from nodes.protocol.batch_body import BatchedMessage, decode_messages, encode_messages
from nodes.protocol.errors import ProtocolError
from nodes.protocol.model import Message

MESSAGES = st.lists(
    st.builds(
        BatchedMessage,
        st.binary(max_size=9),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
        st.integers(-(2**31), 2**31 - 1),
    ),
    max_size=4,
)


def prepared(**properties: str) -> Message:
    return Message("orders", 3, 0, 0, 0, 0, b"x", {"TRAN_MSG": "true", **properties})


def store_of(*ends: str) -> MessageStore:
    store = MessageStore("127.0.0.1:10911")
    for body in ends:
        store.put_message(op_message([body], now_ms=0, broker="b"), now_ms=0)
    return store


@given(MESSAGES)
def test_a_batch_is_what_was_put_into_it(messages: list[BatchedMessage]) -> None:
    assert decode_messages(encode_messages(messages)) == tuple(messages)


@given(MESSAGES.filter(bool), st.data())
def test_a_batch_that_ends_within_a_message_is_refused(messages: list[BatchedMessage], data: st.DataObject) -> None:
    whole, last = encode_messages(messages), len(encode_messages(messages[-1:]))
    with pytest.raises(ProtocolError, match="no whole message begins"):
        decode_messages(whole[: len(whole) - data.draw(st.integers(1, last - 1))])


@given(st.binary(max_size=60))
def test_random_bytes_are_a_batch_or_no_batch_and_nothing_else(body: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        assert sum(len(message.body) for message in decode_messages(body)) <= len(body)


def test_a_message_goes_through_a_transaction_and_comes_out_as_it_was() -> None:
    half = half_message(prepared(UNIQ_KEY="U", TAGS="a"))
    assert (half.topic, half.queue_id, half.sys_flag) == ("RMQ_SYS_TRANS_HALF_TOPIC", 0, 0)
    final = committed_message(half, 8)
    assert (final.topic, final.queue_id, final.sys_flag) == ("orders", 3, 8)
    assert final.properties == {"UNIQ_KEY": "U", "TAGS": "a", "__transactionId__": "U"}
    again = escaping_message(immune_message(half))
    assert (again.topic, again.queue_id, again.sys_flag) == ("orders", 3, 4)
    assert is_prepared(again)
    assert "TRAN_PREPARED_QUEUE_OFFSET" not in again.properties


def test_a_retried_message_with_a_delay_is_no_half_message_although_it_says_so() -> None:
    assert is_prepared(prepared(DELAY="3"))
    assert not is_prepared(Message("t", 0, 0, 0, 0, 0, b"", {"TRAN_MSG": "true", "DELAY": "3"}, 1))


def test_checks_are_counted_and_a_count_that_is_no_number_begins_again() -> None:
    half = prepared()
    assert not is_checked_too_often(half, 1)
    half = checked_message(half)
    assert (half.properties["TRANSACTION_CHECK_TIMES"], is_checked_too_often(half, 1)) == ("1", True)
    assert checked_message(prepared(TRANSACTION_CHECK_TIMES="x")).properties["TRANSACTION_CHECK_TIMES"] == "0"


def test_an_op_message_names_several_half_messages_and_one_with_another_tag_none() -> None:
    op = op_message(["1,", "22,"], now_ms=0, broker="b")
    assert ended_offsets(op) == (1, 22)
    assert ended_offsets(Message(OP_TOPIC, 0, 0, 0, 0, 0, b"1,")) == ()


def test_op_messages_are_done_with_in_order_and_only_when_all_their_half_messages_were_come_to() -> None:
    ended = EndedHalfMessages(store_of("5,7,", "2,", "6,"), 0, 5)
    assert ended.read_more() is None
    assert [ended.take(offset) for offset in (5, 5, 6, 8)] == [True, False, True, False]
    # The second names one that is behind us; the third is done, but the first still waits for 7.
    assert ended.new_op_offset == 0
    assert ended.take(7)
    assert ended.new_op_offset == 3


def test_an_offset_of_op_messages_that_cannot_be_is_corrected() -> None:
    assert EndedHalfMessages(store_of("1,"), 9, 0).read_more() == 1
