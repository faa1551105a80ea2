"""Delay levels, and where messages escape to, as tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.messages.escape_bridge import EscapeBridge
from nodes.broker.shared import Log
from nodes.broker.tables.store.escape import EscapeWay, specific_queue
from nodes.broker.tables.store.put_message_result import PutMessageResult, PutMessageStatus
from nodes.broker.tables.timer.delay_levels import DelayLevels, parse_delay_level, take_out
from nodes.protocol.model import Message, MessageQueue
from nodes.rpc.errors import RemotingTimeoutError
from support.every_case import each_case

MINUTE_MS = 60_000
SENT = Message("orders", 3, 0, 0, 0, 0, b"x", {"TAGS": "a"})


def queues(*names: str) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue("t", name, queue_id) for name in names for queue_id in range(2))


@each_case(
    ("text", "levels"),
    [
        ("1s 5m", DelayLevels({1: 1_000, 2: 5 * MINUTE_MS}, 2)),
        ("1h 2d ", DelayLevels({1: 60 * MINUTE_MS, 2: 48 * 60 * MINUTE_MS}, 2)),
        ("1s  5s", DelayLevels({1: 1_000}, 1, valid=False)),
        ("1s 5x 9s", DelayLevels({1: 1_000}, 2, valid=False)),
        ("s", DelayLevels({}, 1, valid=False)),
    ],
)
def test_levels_are_read_up_to_the_first_that_is_none(text: str, levels: DelayLevels) -> None:
    assert parse_delay_level(text) == levels


@given(st.integers(1, 40), st.integers(0, 7))
def test_a_message_comes_out_as_it_was_put_aside_and_still_says_its_level(level: int, queue_id: int) -> None:
    levels = parse_delay_level("1s 5s 10s")
    sent = SENT._replace(queue_id=queue_id, properties={**SENT.properties, "DELAY": str(level)})
    waiting = levels.put_aside(sent)
    assert (waiting.topic, waiting.queue_id) == ("SCHEDULE_TOPIC_XXXX", min(level, 3) - 1)
    out = take_out(waiting)
    assert (out.topic, out.queue_id) == ("orders", queue_id)
    assert out.properties["DELAY"] == str(min(level, 3))


def test_a_message_without_level_is_not_put_aside() -> None:
    assert parse_delay_level("1s").put_aside(SENT) is SENT


@pytest.mark.trap("X16")
def test_a_message_of_a_level_that_the_broker_does_not_know_is_due_after_a_second() -> None:
    levels = parse_delay_level("1s 5s")
    assert levels.compute_deliver_timestamp(2, 100_000) == 105_000
    assert levels.compute_deliver_timestamp(9, 100_000) == 101_000


def test_a_message_that_would_wait_longer_than_its_level_is_due_now() -> None:
    levels = parse_delay_level("1s 5s")
    assert levels.correct_deliver_timestamp(2, 105_000, 100_000) == 105_000
    assert levels.correct_deliver_timestamp(2, 105_001, 100_000) == 100_000


@pytest.mark.trap("M58")
def test_the_specific_queue_of_a_broker_is_another_one_when_a_broker_has_gone() -> None:
    store_hosts = [f"10.0.0.{i}:10911" for i in range(20)]
    with_three = [specific_queue(queues("a", "b", "c"), "t", host) for host in store_hosts]
    with_two = [specific_queue(queues("a", "c"), "t", host) for host in store_hosts]
    moved = [
        (before, after)
        for before, after in zip(with_three, with_two, strict=True)
        if before.broker_name != "b" and before != after
    ]
    # A check point of a message went to one broker, what acknowledges it goes to another.
    assert any(before.broker_name != after.broker_name for before, after in moved)


@given(st.text("abc", min_size=1), st.integers(1, 9))
def test_the_specific_queue_is_one_of_them_and_always_the_same(topic: str, brokers: int) -> None:
    listed = queues(*(f"b{i}" for i in range(brokers)))
    chosen = specific_queue(listed, topic, "10.0.0.1:10911")
    assert chosen in listed
    assert specific_queue(listed, topic, "10.0.0.1:10911") == chosen


class OnlyTheOwnName:
    """Routes of a topic that no other broker serves."""

    async def try_to_find_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        return (MessageQueue(topic, "own", 0),)

    def next_queue(self, topic: str, _avoiding: str | None) -> MessageQueue:
        return MessageQueue(topic, "own", 0)

    def find_broker_address_in_publish(self, _broker_name: str) -> str:
        return "10.0.0.1:10911"


@pytest.mark.trap("Y16")
async def test_a_put_into_a_specific_queue_that_fails_raises_and_the_queue_may_be_of_the_own_name() -> None:
    requested = []

    async def send(_address: str | None, broker_name: str, _message: Message, _group: str) -> int:
        requested.append(broker_name)
        raise RemotingTimeoutError("no answer")

    async def put(_message: Message) -> PutMessageResult:
        raise AssertionError("a slave has no log of its own to put into")

    bridge = EscapeBridge("own", "inner", EscapeWay.REMOTE, Log(put, put), OnlyTheOwnName(), send)
    with pytest.raises(RemotingTimeoutError):
        await bridge.async_put_message_to_specific_queue(SENT)
    assert (await bridge.put_message_to_specific_queue(SENT)).status is PutMessageStatus.UNKNOWN_ERROR
    assert requested == ["own", "own"]
    assert await bridge.put_message(SENT) is PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL
    assert requested == ["own", "own"]
