"""The tables of a proxy: caches, names, messages, handles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.config.proxy import ProxyConfig
from nodes.protocol.properties import SYSTEM_PROPERTIES
from nodes.protocol.v2.definition import Message, Resource, SystemProperties
from nodes.protocol.v2.enums import Code, MessageType
from nodes.proxy.tables.cache import RefreshingCache
from nodes.proxy.tables.errors import CallError, status_of_all
from nodes.proxy.tables.receipt_handle import decode_receipt_handle
from nodes.proxy.tables.topic_types import TopicMessageType, type_of_message
from nodes.proxy.tables.validation import message_properties, require_type, validate_consumer_group, validate_topic
from support.every_case import each_case, holds_for_each

CONFIG = ProxyConfig()
HANDLE = "3 1000 60000 1 0 broker-a 2 7 4096"
DAY_MS = 86_400_000

# --- caches --------------------------------------------------------------------------

REFRESH, EXPIRE = 20, 300


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 400)), max_size=40))
def test_a_cache_is_used_reloaded_and_emptied_as_a_simple_model_says(uses: list[tuple[str, int]]) -> None:
    """Each load takes no time and returns the instant of the load."""
    cache: RefreshingCache[int] = RefreshingCache(REFRESH, EXPIRE, 10)
    model: dict[str, tuple[int, int]] = {}
    now = 0
    for key, later in uses:
        now += later
        entry = cache.use(key, now)
        written, used = model.get(key, (-1, -1))
        is_there = key in model and now - used < EXPIRE
        assert (entry is not None) == is_there
        if entry is None:
            cache.put(key, now, now)
            model[key] = (now, now)
            continue
        assert entry.value == written
        reloads = now - written >= REFRESH
        assert cache.begin_reload(entry, now) == reloads
        if reloads:
            assert not cache.begin_reload(entry, now)
            cache.put(key, now, now)
        model[key] = (now if reloads else written, now)


def test_the_value_that_was_used_longest_ago_makes_room() -> None:
    cache: RefreshingCache[str] = RefreshingCache(REFRESH, EXPIRE, 2)
    for now, key in enumerate("ab"):
        cache.put(key, key, now)
    cache.use("a", 5)
    cache.put("c", "c", 6)
    assert [cache.use(key, 7) is not None for key in "abc"] == [True, False, True]


# --- names ---------------------------------------------------------------------------


@each_case(
    ("name", "text"),
    [
        ("", "The specified topic is blank"),
        ("x" * 128, "The specified topic is longer than topic max length 127."),
        ("a b", "The specified topic[a b] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("SCHEDULE_TOPIC_XXXX", "cannot access system topic"),
        ("rmq_sys_x", "cannot access system topic"),
    ],
)
def test_an_illegal_topic_is_refused_with_the_text_of_the_real_proxy(name: str, text: str) -> None:
    with pytest.raises(CallError) as refused:
        validate_topic(Resource(name))
    assert (refused.value.code, str(refused.value)) == (Code.ILLEGAL_TOPIC, text)


@each_case(
    ("name", "text"),
    [
        (" ", "the specified group is blank"),
        ("x" * 256, "the specified group is longer than group max length 255."),
        ("a/b", "the specified group[a/b] contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("CID_RMQ_SYS_x", "cannot use system consumer group"),
    ],
)
def test_an_illegal_group_is_refused_with_the_text_of_the_real_proxy(name: str, text: str) -> None:
    with pytest.raises(CallError) as refused:
        validate_consumer_group(Resource(name))
    assert (refused.value.code, str(refused.value)) == (Code.ILLEGAL_CONSUMER_GROUP, text)


# --- messages ------------------------------------------------------------------------


def a_body(body: bytes = b"x", user: dict[str, str] | None = None, **system: object) -> Message:
    properties = SystemProperties(**{"message_id": "id", **system})  # type: ignore[arg-type]
    return Message(Resource("orders"), user or {}, properties, body)


def properties_of(message: Message) -> dict[str, str]:
    return message_properties(message, CONFIG, "orders", "10.0.0.9:1", 0)


OUT_OF_BOUNDS: list[tuple[Message, Code]] = [
    (a_body(b""), Code.MESSAGE_BODY_EMPTY),
    (a_body(b"x" * (4 * 1024 * 1024 + 1)), Code.MESSAGE_BODY_TOO_LARGE),
    (a_body(user={str(n): "" for n in range(129)}), Code.MESSAGE_PROPERTIES_TOO_LARGE),
    *((a_body(user={name: "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY) for name in SYSTEM_PROPERTIES),
    (a_body(user={"a\x01": "x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    (a_body(user={"a": "x\x7f"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    (a_body(tag=" "), Code.ILLEGAL_MESSAGE_TAG),
    (a_body(tag="a|b"), Code.ILLEGAL_MESSAGE_TAG),
    (a_body(tag="a\n"), Code.ILLEGAL_MESSAGE_TAG),
    (a_body(keys=(" ",)), Code.ILLEGAL_MESSAGE_KEY),
    (a_body(keys=("a\x00",)), Code.ILLEGAL_MESSAGE_KEY),
    (a_body(user={"a": "x" * 16_384}), Code.MESSAGE_PROPERTIES_TOO_LARGE),
    (a_body(message_id=" "), Code.ILLEGAL_MESSAGE_ID),
    (
        a_body(message_type=MessageType.TRANSACTION, orphaned_transaction_recovery_duration_ms=3_601_000),
        Code.BAD_REQUEST,
    ),
    (a_body(delivery_timestamp_ms=DAY_MS + 1), Code.ILLEGAL_DELIVERY_TIME),
    (a_body(message_group=" "), Code.ILLEGAL_MESSAGE_GROUP),
    (a_body(message_group="x" * 64), Code.ILLEGAL_MESSAGE_GROUP),
    (a_body(message_group="a\x1f"), Code.ILLEGAL_MESSAGE_GROUP),
]


def test_a_message_out_of_bounds_is_refused() -> None:
    def check(case: tuple[Message, Code]) -> None:
        message, code = case
        with pytest.raises(CallError) as refused:
            properties_of(message)
        assert refused.value.code is code

    holds_for_each(check, OUT_OF_BOUNDS, lambda case: f"{case[1].name} {case[0]!r:.200}")


def test_a_message_within_all_bounds_has_these_properties() -> None:
    message = a_body(
        user={"color": "red"}, tag="t", keys=("a", "b"), message_group="x" * 63, delivery_timestamp_ms=DAY_MS
    )
    assert properties_of(message) == {
        "color": "red",
        "TAGS": "t",
        "KEYS": "a b",
        "UNIQ_KEY": "id",
        "TIMER_DELIVER_MS": str(DAY_MS),
        "RECONSUME_TIME": "0",
        "PGROUP": "orders",
        "__SHARDINGKEY": "x" * 63,
        "__BORNHOST": "10.0.0.9:1",
        "BORN_TIMESTAMP": "0",
    }


def test_the_type_of_a_message_follows_from_its_properties_in_this_order() -> None:
    all_of_them = {"TRAN_MSG": "true", "TIMER_DELIVER_MS": "1", "__SHARDINGKEY": "g"}
    names = list(all_of_them)
    found = [type_of_message({name: all_of_them[name] for name in names[first:]}) for first in range(4)]
    assert [kind.value for kind in found] == ["TRANSACTION", "DELAY", "FIFO", "NORMAL"]


@given(st.sampled_from(TopicMessageType), st.sampled_from(TopicMessageType))
def test_a_topic_takes_messages_of_its_type_and_a_mixed_one_all(
    topic: TopicMessageType, message: TopicMessageType
) -> None:
    if message is topic or topic is TopicMessageType.MIXED:
        require_type(topic, message)
        return
    with pytest.raises(CallError, match=f"the expected type is {topic}, but actual type is {message}"):
        require_type(topic, message)


# --- handles -------------------------------------------------------------------------


def test_a_handle_has_nine_words_or_eight() -> None:
    handle = decode_receipt_handle(HANDLE)
    assert (handle.broker_name, handle.queue_id, handle.offset, handle.commit_log_offset) == ("broker-a", 2, 7, 4096)
    assert handle.next_visible_time_ms == 61_000
    assert decode_receipt_handle(HANDLE.rpartition(" ")[0]).commit_log_offset == -1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Parse failed, dataList size 1. IllegalArgumentException"),
        ("1 2 3 4 5 6 7", "Parse failed, dataList size 7. IllegalArgumentException"),
        (HANDLE.replace("1000", "soon"), 'For input string: "soon". NumberFormatException'),
    ],
)
def test_a_text_that_is_no_handle_fails_with_the_exception_of_java(text: str, problem: str) -> None:
    with pytest.raises(CallError) as refused:
        decode_receipt_handle(text)
    assert (refused.value.code, str(refused.value)) == (Code.INTERNAL_SERVER_ERROR, problem)


def test_a_handle_of_a_retry_names_the_topic_that_it_was_popped_from() -> None:
    marks = {"0": "orders", "1": "%RETRY%g_orders", "2": "%RETRY%g+orders"}
    handles = {mark: decode_receipt_handle(HANDLE.replace(" 1 0 ", f" 1 {mark} ")) for mark in marks}
    assert {mark: handle.real_topic("orders", "g") for mark, handle in handles.items()} == marks


def test_a_handle_is_expired_from_the_instant_on_at_which_others_get_the_message() -> None:
    handle = decode_receipt_handle(HANDLE)
    handle.require_not_expired(60_999)
    with pytest.raises(CallError, match="receipt handle is expired"):
        handle.require_not_expired(61_000)


def test_several_results_have_one_status_if_they_agree() -> None:
    ok, busy = Code.OK, Code.TOO_MANY_REQUESTS
    assert status_of_all([ok, ok], "").code is ok
    assert status_of_all([ok, busy, ok], "").code is Code.MULTIPLE_RESULTS
    assert status_of_all([], "nothing").message == "nothing"
