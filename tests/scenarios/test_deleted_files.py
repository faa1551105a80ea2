"""Files of the log that are deleted: what clients, operators and slaves see of it."""

import pytest

from emulator.spec import TopicSpec
from emulator.testing import TOPIC, Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.registry import decode_header
from support.asking_guest import Guest, a_guest

BROKER = "broker-a"
BODY = b"x" * 900
"""A message with it has 1,000 bytes, which here is a file."""
FULL = BrokerConfig(store_max_bytes=16_000)
LEFT = 15
"""Messages that are left when one has begun the sixteenth file: it must have room for all of its file."""
HOUR_MS = 3_600_000


async def send(guest: Guest, count: int, topic: str = TOPIC) -> None:
    for _ in range(count):
        assert (await guest.send(BROKER, topic, BODY)).code == ResponseCode.SUCCESS


def bounds(stage: Stage, node: str = BROKER, topic: str = TOPIC) -> tuple[int, int]:
    store = stage.node(node).context.store
    return store.min_offset(topic, 0), store.max_offset(topic, 0)


def test_at_the_limit_the_oldest_messages_go_and_pulls_below_are_sent_to_the_first_one_that_is_left() -> None:
    answers = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await send(guest, 40)
        await guest.beat(BROKER, group="g", topic=TOPIC)
        first = 40 - LEFT
        answers.extend([await guest.ask(BROKER, RequestCode.PULL_MESSAGE, pull_at(at)) for at in (first - 1, first)])

    trace = execute(a_scenario(queues=1, brokers=broker_groups(config=FULL)), script)

    moved, found = answers
    assert (moved.code, found.code) == (ResponseCode.PULL_OFFSET_MOVED, ResponseCode.SUCCESS)
    read = decode_header(headers.PullMessageResponseHeader, moved.ext_fields)
    assert (read.next_begin_offset, read.min_offset, read.max_offset) == (40 - LEFT, 40 - LEFT, 40)
    lines = [row for row in trace.select("lifecycle", node=BROKER) if row.event.startswith("store_")]
    assert [row.event for row in lines] == ["store_nearly_full", "store_full"], "each once, the warning first"
    assert lines[0].detail == (
        "13,000 of 16,000 bytes of the log are used; at the limit its oldest messages are deleted, consumed or not"
    )


def pull_at(offset: int) -> headers.PullMessageRequestHeader:
    return headers.PullMessageRequestHeader("g", TOPIC, 0, offset, 32, 0, 0, 0, 0)


def test_a_consumer_that_comes_back_too_late_goes_on_with_the_first_message_that_is_left() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.for_ms(5_000)
        await send(guest, 5)
        await stage.for_ms(6_000)
        await stage.stop("c1")
        await send(guest, 40)
        stage.start("c1")
        await stage.for_ms(30_000)

    trace = execute(a_scenario(queues=1, consumers=1, brokers=broker_groups(config=FULL)), script)

    consumed = sorted(offset for _, _, offset in trace.consumed())
    assert consumed == [*range(5), *range(45 - LEFT, 45)]


def test_a_restarted_broker_remembers_the_ends_of_queues_whose_messages_are_all_gone() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await send(guest, 3, "news")
        await send(guest, 40)
        before = bounds(stage, topic="news"), bounds(stage)
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(2_000)
        assert (bounds(stage, topic="news"), bounds(stage)) == before == ((3, 3), (40 - LEFT, 40))
        await send(guest, 1, "news")
        assert bounds(stage, topic="news") == (3, 4)

    topics = (TopicSpec(TOPIC, (BROKER,), 1), TopicSpec("news", (BROKER,), 1))
    execute(a_scenario(topics=topics, brokers=broker_groups(config=FULL)), script)


def test_a_slave_deletes_files_of_its_own() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.for_ms(10_000)
        await send(guest, 40)
        await stage.for_ms(10_000)
        assert bounds(stage, "broker-a-s1") == bounds(stage) == (40 - LEFT, 40)

    execute(a_scenario(queues=1, brokers=broker_groups(config=FULL, slaves=1)), script)


def test_a_slave_that_comes_back_when_its_masters_file_is_gone_gets_nothing_any_more() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.for_ms(10_000)
        await send(guest, 5)
        await stage.for_ms(2_000)
        await stage.stop("broker-a-s1")
        await send(guest, 40)
        stage.start("broker-a-s1")
        await stage.for_ms(60_000)
        assert (bounds(stage, "broker-a-s1"), bounds(stage)) == ((0, 5), (45 - LEFT, 45))

    execute(a_scenario(queues=1, brokers=broker_groups(config=FULL, slaves=1)), script)


def test_old_files_go_at_their_hour_but_for_the_last_one() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await send(guest, 5)
        await stage.at_ms(HOUR_MS - 1)
        assert bounds(stage) == (0, 5)
        await stage.at_ms(HOUR_MS + 20_000)
        assert bounds(stage) == (4, 5)

    old_at_one = BrokerConfig(mapped_file_size_commit_log=1_000, file_reserved_time=1, delete_when="01")
    execute(a_scenario(queues=1, brokers=broker_groups(config=old_at_one)), script)


@pytest.mark.parametrize(("requested_ms", "left"), [(HOUR_MS - 250_000, 0), (HOUR_MS + 20_000, 4)])
def test_an_operator_has_old_files_deleted_at_any_hour_for_200_s(requested_ms: int, left: int) -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await send(guest, 5)
        await stage.at_ms(requested_ms)
        assert (await guest.ask(BROKER, RequestCode.DELETE_EXPIRED_COMMITLOG, None)).code == ResponseCode.SUCCESS
        await stage.for_ms(300_000)
        assert bounds(stage) == (left, 5)

    old_at_night = BrokerConfig(mapped_file_size_commit_log=1_000, file_reserved_time=1, delete_when="23")
    execute(a_scenario(queues=1, brokers=broker_groups(config=old_at_night)), script)
