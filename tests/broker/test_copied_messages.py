"""Copies in retry topics and dead letter topics: what the trace is reported about where they come from."""

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.broker.tables.store.copied_messages import copy_record
from nodes.broker.tables.store.message_store import MessageStore
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import Message
from nodes.protocol.properties import ORIGIN_MESSAGE_ID, UNIQ_KEY
from nodes.protocol.retries import retry_properties
from support.every_case import each_case

HOST = "127.1.2.1:10911"
NOBODYS = offset_message_id(HOST, 999_999)


def a_store(host: str = HOST, **properties: str) -> tuple[MessageStore, Message]:
    """A store with three messages; returns the third, which is at offset 1 of its queue, too."""
    store = MessageStore(host)
    for queue_id in (1, 0, 1):
        stored = store.put_message(Message("orders", queue_id, 0, 0, 0, 0, b"x", properties, store_host=host), now_ms=7)
    return store, stored


def copy(store: MessageStore, origin: Message, topic: str, **properties: str) -> Message:
    made = origin._replace(topic=topic, queue_id=0, reconsume_times=3)
    return store.put_message(made._replace(properties={**retry_properties(origin), **properties}), now_ms=9)


def test_a_copy_in_a_retry_topic_names_its_group_and_the_place_of_its_origin() -> None:
    store, origin = a_store()
    again = copy(store, origin, "%RETRY%g")
    place = ("g", "%RETRY%g", "broker-a", 0, 0)
    expected = MessageRecord(MessageEvent.RETRIED, *place, "", 9, "", "orders broker-a 1 1")
    assert copy_record(again, "broker-a", store.look_message) == expected


def test_the_copy_of_a_copy_names_the_first_message() -> None:
    store, origin = a_store()
    letter = copy(store, copy(store, origin, "%RETRY%g"), "%DLQ%g")
    place = ("g", "%DLQ%g", "broker-a", 0, 0)
    expected = MessageRecord(MessageEvent.DEAD_LETTERED, *place, "", 9, "3", "orders broker-a 1 1")
    assert copy_record(letter, "broker-a", store.look_message) == expected


def test_a_copy_that_waits_for_its_delay_level_is_not_yet_one_of_the_group() -> None:
    store, origin = a_store()
    assert copy_record(copy(store, origin, "SCHEDULE_TOPIC_XXXX"), "broker-a", store.look_message) is None


@each_case("message_id", ["", "no id", "0" * 16, NOBODYS, "F" * 32])
def test_an_origin_that_the_log_does_not_have_is_unknown(message_id: str) -> None:
    store, origin = a_store()
    again = copy(store, origin, "%RETRY%g", **{ORIGIN_MESSAGE_ID: message_id})
    record = copy_record(again, "broker-a", store.look_message)
    assert record is not None
    assert record.key == ""


def test_another_brokers_message_at_the_same_offset_is_not_taken_for_the_origin() -> None:
    store, origin = a_store()
    others, _ = a_store("127.1.2.2:10911")
    record = copy_record(copy(store, origin, "%RETRY%g"), "broker-b", others.look_message)
    assert record is not None
    assert record.key == ""
    # Nor one of an earlier life of the broker, whose log it has lost.
    mine, known = a_store(**{UNIQ_KEY: "U1"})
    again = copy(mine, known, "%RETRY%g", **{UNIQ_KEY: "U2"})
    record = copy_record(again, "broker-a", mine.look_message)
    assert record is not None
    assert record.key == ""


def test_a_slave_knows_the_origin_by_the_address_of_the_master_that_stored_it() -> None:
    store, origin = a_store()
    again = copy(store, origin, "%RETRY%g")
    record = copy_record(again._replace(store_host="127.1.2.9:10911"), "broker-a", store.look_message)
    assert record is not None
    assert record.key == "orders broker-a 1 1"
