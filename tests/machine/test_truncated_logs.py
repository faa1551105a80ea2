"""A log that is cut off, as a slave's is when its master has another one: it is that of whoever never had the rest."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.store.message_store import MessageStore
from nodes.protocol.model import Message

QUEUES = (("t", 0), ("t", 1), ("u", 0))
FILE_BYTES = 700


def stored(store, places):
    """Messages in these queues, and where each begins in the log."""
    begins = []
    for number, place in enumerate(places):
        topic, queue_id = QUEUES[place]
        begins.append(store.max_commit_log_offset)
        message = Message(topic, queue_id, 0, 0, 1, 0, b"x" * (number % 7), {"KEYS": f"k{number}"})
        store.put_message(message, now_ms=1_000 + number)
    return begins


def reported(store):
    ends = [(store.min_offset(*queue), store.max_offset(*queue)) for queue in QUEUES]
    return store.max_commit_log_offset, ends, [store.messages(*queue, 0, 100) for queue in QUEUES]


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.data())
def test_what_is_cut_off_was_never_there_also_for_the_next_process(places, data):
    contents = {}
    store = MessageStore("h:1", contents, FILE_BYTES)
    begins = stored(store, places)
    retained = data.draw(st.integers(0, len(places)))
    store.truncate(begins[retained] if retained < len(places) else store.max_commit_log_offset)

    short = MessageStore("h:1", {}, FILE_BYTES)
    stored(short, places[:retained])
    loaded = MessageStore("h:1", contents, FILE_BYTES)
    loaded.load()
    assert reported(store) == reported(short)
    assert reported(loaded) == reported(short)
    stored(store, (0, 1))
    stored(short, (0, 1))
    assert reported(store) == reported(short)


def test_what_was_deleted_with_the_oldest_file_stays_deleted():
    store = MessageStore("h:1", {}, FILE_BYTES)
    begins = stored(store, (0, 1, 2) * 12)
    store.delete_oldest_file()
    lows = [store.min_offset(*queue) for queue in QUEUES]
    store.truncate(begins[-3])

    assert [store.min_offset(*queue) for queue in QUEUES] == lows
    assert [store.max_offset(*queue) for queue in QUEUES] == [11, 11, 11]
    assert min(lows) > 0
