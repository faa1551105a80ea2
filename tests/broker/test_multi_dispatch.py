"""Messages that name `%LMQ%` queues: their offsets, their entries, and what spoils the dispatch; as 5.3.3 was seen."""

import json

import pytest

from nodes.broker.tables.clients.lmq_offsets import LmqConsumerOffsetManager
from nodes.broker.tables.metadata.lmq import LmqSubscriptionGroupManager, LmqTopicConfigManager
from nodes.broker.tables.store.get_message_result import GetMessageStatus
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.multi_dispatch import DispatchFailedError, MultiDispatch
from nodes.protocol.model import DataVersion, Message, SubscriptionGroupConfig, TopicConfig
from nodes.protocol.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET

HOST = "127.0.0.1:10911"
A, B = "%LMQ%a", "%LMQ%b"


def a_store(contents: dict[int, bytearray] | None = None, *, lmq: bool = True, dispatch: bool = True) -> MessageStore:
    return MessageStore(HOST, contents, multi_dispatch=MultiDispatch(enable_lmq=lmq, enable_multi_dispatch=dispatch))


def put(store: MessageStore, names: str = "", topic: str = "parent", *, in_batch: bool = False) -> Message:
    """Store a message; returns it."""
    properties = {INNER_MULTI_DISPATCH: names} if names else {}
    return store.put_message(Message(topic, 0, 0, 0, 0, 0, b"x", properties), now_ms=1_000, in_batch=in_batch)


def offsets(message: Message) -> str | None:
    return message.properties.get(INNER_MULTI_QUEUE_OFFSET)


def test_a_message_gets_the_next_offset_of_each_queue_that_it_names() -> None:
    store = a_store()

    stored = [put(store, names) for names in (f"{A},{B}", A, "", B)]

    assert [offsets(message) for message in stored] == ["0,0", "1", None, "1"]
    assert (store.max_offset(A, 0), store.max_offset(B, 0), store.max_offset("parent", 0)) == (2, 2, 4)


@pytest.mark.trap("S1")
def test_a_read_of_such_a_queue_finds_the_messages_with_topic_and_offset_of_their_own_queue() -> None:
    store = a_store()
    for names in ("", "", A, "", A):
        put(store, names)

    result = store.get_message(A, 0, 0, 32)

    assert [(message.topic, message.queue_offset) for message in result.messages] == [("parent", 2), ("parent", 4)]
    assert (result.next_begin_offset, result.min_offset, result.max_offset) == (2, 0, 2)
    assert store.get_message(A, 0, 2).status is GetMessageStatus.OFFSET_OVERFLOW_ONE


@pytest.mark.parametrize("topic", ["%RETRY%g", "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"])
def test_what_waits_or_was_sent_back_is_not_dispatched(topic: str) -> None:
    store = a_store()

    assert offsets(put(store, A, topic)) is None
    assert store.max_offset(A, 0) == 0


@pytest.mark.trap("S2")
def test_a_half_message_is_dispatched_before_its_transaction_has_ended() -> None:
    store = a_store()

    put(store, A, "RMQ_SYS_TRANS_HALF_TOPIC")

    assert [message.topic for message in store.get_message(A, 0, 0).messages] == ["RMQ_SYS_TRANS_HALF_TOPIC"]


def test_messages_of_a_batch_are_not_dispatched() -> None:
    store = a_store()

    assert offsets(put(store, A, in_batch=True)) is None
    assert store.max_offset(A, 0) == 0


def test_without_one_of_the_two_options_queues_stay_empty_but_offsets_may_be_counted() -> None:
    counted, plain = a_store(dispatch=False), a_store(lmq=False)

    assert [offsets(put(counted, A)), offsets(put(counted, A))] == ["0", "1"]
    assert offsets(put(plain, A)) is None
    assert (counted.max_offset(A, 0), plain.max_offset(A, 0)) == (0, 0)


def test_a_name_at_the_end_that_is_no_lmq_costs_an_offset_and_no_queue_gets_the_message() -> None:
    store = a_store()
    put(store, A)

    assert offsets(put(store, f"{A},other")) == "1,"
    assert store.max_offset(A, 0) == 1
    assert offsets(put(store, A)) == "2"
    assert store.max_offset(A, 0) == 2  # at the next place, though it has offset 2


def test_a_queue_that_is_named_twice_gets_one_message() -> None:
    store = a_store()

    assert offsets(put(store, f"{A},{A}")) == "0,0"
    assert store.max_offset(A, 0) == 1


def test_a_name_before_the_end_that_is_no_lmq_stops_the_dispatch_of_the_broker() -> None:
    store = a_store()

    assert offsets(put(store, f"other,{A}")) == ",0"
    put(store)
    put(store, A)

    assert store.max_offset("parent", 0) == 1  # of the message itself
    assert store.max_offset(A, 0) == 0
    assert put(store).queue_offset == 3


def test_a_log_with_such_a_message_is_not_recovered() -> None:
    contents: dict[int, bytearray] = {}
    put(a_store(contents), f"other,{A}")

    with pytest.raises(DispatchFailedError, match="names queues that are no LMQ: other,%LMQ%a"):
        a_store(contents).load()


def test_a_broker_that_has_restarted_counts_on_from_the_ends_of_its_queues() -> None:
    contents: dict[int, bytearray] = {}
    before = a_store(contents)
    put(before, A)
    put(before, A)

    again = a_store(contents)
    again.load()

    assert again.max_offset(A, 0) == 2
    assert offsets(put(again, A)) == "2"


def test_topics_and_groups_with_the_prefix_exist_and_change_nothing() -> None:
    topics, groups = (
        LmqTopicConfigManager(now_ms=0, cluster="c", broker_name="b"),
        LmqSubscriptionGroupManager(now_ms=0),
    )
    versions = topics.data_version, groups.data_version

    topics.update_topic_config(TopicConfig(A, 8, 8), now_ms=1)
    groups.update_subscription_group_config(SubscriptionGroupConfig(A, retry_max_times=1), now_ms=1)

    assert topics.select_topic_config(A) == TopicConfig(A, 1, 1)
    assert groups.find_subscription_group_config(A, now_ms=1) == SubscriptionGroupConfig(A)
    assert groups.contains_subscription_group(A)
    assert A not in topics.topics
    assert A not in groups.groups
    assert (topics.data_version, groups.data_version) == versions


def lmq_offsets() -> LmqConsumerOffsetManager:
    return LmqConsumerOffsetManager(
        now_ms=0, consumer_offset_update_version_step=1, use_server_side_reset_offset=True, max_queues=100
    )


def test_offsets_of_lmq_groups_have_a_table_of_their_own_in_the_same_file() -> None:
    table = lmq_offsets()
    table.commit_offset("%LMQ%g", A, 0, 22, now_ms=1)
    table.commit_offset("g", A, 0, 12, now_ms=1)

    assert table.query_offset("%LMQ%g", A, 0) == 22
    assert table.query_offsets("%LMQ%g", A) == {0: 22}
    assert table.query_offsets("%LMQ%g", B) == {}
    stored = json.loads(table.encode())
    assert stored["lmqOffsetTable"] == {"%LMQ%a@%LMQ%g": 22}
    assert stored["offsetTable"] == {"%LMQ%a@g": {"0": 12}}
    assert table.offsets == {"%LMQ%a@g": {0: 12}}  # what slaves copy


def test_the_file_of_offsets_gives_no_version_and_commits_of_lmq_groups_make_none() -> None:
    table = lmq_offsets()
    table.commit_offset("%LMQ%g", A, 0, 5, now_ms=1)
    assert table.data_version == DataVersion(timestamp=0)
    table.commit_offset("g", A, 0, 5, now_ms=1)
    assert table.data_version == DataVersion(timestamp=1, counter=1)

    again = lmq_offsets()
    again.decode(table.encode(), now_ms=2)
    assert again.data_version == DataVersion(timestamp=0)
    assert (again.query_offset("%LMQ%g", A, 0), again.query_offset("g", A, 0)) == (5, 5)
    again.remove_offset("%LMQ%g")
    assert again.query_offset("%LMQ%g", A, 0) == -1
