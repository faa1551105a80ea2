"""Which files of the log are deleted, and when: a broker's look at them, without a broker."""

import pytest

from nodes.broker.tables.store.expired_files import expired_files, has_room, is_nearly_full, is_time_to_delete
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config import BrokerConfig
from nodes.config.store import StoreConfig
from nodes.fields import FieldError
from nodes.protocol.model import Message
from support.every_case import each_case

HOUR_MS = 3_600_000
MESSAGE = Message("t", 0, 0, 0, 0, 0, b"x" * 100)
MESSAGE_BYTES = 200


def filled(config, count):
    store = MessageStore("10.0.0.1:10911", {}, config.commit_log_file_bytes)
    for _ in range(count):
        store.put_message(MESSAGE, now_ms=1)
    return store


@each_case(
    ("hours", "at_ms", "expected"),
    [
        ("04", 4 * HOUR_MS, True),
        ("04", 5 * HOUR_MS - 1, True),
        ("04", 5 * HOUR_MS, False),
        ("4;23", 1_000 * 24 * HOUR_MS + 23 * HOUR_MS, True),
        ("4;23", 0, False),
    ],
)
def test_the_hours_of_delete_when_are_whole_hours_of_the_day(hours, at_ms, expected):
    assert is_time_to_delete(StoreConfig(delete_when=hours), at_ms) is expected


@each_case("hours", ["", "24", "4,5", "4;", "-1", "x", "٤"])
def test_what_is_no_hour_is_refused_in_one_line(hours):
    with pytest.raises(FieldError, match="deleteWhen: expected hours from 0 to 23, separated by semicolons"):
        BrokerConfig(delete_when=hours)


@each_case(
    ("newest_h", "count", "now_h", "expected"),
    [
        ([0, 1, 2, 3], 4, 71, 0),
        ([0, 1, 2, 3], 4, 72, 1),
        ([0, 1, 2, 3], 4, 74, 3),
        ([0, 1, 2, 3], 4, 1_000, 3),
        ([0, 90, 0, 0], 4, 100, 1),
        ([0], 1, 1_000, 0),
        ([], 0, 1_000, 0),
        ([0] * 40, 40, 1_000, 10),
    ],
    ids=["young", "one", "three", "the last stays", "none in the middle", "alone", "no log", "ten at once"],
)
def test_files_are_deleted_from_the_oldest_on_until_one_is_too_young(newest_h, count, now_h, expected):
    newest_ms = (hour * HOUR_MS for hour in newest_h)
    assert expired_files(newest_ms, count, StoreConfig(), now_h * HOUR_MS) == expected


def test_a_log_with_a_limit_has_sixteen_files_or_more():
    assert StoreConfig().commit_log_file_bytes == 1 << 30
    assert StoreConfig(store_max_bytes=3_200).commit_log_file_bytes == 200
    assert StoreConfig(store_max_bytes=3_200, mapped_file_size_commit_log=100).commit_log_file_bytes == 100


def test_a_log_is_nearly_full_above_its_ratio_and_full_when_no_further_file_has_room():
    config = StoreConfig(store_max_bytes=16 * MESSAGE_BYTES)
    assert [is_nearly_full(filled(config, count), config) for count in (12, 13)] == [False, True]
    assert [has_room(filled(config, count), config) for count in (15, 16)] == [True, False]


def test_a_log_without_a_limit_is_never_full():
    store = filled(StoreConfig(), 100)
    assert (is_nearly_full(store, StoreConfig()), has_room(store, StoreConfig())) == (False, True)
