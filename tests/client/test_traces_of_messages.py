"""Traces of messages: their texts, as the classes of 5.3.3 write them, and the queue in which they wait."""

from nodes.client.tables.message_traces import (
    ConsumeReturnType,
    SentMessage,
    TraceContext,
    TracedMessage,
    TraceQueue,
    end_transaction_trace,
    pub_trace,
    sub_after_trace,
    sub_before_trace,
    trace_messages,
)
from nodes.protocol.java import hash_ordered
from nodes.protocol.properties import DELAY_TIME_LEVEL, KEYS, TAGS, UNIQ_KEY

RED = TracedMessage("orders", "ID1", {TAGS: "red", KEYS: "k1", UNIQ_KEY: "ID1"})
PLAIN_AGAIN = TracedMessage("orders", "ID2", {UNIQ_KEY: "ID2"}, reconsume_times=2)


def shown(context: TraceContext) -> tuple[str, str]:
    """The text with visible separators, and the keys of a message with this trace alone."""
    text = context.text.replace("\x01", "<1>").replace("\x02", "<2>")
    return text, " ".join(hash_ordered(context.keys))


def test_the_trace_of_a_delayed_message_that_was_not_replicated() -> None:
    message = TracedMessage("orders", "ID1", {TAGS: "red", KEYS: "k1 k2", DELAY_TIME_LEVEL: "3"})
    sent = SentMessage(message, "shop", "R", 1000, 3, "10.0.0.1:10911", 7, "OFF", succeeded=False)

    assert shown(pub_trace(sent)) == (
        "Pub<1>1000<1>R<1>shop<1>orders<1>ID1<1>red<1>k1 k2<1>10.0.0.1:10911<1>7<1>3<1>3<1>OFF<1>false<2>",
        "k1 ID1 k2",
    )


def test_the_trace_of_a_send_without_tag_and_keys_has_nulls() -> None:
    message = TracedMessage("orders", "ID1", {UNIQ_KEY: "ID1"})
    sent = SentMessage(message, "shop", "R", 1000, 3, "10.0.0.1:10911", 7, "OFF", succeeded=True)

    assert shown(pub_trace(sent)) == (
        "Pub<1>1000<1>R<1>shop<1>orders<1>ID1<1>null<1>null<1>10.0.0.1:10911<1>7<1>3<1>0<1>OFF<1>true<2>",
        "ID1",
    )


def test_the_traces_before_and_after_a_consumption_have_a_text_for_each_message() -> None:
    batch = (RED, PLAIN_AGAIN)
    before = sub_before_trace(batch, "billing", "R", "REQ", 2000)
    after = sub_after_trace(batch, "billing", "R", "REQ", 5, ConsumeReturnType.FAILED, 2500, succeeded=False)

    assert shown(before) == (
        (
            "SubBefore<1>2000<1>R<1>billing<1>REQ<1>ID1<1>0<1>k1<2>"
            "SubBefore<1>2000<1>R<1>billing<1>REQ<1>ID2<1>2<1>null<2>"
        ),
        "k1 ID2 ID1",
    )
    assert shown(after) == (
        (
            "SubAfter<1>REQ<1>ID1<1>5<1>false<1>k1<1>4<1>2500<1>billing<2>"
            "SubAfter<1>REQ<1>ID2<1>5<1>false<1>null<1>4<1>2500<1>billing<2>"
        ),
        "k1 ID2 ID1",
    )


def test_the_trace_of_an_answer_to_a_check_of_a_transaction() -> None:
    trace = end_transaction_trace(RED, "shop", "R", "10.0.0.1:10911", "UNKNOW", 3000, checked=True)

    assert shown(trace) == (
        "EndTransaction<1>3000<1>R<1>shop<1>orders<1>ID1<1>red<1>k1<1>10.0.0.1:10911<1>2<1>ID1<1>UNKNOW<1>true<2>",
        "k1 ID1",
    )


def test_traces_of_one_topic_share_a_message_until_it_has_128_000_characters() -> None:
    long = TraceContext("orders", "R", "x" * 64_000, ("a",))
    other = TraceContext("bills", "R", "y", ("b",))

    found = trace_messages([long, other, long, long], "T")

    assert sorted((len(body), keys) for body, keys in found) == [(1, "b"), (64_000, "a"), (128_000, "a")]


def trace_of(name: str) -> TraceContext:
    return TraceContext("orders", "R", name, (name,))


def test_a_batch_is_due_when_it_is_full_or_more_than_5_s_after_the_last_one() -> None:
    queue = TraceQueue(2, now_ms=1_000)
    assert queue.wait_ms(1_000) is None

    queue.append(trace_of("a"))
    assert queue.wait_ms(3_000) == 3_001
    queue.append(trace_of("b"))
    assert queue.wait_ms(3_000) == 0
    queue.append(trace_of("c"))
    assert [context.text for context in queue.take(3_000)] == ["a", "b"]
    assert queue.wait_ms(3_000) == 5_001
    assert queue.wait_ms(9_000) == 0
    assert [context.text for context in queue.take(9_000)] == ["c"]


def test_at_most_20_traces_are_a_batch_and_the_2049th_that_waits_is_discarded() -> None:
    queue = TraceQueue(50, now_ms=0)

    kept = [queue.append(trace_of(str(number))) for number in range(2_049)]

    assert kept == [True] * 2_048 + [False]
    assert queue.discarded == 1
    assert len(queue.take(0)) == 20
