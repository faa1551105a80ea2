"""The store against a list of messages: what it gives back, what is left after a restart, and what a message costs."""

import gc
import tracemalloc
from functools import partial

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.base.hits import Hits
from emulator.machine.disk import EmulatedDisk
from emulator.time.timeline import Timeline
from nodes.broker.files import append_to_commit_log
from nodes.broker.tables.store import commit_log
from nodes.broker.tables.store.commit_log import COMMIT_LOG_FILE, size_bytes
from nodes.broker.tables.store.message_store import FILE_BYTES, MessageStore
from nodes.protocol.headers import BoundaryType
from nodes.protocol.model import Message
from nodes.protocol.properties import KEYS, TRANSACTION_ID, UNIQ_KEY

HOST = "10.0.0.1:10911"
QUEUES = [("t", 0), ("t", 1), ("u", 0)]
EVER_MS = 1 << 40


def a_disk() -> EmulatedDisk:
    return EmulatedDisk(Timeline(), Hits())


def a_store(disk: EmulatedDisk, file_bytes: int = FILE_BYTES) -> MessageStore:
    return MessageStore(HOST, disk.map_files(COMMIT_LOG_FILE), file_bytes)


@attrs.define
class ListStore:
    """The model: a list of messages for the log, one for each of its files, and one for each queue."""

    file_bytes: int = FILE_BYTES
    log: list[Message] = attrs.Factory(list)
    queues: dict[tuple[str, int], tuple[int, list[Message]]] = attrs.Factory(dict)
    files: list[list[Message]] = attrs.Factory(list)
    deleted: list[Message] = attrs.Factory(list)
    gone: list[Message] = attrs.Factory(list)
    """Of files that were deleted."""

    @property
    def end(self) -> int:
        return self.log[-1].commit_log_offset + size_bytes(self.log[-1]) if self.log else 0

    def queue(self, topic: str, queue_id: int) -> tuple[int, list[Message]]:
        return self.queues.get((topic, queue_id), (0, []))

    def put(self, message: Message, now_ms: int) -> Message:
        low, messages = self.queue(message.topic, message.queue_id)
        place = {"queue_offset": low + len(messages), "commit_log_offset": self.end}
        return self.restore(message._replace(**place, store_timestamp=now_ms, store_host=HOST))

    def restore(self, message: Message) -> Message:
        low, messages = self.queue(message.topic, message.queue_id)
        low = low if messages else max(low, message.queue_offset)
        is_taken = message.queue_offset < low + len(messages)
        self.queues[message.topic, message.queue_id] = (low, messages if is_taken else [*messages, message])
        self.log.append(message)
        begun = self.files[-1][0].commit_log_offset // self.file_bytes if self.files else -1
        if message.commit_log_offset // self.file_bytes > begun:
            self.files.append([])
        self.files[-1].append(message)
        return message

    def delete_oldest_file(self) -> None:
        gone = self.files.pop(0)
        self.gone += gone
        self.deleted += gone
        for queue, (low, messages) in self.queues.items():
            count = sum(message in gone for message in messages)
            self.queues[queue] = (low + count, messages[count:])

    def delete_topic(self, topic: str) -> None:
        self.queues = {key: value for key, value in self.queues.items() if key[0] != topic}

    def delete_before(self, topic: str, queue_id: int, offset: int) -> None:
        if (topic, queue_id) in self.queues:
            low, messages = self.queue(topic, queue_id)
            count = max(0, min(offset - low, len(messages)))
            self.deleted += messages[:count]
            self.queues[topic, queue_id] = (low + count, messages[count:])

    def left(self) -> list[Message]:
        return [message for message in self.log if message not in self.deleted]

    def keyed(self, topic: str, key: str) -> list[int]:
        def keys(message: Message) -> list[str]:
            return [message.properties.get(UNIQ_KEY, ""), *message.properties.get(KEYS, "").split(" ")]

        there = [message for message in self.log if message not in self.gone]
        found = [m.commit_log_offset for m in there if m.topic == topic for k in keys(m) if k == key]
        return sorted(found[-64:])


texts = st.text(max_size=4)
ids = st.sampled_from(["7F0000012345ABCDEF00112233445566", "7f0000012345abcdef00112233445566", " " * 32, "ü" * 32, "k"])
properties = st.one_of(
    st.just({}),
    st.fixed_dictionaries({}, optional={"TAGS": st.sampled_from("ab"), KEYS: st.sampled_from(["k", "k l", "l  k k"])}),
    st.fixed_dictionaries({UNIQ_KEY: ids, TRANSACTION_ID: ids}),
    st.dictionaries(st.one_of(st.sampled_from(["TAGS", "PGROUP", UNIQ_KEY, KEYS]), texts), st.one_of(ids, texts)),
)
int32s = st.integers(-(2**31), 2**31 - 1)
messages = st.builds(
    lambda queue, *fields: Message(*queue, -1, -1, *fields),
    st.sampled_from(QUEUES),
    st.integers(-(2**63), 2**63 - 1),
    st.just(-1),
    st.binary(max_size=9),
    properties,
    int32s,
    st.sampled_from([0, 4]),
    int32s,
    st.sampled_from(["127.1.1.1:32768", "127.1.1.2:32768", ""]),
)
steps = st.one_of(
    st.tuples(st.just("put"), messages, st.integers(0, 3)),
    st.tuples(st.just("restore"), messages, st.integers(0, 3), st.integers(0, 2), st.integers(0, 300)),
    st.tuples(st.just("delete_before"), st.sampled_from("tu"), st.integers(0, 1), st.integers(0, 5)),
    st.tuples(st.just("delete_topic"), st.sampled_from("tu")),
    st.tuples(st.just("delete_oldest_file")),
)
sizes = st.sampled_from([FILE_BYTES, 100, 250, 1_000])
"""Bytes of a file."""


def execute(done, *stores, file_bytes=FILE_BYTES):
    """Do the steps; each store time is at most 3 ms later than the one before."""
    now_ms, model = 1_000, ListStore(file_bytes)
    for verb, *words in done:
        if verb == "put":
            message, later_ms = words
            now_ms += later_ms
            stored = model.put(message, now_ms)
            for store in stores:
                assert store.put_message(message, now_ms=now_ms) == stored
        elif verb == "restore":
            message, later_ms, queue_gap, log_gap = words
            now_ms += later_ms
            low, queued = model.queue(message.topic, message.queue_id)
            place = {"queue_offset": low + len(queued) + queue_gap - 1, "commit_log_offset": model.end + log_gap}
            stored = message._replace(**place, store_timestamp=now_ms, store_host="10.0.0.9:10911")
            model.restore(stored)
            for store in stores:
                store.restore(stored)
        elif verb != "delete_oldest_file" or len(model.files) > 1:
            for item in (model, *stores):
                getattr(item, verb)(*words)
    return model


def assert_queues_are(store, model):
    for topic, queue_id in QUEUES:
        low, queued = model.queue(topic, queue_id)
        high, times = low + len(queued), [message.store_timestamp for message in queued]
        assert (store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)) == (low, high)
        for offset in range(low - 1, high + 2):
            read = store.get_message(topic, queue_id, offset)
            assert list(read.messages) == (queued[offset - low :][:32] if low <= offset else [])
            assert store.messages(topic, queue_id, offset, 3) == tuple(queued[max(0, offset - low) :][:3])
            is_there = low <= offset < high
            assert store.store_timestamp(topic, queue_id, offset) == (times[offset - low] if is_there else -1)
        for at_ms in range(999, 1_010):
            earlier = sum(time_ms < at_ms for time_ms in times)
            until = sum(time_ms <= at_ms for time_ms in times)
            assert store.offset_by_time(topic, queue_id, at_ms) == low + earlier
            upper = low + until - 1 if until else 0
            assert store.offset_by_time(topic, queue_id, at_ms, BoundaryType.UPPER) == upper


def assert_log_is(store, model):
    left = model.left()
    assert store.max_commit_log_offset == model.end
    assert store.earliest_message_time == (left[0].store_timestamp if left else -1)
    for message in model.log:
        assert store.look_message(message.commit_log_offset) == (message if message in left else None)
        assert store.look_message(message.commit_log_offset + 1) is None
        for offset in (message.commit_log_offset, message.commit_log_offset + 1):
            data = store.commit_log_data(offset, 1 << 20)
            behind = [m for m in left if m.commit_log_offset >= offset]
            is_gone = 0 < offset < store.min_commit_log_offset
            assert list(data.messages if data else ()) == ([] if is_gone else behind)
    for topic in "tu":
        for key in ("k", "l", "7F0000012345ABCDEF00112233445566", "", "no such key"):
            expected = model.keyed(topic, key) if key else []
            assert list(store.index.query_offset(topic, key, 64, 0, EVER_MS)) == expected


@given(st.lists(steps, max_size=25), sizes)
def test_a_store_is_a_list_of_messages(done, file_bytes):
    store = MessageStore(HOST, {}, file_bytes)
    model = execute(done, store, file_bytes=file_bytes)
    assert store.file_count == len(model.files)
    assert list(store.newest_in_files()) == [file[-1].store_timestamp for file in model.files]
    first = model.files[0][0].commit_log_offset if model.files else 0
    assert store.min_commit_log_offset == first // file_bytes * file_bytes
    assert store.min_commit_log_offset <= first
    assert_queues_are(store, model)
    assert_log_is(store, model)


@given(st.lists(steps, max_size=25))
def test_properties_come_back_in_their_order(done):
    store = MessageStore(HOST)
    model = execute(done, store)
    for message in model.left():
        read = store.look_message(message.commit_log_offset)
        assert list(read.properties.items()) == list(message.properties.items())


@given(st.lists(steps, max_size=15), st.lists(steps, max_size=15), sizes)
def test_a_new_process_finds_the_log_and_goes_on_with_it(before, after, file_bytes):
    disk = a_disk()
    # What is deleted as a whole lasts. No queue has a gap: one after a file that was deleted would be forgotten.
    lasting = [
        (*step[:3], min(step[3], 1), *step[4:]) if step[0] == "restore" else step
        for step in before
        if step[0] in ("put", "restore", "delete_oldest_file")
    ]
    model = execute(lasting, a_store(disk, file_bytes), file_bytes=file_bytes)
    again = a_store(disk, file_bytes)
    again.load()
    assert again.init_max_commit_log_offset == model.end
    assert_queues_are(again, model)
    more = [step for step in after if step[0] == "put"]
    last_ms = max([message.store_timestamp for message in model.log], default=1_000)
    for number, (_, message, _) in enumerate(more):
        assert again.put_message(message, now_ms=last_ms + number) == model.put(message, last_ms + number)
    assert_log_is(again, model)
    third = a_store(disk, file_bytes)
    third.load()
    assert_log_is(third, model)


@pytest.mark.parametrize("shapes_max", [0, 2])
def test_messages_of_more_shapes_than_have_a_number_come_back(monkeypatch, shapes_max):
    monkeypatch.setattr(commit_log, "SHAPES_MAX", shapes_max)
    disk = a_disk()
    store = a_store(disk)
    stored = [
        store.put_message(Message(f"t{number % 4}", 0, 0, 0, 0, 0, b"", {"TAGS": "a"}), now_ms=1) for number in range(9)
    ]
    again = a_store(disk)
    again.load()
    for item in (store, again):
        assert item.commit_log_data(0, 1 << 20).messages == tuple(stored)


def test_a_body_that_is_longer_than_a_piece_of_the_file_is_found_again():
    disk = a_disk()
    stored = [a_store(disk).put_message(Message("t", 0, 0, 0, 0, 0, b"x" * 200_000), now_ms=1)]
    again = a_store(disk)
    again.load()
    assert again.commit_log_data(0, 1).messages == tuple(stored)


@given(st.lists(st.sampled_from(["append", "flush", "lie", "heal", "power"]), max_size=20), sizes)
def test_a_loss_of_power_leaves_the_log_up_to_the_last_flush_that_was_done(done, file_bytes):
    disk, lying = a_disk(), False
    store = a_store(disk, file_bytes)
    written = acknowledged = synced = 0
    for verb in done:
        if verb == "append":
            store.put_message(Message("t", 0, 0, 0, 0, 0, b"%d" % written, {"TAGS": f"{written % 3}"}), now_ms=1)
            written += 1
        elif verb == "flush":
            disk.flush(COMMIT_LOG_FILE)
            acknowledged = written
            synced = synced if lying else acknowledged
        elif verb == "lie":
            lying = True
            disk.lie("f")
        elif verb == "heal":
            lying, synced = False, acknowledged
            disk.heal("f")
        else:
            disk.lose_power()
            written = acknowledged = synced
            store = a_store(disk, file_bytes)
            store.load()
        assert [message.body for message in store.messages("t", 0, 0, 99)] == [b"%d" % n for n in range(written)]


def test_replicated_messages_are_on_the_disk_one_by_one():
    master, disk = MessageStore(HOST), a_disk()
    stored = [master.put_message(Message("t", 0, 0, 0, 0, 0, b"x"), now_ms=1) for _ in range(3)]
    disk.slow_down("f", 10)
    append_to_commit_log(a_store(disk), stored, partial(disk.flush, COMMIT_LOG_FILE))
    assert disk._hits.of("f") == 3
    disk.lose_power()
    again = a_store(disk)
    again.load()
    assert again.commit_log_data(0, 1 << 20).messages == tuple(stored)


BYTES_MAX = 100
"""Per message of an emulated producer, with its place in its queue, its keys in the index and its copy on the disk."""
COUNT = 8_000


def in_transaction(number: int) -> dict[str, str]:
    unique = f"7F010001000003E8{number:016X}"
    return {
        "TRAN_MSG": "true",
        "PGROUP": "tills",
        UNIQ_KEY: unique,
        TRANSACTION_ID: unique,
        "REAL_TOPIC": "orders",
        "REAL_QID": str(number % 8),
    }


@pytest.mark.parametrize(
    "properties_of",
    [lambda _: {}, lambda number: {"TAGS": "ab"[number % 2]}, in_transaction],
    ids=["plain", "tags", "in a transaction"],
)
def test_a_message_of_an_emulated_producer_takes_100_bytes_at_most(properties_of):
    assert used_bytes(COUNT, FILE_BYTES, b"", properties_of) / COUNT <= BYTES_MAX


@pytest.mark.parametrize("file_bytes", [FILE_BYTES, 1_000_000])
def test_a_message_of_a_guest_takes_its_body_and_300_bytes_at_most(file_bytes):
    body, count = b"x" * 1_024, 4_000
    assert used_bytes(count, file_bytes, body, of_a_guest) / count <= len(body) + 300


def of_a_guest(number: int) -> dict[str, str]:
    return {"KEYS": f"order-{number}", UNIQ_KEY: f"7F010001000003E8{number:016X}", "WAIT": "true", "TAGS": "paid"}


def used_bytes(count, file_bytes, body, properties_of):
    """What messages take in store, index and disk."""
    gc.collect()
    tracemalloc.start()
    try:
        disk = a_disk()
        store = a_store(disk, file_bytes)
        for number in range(count):
            born_host = f"127.1.1.{number % 8}:32768"
            content = body + str(number).encode()
            fields = (1_700_000_000_000 + number, 0, content, properties_of(number), 0, 0, 0, born_host)
            store.put_message(Message("orders", number % 8, 0, 0, *fields), now_ms=1_700_000_000_003 + number)
            disk.flush(COMMIT_LOG_FILE)
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(store.max_offset("orders", queue_id) for queue_id in range(8)) == count
    return used


def test_keys_with_the_same_hash_are_reported_apart():
    store = MessageStore(HOST)
    keys = ["plumless", "buckeroo"]  # their CRC-32 is the same
    begins = [
        store.put_message(Message("t", 0, 0, 0, 0, 0, b"", {KEYS: key}), now_ms=1).commit_log_offset for key in keys
    ]
    assert [store.index.query_offset("t", key, 64, 0, EVER_MS) for key in keys] == [(begin,) for begin in begins]
