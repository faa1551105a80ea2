"""Options of a proxy that change what its brokers get: `enableBatchAck` and `useDelayLevel`."""

from typing import Any

import attrs
import pytest

from emulator.spec.model.scenario import TopicSpec
from emulator.testing import Stage, Trace, broker_groups
from nodes.config.proxy import ProxyConfig
from nodes.fields import FieldError
from nodes.protocol.bodies import BatchAck
from nodes.protocol.codes import RequestCode
from nodes.protocol.properties import DELAY_TIME_LEVEL
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import Message, Resource
from nodes.protocol.v2.enums import Code
from nodes.proxy.tables.batch_acks import batch_of, by_broker
from nodes.proxy.tables.errors import JavaExceptionError
from nodes.proxy.tables.receipt_handle import ReceiptHandle, decode_receipt_handle
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.proxy.tables.validation import message_properties
from support.every_case import each_case
from support.proxy_guest import BORN_MS, BROKER, DELAY, GROUP, TOPIC, ProxyGuest, a_message, proxies, runs

BATCHES = ProxyConfig(enable_batch_ack=True)


def handle(start: int, offset: int, *, broker: str = BROKER, queue: int = 1, retry: str = "0") -> ReceiptHandle:
    return decode_receipt_handle(f"{start} 1000 60000 3 {retry} {broker} {queue} {offset} 77")


# --- the request ------------------------------------------------------------------------


def test_messages_of_one_pop_and_one_queue_are_bits_of_one_entry() -> None:
    body = batch_of([handle(10, 10), handle(10, 12), handle(10, 19)], "g", "t")
    assert body.broker_name == BROKER
    assert body.acks == (BatchAck("g", "t", "0", 10, 1, 3, 1000, 60000, "BQI="),)  # bits 0, 2 and 9: 0x05 0x02


def test_other_queues_pops_and_retries_are_entries_of_their_own() -> None:
    handles = [handle(10, 10), handle(10, 10, queue=2), handle(20, 20), handle(10, 10, retry="1")]
    acks = batch_of(handles, "g", "t").acks
    assert {(ack.queue_id, ack.start_offset, ack.retry, ack.bit_set) for ack in acks} == {
        (1, 10, "0", "AQ=="),
        (2, 10, "0", "AQ=="),
        (1, 20, "0", "AQ=="),
        (1, 10, "1", "AQ=="),
    }


def test_an_offset_before_its_pop_is_an_error_of_java() -> None:
    with pytest.raises(JavaExceptionError, match="bitIndex < 0: -1"):
        batch_of([handle(10, 9)], "g", "t")


def test_brokers_come_in_the_order_of_a_hash_table() -> None:
    names = ["broker-b", "broker-a", "broker-b"]
    found = by_broker(enumerate(handle(0, 0, broker=name) for name in names))
    assert {name: [place for place, _ in items] for name, items in found.items()} == {
        "broker-a": [1],
        "broker-b": [0, 2],
    }


# --- batches of a cluster ----------------------------------------------------------------


async def received(stage: Stage, guest: ProxyGuest, count: int, broker: str = BROKER, **options: Any) -> list[Message]:
    """Messages that the guest has sent and received."""
    await guest.come()
    await guest.receive(broker=broker)
    for number in range(count):
        await guest.send(a_message(str(number).encode(), message_id=f"id-{number}"))
    await stage.for_ms(100)
    return list((await guest.receive(broker=broker, **options)).messages)


async def ack_all(guest: ProxyGuest, messages: list[Message]) -> service.AckMessageResponse:
    entries = tuple(
        service.AckMessageEntry(m.system_properties.message_id, m.system_properties.receipt_handle or "")
        for m in messages
    )
    request = service.AckMessageRequest(Resource(GROUP), Resource(TOPIC), entries)
    answer: service.AckMessageResponse = await guest.call(RequestCode.V2_ACK_MESSAGE, request)
    return answer


def with_handle(message: Message, text: str) -> Message:
    return attrs.evolve(message, system_properties=attrs.evolve(message.system_properties, receipt_handle=text))


def requests(trace: Trace, code: RequestCode) -> int:
    return len(trace.select("rpc", event="delivered", kind="request", code=int(code)))


@pytest.mark.parametrize(("config", "expected"), [(BATCHES, (0, 1)), (ProxyConfig(), (3, 0))])
def test_a_call_with_three_messages_is_one_request_in_a_batch(config: ProxyConfig, expected: tuple[int, int]) -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        messages = await received(stage, guest, 3)
        answer = await ack_all(guest, messages)
        assert (answer.status.code, [entry.status.code for entry in answer.entries]) == (Code.OK, [Code.OK] * 3)
        assert {entry.message_id for entry in answer.entries} == {"id-0", "id-1", "id-2"}
        await stage.for_ms(30_000)
        assert (await guest.receive()).messages == ()

    trace = runs(proxies(queues=1, config=config), script)
    assert (requests(trace, RequestCode.ACK_MESSAGE), requests(trace, RequestCode.BATCH_ACK_MESSAGE)) == expected


def test_a_batch_reports_handles_that_are_too_old_first_and_acknowledges_the_others() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        fresh, other = await received(stage, guest, 2)
        words = (other.system_properties.receipt_handle or "").split(" ")
        old = with_handle(other, " ".join([words[0], "1000", *words[2:]]))
        answer = await ack_all(guest, [fresh, old])
        assert answer.status.code is Code.MULTIPLE_RESULTS
        assert [(entry.message_id, entry.status.code) for entry in answer.entries] == [
            (other.system_properties.message_id, Code.INVALID_RECEIPT_HANDLE),
            (fresh.system_properties.message_id, Code.OK),
        ]

    runs(proxies(queues=1, config=BATCHES), script)


@pytest.mark.trap("G56")
def test_one_handle_that_is_none_or_of_an_unknown_broker_fails_the_whole_call_of_a_batch() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        first, second = await received(stage, guest, 2)
        garbage = await ack_all(guest, [first, with_handle(second, "a b c")])
        assert (garbage.status.code, garbage.entries) == (Code.INTERNAL_SERVER_ERROR, ())
        text = (second.system_properties.receipt_handle or "").replace(BROKER, "gone")
        unknown = await ack_all(guest, [first, with_handle(second, text)])
        assert (unknown.status.code, unknown.entries) == (Code.INVALID_RECEIPT_HANDLE, ())
        assert unknown.status.message.endswith("cannot find broker gone")

    runs(proxies(queues=1, config=BATCHES), script)


@pytest.mark.parametrize(
    ("config", "code"), [(BATCHES, Code.INTERNAL_SERVER_ERROR), (ProxyConfig(), Code.PROXY_TIMEOUT)]
)
def test_a_time_out_of_a_batch_is_an_internal_error(config: ProxyConfig, code: Code) -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        (message,) = await received(stage, guest, 1, invisible_ms=60_000)
        stage.cut("proxy-1", BROKER, one_way=True)
        assert (await ack_all(guest, [message])).entries[0].status.code is code

    runs(proxies(queues=1, config=config), script)


def test_each_broker_gets_one_request_of_a_batch() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        messages = await received(stage, guest, 8)
        messages += (await guest.receive(broker="broker-b")).messages
        assert len(messages) == 8
        answer = await ack_all(guest, messages)
        assert answer.status.code is Code.OK

    trace = runs(proxies(brokers=broker_groups("broker-a", "broker-b"), queues=1, config=BATCHES), script)
    assert requests(trace, RequestCode.BATCH_ACK_MESSAGE) == 2


# --- delay levels -------------------------------------------------------------------------


@each_case(
    ("delay_ms", "level"),
    [(-5, 1), (0, 1), (999, 1), (1_000, 2), (5_000, 3), (9_999, 3), (3_600_000, 18), (7_200_000, 18), (80_000_000, 18)],
)
@pytest.mark.trap("G57")
def test_the_level_is_the_first_one_that_is_longer_and_the_last_one_for_what_is_longer_than_all(
    delay_ms: int, level: int
) -> None:
    message = a_message(message_type=DELAY, delivery_timestamp_ms=BORN_MS + delay_ms)
    config = ProxyConfig(use_delay_level=True)
    assert message_properties(message, config, "g", "127.0.0.1:1", BORN_MS)[DELAY_TIME_LEVEL] == str(level)
    without = message_properties(message, ProxyConfig(), "g", "127.0.0.1:1", BORN_MS)
    assert DELAY_TIME_LEVEL not in without


def test_levels_count_by_their_delays_and_not_by_their_order() -> None:
    config = ProxyConfig(use_delay_level=True, message_delay_level="1h 1s 1m")
    message = a_message(message_type=DELAY, delivery_timestamp_ms=BORN_MS + 1_500)
    assert message_properties(message, config, "g", "127.0.0.1:1", BORN_MS)[DELAY_TIME_LEVEL] == "3"


@each_case("levels", ["", "1s  5s", "1x", "s"])
def test_levels_that_cannot_be_read_are_refused(levels: str) -> None:
    with pytest.raises(FieldError):
        ProxyConfig(message_delay_level=levels)


@pytest.mark.parametrize(("config", "after_ms"), [(ProxyConfig(use_delay_level=True), 10_000), (ProxyConfig(), 6_000)])
def test_a_broker_delivers_by_the_level(config: ProxyConfig, after_ms: int) -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        await guest.receive()
        due_ms = BORN_MS + int(stage.now_ms) + 6_000
        sent_ms = stage.now_ms
        await guest.send(a_message(message_type=DELAY, delivery_timestamp_ms=due_ms))
        while not (await guest.receive()).messages:
            pass
        assert after_ms <= stage.now_ms - sent_ms < after_ms + 1_500

    topics = (TopicSpec(TOPIC, (BROKER,), 1, TopicMessageType.DELAY),)
    runs(proxies(topics=topics, config=config), script)
