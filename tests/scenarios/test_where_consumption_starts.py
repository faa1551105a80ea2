"""Where a new group starts: in its topics, and in its retry topic."""

from datetime import UTC, datetime

import pytest

from emulator.testing import RETRY, TOPIC, Stage, a_scenario, consumer_group, execute
from emulator.time.timeline import EPOCH_MS
from nodes.config import ConsumerConfig
from nodes.protocol.model import Message

BORN_S = 60
"""When the group is born; until then no one has consumed anything."""


def starts(consume_from_where, **options):
    """topic -> offset at which a group starts whose queues have lost their first messages."""

    async def script(stage: Stage) -> None:
        await stage.kill("c1")
        await stage.at_ms(BORN_S * 1_000)
        store = stage.node("broker-a").context.store
        for _ in range(5):
            store.put_message(Message(RETRY, 0, 0, 0, 0, 0, b"once more"), now_ms=0)
        for topic in (TOPIC, RETRY):  # else brokers would say: start at 0
            store.delete_before(topic, 0, 2)
        stage.start("c1")
        await stage.for_ms(1_100)

    config = ConsumerConfig(consume_from_where=consume_from_where, **options)
    trace = execute(a_scenario(consumers=consumer_group(1, config), queues=1, rate_per_s=1), script)
    return {row.topic: row.offset for row in trace.select("ownership", event="acquired")}


@pytest.mark.parametrize(
    ("consume_from_where", "offset"),
    [
        ("CONSUME_FROM_FIRST_OFFSET", 0),
        ("CONSUME_FROM_LAST_OFFSET", BORN_S + 2),
        ("CONSUME_FROM_MAX_OFFSET", BORN_S + 2),
    ],
)
def test_a_group_without_offsets_starts_where_it_says_and_its_retry_topic_at_0(consume_from_where, offset):
    assert starts(consume_from_where) == {TOPIC: offset, RETRY: 0}


@pytest.mark.trap("C13")
def test_a_group_that_starts_from_an_instant_starts_at_the_end_of_its_retry_topic():
    from_the_instant = starts("CONSUME_FROM_TIMESTAMP", consume_timestamp=text_of(40))

    # A message each second; five wait in the retry topic and are left out.
    assert from_the_instant == {TOPIC: 40, RETRY: 5}


def test_without_an_instant_half_an_hour_ago_is_meant():
    assert starts("CONSUME_FROM_TIMESTAMP") == {TOPIC: 2, RETRY: 5}


def text_of(second):
    return datetime.fromtimestamp(EPOCH_MS / 1_000 + second, UTC).strftime("%Y%m%d%H%M%S")
