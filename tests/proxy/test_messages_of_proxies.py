"""Messages through a proxy: sent, received, acknowledged, hidden, given up, recalled."""

from contextlib import suppress

import attrs
import pytest

from emulator.spec.model.scenario import Scenario, TopicSpec
from emulator.testing import Stage, broker_groups
from nodes.config import BrokerConfig
from nodes.config.proxy import ProxyConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import SubscriptionGroupConfig
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import Message, Resource
from nodes.protocol.v2.enums import Code, MessageType
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.rpc.errors import RemotingError
from support.proxy_guest import (
    BROKER,
    DELAY,
    FIFO,
    GROUP,
    INVISIBLE_MS,
    PROXY,
    TOPIC,
    ProxyGuest,
    a_message,
    proxies,
    runs,
)

OTHER, DLQ = "proxy-2", f"%DLQ%{GROUP}"


def one_queue(*names: str, **options: object) -> Scenario:
    """A cluster whose topic has one queue."""
    return proxies(*names, queues=1, **options)  # type: ignore[arg-type]


def of_type(kind: TopicMessageType) -> tuple[TopicSpec, ...]:
    return (TopicSpec(TOPIC, (BROKER,), 1, kind),)


async def arrive(stage: Stage, guest: ProxyGuest, count: int = 1) -> None:
    """Come as a consumer, whose first receive fixes the offset of its group, and send messages."""
    await guest.come()
    await guest.receive()
    for number in range(count):
        assert (await guest.send(a_message(str(number).encode(), message_id=f"id-{number}"))).status.code is Code.OK
    await stage.for_ms(100)


async def receive_all(guest: ProxyGuest, **options: object) -> list[Message]:
    """What one receive finds."""
    return list((await guest.receive(**options)).messages)  # type: ignore[arg-type]


def bodies(messages: list[Message]) -> list[str]:
    return [message.body.decode() for message in messages]


# --- a message as a client gets it ---------------------------------------------------


def test_a_message_comes_with_what_its_producer_gave_it() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest, 0)
        sent = a_message(b"abc", user={"color": "red"}, tag="t", keys=("k1", "k2"), born_host="10.0.0.1")
        entry = (await guest.send(sent)).entries[0]
        assert (entry.message_id, entry.offset) == ("id-1", 0)
        (got,) = await receive_all(guest)
        system = got.system_properties
        assert (got.topic, got.body, dict(got.user_properties)) == (Resource(TOPIC), b"abc", {"color": "red"})
        assert (system.tag, system.keys, system.message_id, system.born_host) == ("t", ("k1", "k2"), "id-1", "10.0.0.1")
        assert system.body_digest is not None
        assert system.body_digest.checksum == "900150983CD24FB0D6963F7D28E17F72"
        assert (system.message_type, system.delivery_attempt) == (MessageType.NORMAL, 1)
        assert system.receipt_handle is not None
        assert len(system.receipt_handle.split(" ")) == 9

    runs(one_queue(), script)


@pytest.mark.trap("G33")
def test_messages_sent_together_have_one_result_with_their_ids_joined_by_commas() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest, 0)
        answer = await guest.send(a_message(b"a", message_id="a"), a_message(b"b", message_id="b"))
        assert [entry.message_id for entry in answer.entries] == ["a,b"]
        assert bodies(await receive_all(guest)) == ["a", "b"]

    runs(one_queue(), script)


@pytest.mark.trap("G34")
def test_a_message_that_is_declared_fifo_without_a_group_passes_on_a_normal_topic() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        assert (await guest.send(a_message(message_type=FIFO))).status.code is Code.OK
        refused = (await guest.send(a_message(message_group="g"))).status
        assert refused.code is Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE

    runs(one_queue(), script)


def test_messages_of_one_group_go_to_one_queue() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        for number in range(5):
            await guest.send(a_message(message_id=f"id-{number}", message_group="g1"))

    topics = (TopicSpec(TOPIC, (BROKER,), 8, TopicMessageType.FIFO),)
    trace = runs(proxies(topics=topics), script)
    assert [row.queue_id for row in trace.select("messages", event="stored", topic=TOPIC)] == [6] * 5


# --- receiving -----------------------------------------------------------------------


@pytest.mark.trap("G37")
def test_a_poll_of_100_ms_answers_after_5_s() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        begin_ms = stage.now_ms
        status = (await guest.receive(poll_ms=100)).status
        assert (status.code, status.message) == (Code.MESSAGE_NOT_FOUND, "no new message")
        assert 4_900 <= stage.now_ms - begin_ms <= 5_200

    runs(one_queue(), script)


@pytest.mark.trap("G38")
@pytest.mark.parametrize(
    ("version", "remaining_ms", "code"),
    [("5.0.8", 4_000, Code.ILLEGAL_POLLING_TIME), ("5.0.2", 4_000, Code.BAD_REQUEST), ("5.0.8", 5_500, None)],
)
def test_a_deadline_below_5_s_is_refused_with_a_code_that_depends_on_the_version(
    version: str, remaining_ms: int, code: Code | None
) -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        status = (await guest.receive(poll_ms=20_000, remaining_ms=remaining_ms, version=version)).status
        assert status.code is (code or Code.MESSAGE_NOT_FOUND)

    runs(one_queue(), script)


def test_a_receive_without_a_deadline_is_a_null_pointer() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        status = (await guest.receive(remaining_ms=None)).status
        assert (status.code, "NullPointerException" in status.message) == (Code.INTERNAL_SERVER_ERROR, True)

    runs(one_queue(), script)


@pytest.mark.trap("G36")
def test_an_invisible_time_below_10_s_is_refused_for_a_receive_and_taken_for_a_change() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        for invisible_ms in (None, 9_900):
            assert (await guest.receive(invisible_ms=invisible_ms)).status.code is Code.ILLEGAL_INVISIBLE_TIME
        (message,) = await receive_all(guest)
        assert (await guest.change(message, 0)).status.code is Code.OK
        assert (await guest.change(message, -1)).status.code is Code.ILLEGAL_INVISIBLE_TIME

    runs(one_queue(), script)


@pytest.mark.trap("G9")
def test_the_queue_id_of_a_receive_is_ignored() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest, 4)
        assert sorted(bodies(await receive_all(guest, queue_id=3))) == ["0", "1", "2", "3"]

    runs(proxies(queues=4), script)


@pytest.mark.trap("G22")
def test_what_the_filter_of_a_request_does_not_match_is_gone_for_the_group() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest, 2)
        assert (await guest.receive(expression="none")).status.code is Code.MESSAGE_NOT_FOUND
        await stage.for_ms(1_000)
        assert (await guest.receive()).status.code is Code.MESSAGE_NOT_FOUND

    runs(one_queue(), script)


@pytest.mark.trap("G44")
def test_messages_of_a_receive_that_its_client_gives_up_come_again_when_their_time_is_over() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)

        async def give_up() -> None:
            with suppress(RemotingError):
                await guest.receive()

        stage.world.nursery.start_soon(give_up)
        await stage.for_ms(2)
        guest.node.rpc.close_all()
        await stage.for_ms(INVISIBLE_MS - 7_000)
        assert await receive_all(guest) == []
        await stage.for_ms(7_000)
        (again,) = await receive_all(guest)
        assert again.system_properties.delivery_attempt == 2

    runs(one_queue(), script)


# --- acknowledgements ----------------------------------------------------------------


def test_an_acknowledged_message_does_not_come_again() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        (message,) = await receive_all(guest)
        assert (await guest.ack(message)).code is Code.OK
        await stage.for_ms(INVISIBLE_MS + 10_000)
        assert await receive_all(guest) == []

    runs(one_queue(), script)


def test_a_message_without_acknowledgement_comes_again_as_the_second_attempt() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        assert len(await receive_all(guest)) == 1
        await stage.for_ms(INVISIBLE_MS + 5_000)
        (again,) = await receive_all(guest)
        assert (again.topic, again.system_properties.delivery_attempt) == (Resource(TOPIC), 2)
        assert (await guest.ack(again)).code is Code.OK

    runs(one_queue(), script)


def test_acknowledgements_that_cannot_be_are_answered_as_the_real_proxy_does() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        (message,) = await receive_all(guest)
        foreign = await guest.ack(message, group="foreign")
        assert foreign.code is Code.OK
        garbage = attrs.evolve(
            message, system_properties=attrs.evolve(message.system_properties, receipt_handle="a b c")
        )
        status = await guest.ack(garbage)
        assert (status.code, status.message) == (
            Code.INTERNAL_SERVER_ERROR,
            "Parse failed, dataList size 3. IllegalArgumentException",
        )
        request = service.AckMessageRequest(Resource(GROUP), Resource(TOPIC), ())
        empty = (await guest.call(RequestCode.V2_ACK_MESSAGE, request)).status
        assert (empty.code, empty.message) == (Code.INTERNAL_SERVER_ERROR, "ack message result is empty")

    runs(one_queue(), script)


def test_the_handle_of_a_broker_that_no_nameserver_knows_is_invalid() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        (message,) = await receive_all(guest)
        text = (message.system_properties.receipt_handle or "").replace(BROKER, "gone")
        moved = attrs.evolve(message, system_properties=attrs.evolve(message.system_properties, receipt_handle=text))
        status = await guest.ack(moved)
        assert status.code is Code.INVALID_RECEIPT_HANDLE
        assert status.message.endswith("ProxyException: cannot find broker gone")

    runs(one_queue(), script)


@pytest.mark.trap("G2")
def test_a_handle_expires_by_the_clock_of_the_proxy_and_no_broker_is_asked() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        (message,) = await receive_all(guest)
        await stage.begin(f"jump {PROXY} {INVISIBLE_MS}")
        status = await guest.ack(message)
        assert status.code is Code.INVALID_RECEIPT_HANDLE
        assert status.message.endswith("receipt handle is expired")

    trace = runs(one_queue(), script)
    assert not [row for row in trace.select("rpc", dst=BROKER) if row.code == RequestCode.ACK_MESSAGE]


@pytest.mark.trap("G40")
def test_the_handle_from_before_a_change_works_as_well_and_the_message_is_delivered_twice() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        (message,) = await receive_all(guest)
        assert [(await guest.change(message, 10_000)).status.code for _ in range(2)] == [Code.OK, Code.OK]
        await stage.for_ms(15_000)
        assert len([*await receive_all(guest), *await receive_all(guest)]) == 2

    runs(one_queue(), script)


def test_the_new_handle_of_a_change_acknowledges_the_message() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        (message,) = await receive_all(guest)
        text = (await guest.change(message, 20_000)).receipt_handle
        changed = attrs.evolve(message, system_properties=attrs.evolve(message.system_properties, receipt_handle=text))
        assert (await guest.ack(changed)).code is Code.OK
        await stage.for_ms(40_000)
        assert await receive_all(guest) == []

    runs(one_queue(), script)


# --- handles that proxies hold ---------------------------------------------------------


@pytest.mark.trap("G1")
def test_no_handle_is_renewed_so_an_acknowledgement_after_70_s_is_refused_and_the_message_comes_again() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        (message,) = await receive_all(guest, auto_renew=True, invisible_ms=None)
        for _ in range(7):
            await stage.for_ms(10_000)
            await guest.heartbeat()
        assert (await guest.ack(message)).code is Code.INVALID_RECEIPT_HANDLE
        (again,) = await receive_all(guest)
        assert again.system_properties.delivery_attempt == 2

    runs(one_queue(), script)


RENEWING = ProxyConfig(renews_receipt_handles=True)


@pytest.mark.trap("G3")
def test_with_5_4_0_a_handle_is_renewed_and_only_its_proxy_takes_the_handle_of_the_client() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest, 2)
        first, second = await receive_all(guest, auto_renew=True, invisible_ms=None)
        await guest.come(OTHER)
        for _ in range(7):
            await stage.for_ms(10_000)
            await guest.heartbeat()
        assert (await guest.ack(first, OTHER)).code is Code.INVALID_RECEIPT_HANDLE
        assert (await guest.ack(second)).code is Code.OK

    trace = runs(one_queue(PROXY, OTHER, config=RENEWING), script)
    assert len(trace.select("messages", event="invisible_changed")) >= 2


def test_with_5_4_0_a_handle_is_renewed_first_50_to_55_s_after_the_pop_for_a_minute() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        await receive_all(guest, auto_renew=True, invisible_ms=None)
        script.begin_ms = stage.now_ms  # type: ignore[attr-defined]
        for _ in range(7):
            await stage.for_ms(10_000)
            await guest.heartbeat()

    trace = runs(one_queue(config=RENEWING), script)
    (renewal,) = trace.select("messages", event="invisible_changed")
    assert 49_500 <= renewal.t_ns / 1e6 - script.begin_ms <= 55_500  # type: ignore[attr-defined]


def test_the_messages_of_a_client_that_ends_come_back_within_seconds() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        assert len(await receive_all(guest, auto_renew=True, invisible_ms=None)) == 1
        assert (await guest.terminate()).code is Code.OK
        await guest.come(client_id="client-2")
        await stage.for_ms(6_000)
        assert len(await receive_all(guest, client_id="client-2")) == 1

    runs(one_queue(), script)


# --- dead letters --------------------------------------------------------------------


@pytest.mark.trap("G21")
def test_a_message_becomes_a_dead_letter_when_it_is_received_once_too_often() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        once = SubscriptionGroupConfig(GROUP, retry_max_times=0)
        stage.node(BROKER).context.groups.update_subscription_group_config(once, now_ms=0)
        await arrive(stage, guest)
        assert len(await receive_all(guest)) == 1
        await stage.for_ms(INVISIBLE_MS + 5_000)
        status = (await guest.receive()).status
        assert (status.code, status.message) == (Code.MESSAGE_NOT_FOUND, "no match message")
        await stage.for_ms(1_000)

    trace = runs(one_queue(), script)
    assert len(trace.select("messages", event="stored", topic=DLQ)) == 1


def test_a_message_that_its_client_gives_up_twice_has_two_dead_letters() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive(stage, guest)
        (message,) = await receive_all(guest)
        assert [(await guest.forward(message)).code for _ in range(2)] == [Code.OK, Code.OK]
        await stage.for_ms(1_000)

    trace = runs(one_queue(), script)
    assert len(trace.select("messages", event="stored", topic=DLQ)) == 2


# --- order ---------------------------------------------------------------------------


def orderly(kind: TopicMessageType = TopicMessageType.FIFO) -> Scenario:
    return proxies(topics=of_type(kind))


async def arrive_in_order(stage: Stage, guest: ProxyGuest) -> None:
    group = SubscriptionGroupConfig(GROUP, consume_message_orderly=True)
    stage.node(BROKER).context.groups.update_subscription_group_config(group, now_ms=0)
    await guest.come()
    await guest.receive()
    for number in range(2):
        await guest.send(a_message(str(number).encode(), message_id=f"id-{number}", message_group="a"))


@pytest.mark.trap("G41")
def test_what_is_received_in_order_comes_to_no_one_else_before_all_of_it_is_acknowledged() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await arrive_in_order(stage, guest)
        batch = await receive_all(guest, attempt_id="a1")
        assert bodies(batch) == ["0", "1"]
        assert (batch[0].system_properties.receipt_handle or "").split(" ")[3] == "999"
        assert await receive_all(guest, attempt_id="b1") == []
        assert bodies(await receive_all(guest, attempt_id="a1")) == ["0", "1"]

    runs(orderly(), script)


@pytest.mark.trap("G42")
def test_a_plain_group_of_a_fifo_topic_is_not_ordered() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        settings = await guest.come()
        assert settings.subscription is not None
        assert settings.subscription.fifo is False
        await guest.receive()
        for number in range(2):
            await guest.send(a_message(str(number).encode(), message_id=f"id-{number}", message_group="a"))
        assert bodies(await receive_all(guest, maximum=1)) == ["0"]
        assert bodies(await receive_all(guest, maximum=1)) == ["1"]

    runs(orderly(), script)


# --- delays --------------------------------------------------------------------------


RECALLS = broker_groups(config=BrokerConfig(recall_message_enable=True))


def test_a_timed_message_is_recalled_by_its_handle() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.come()
        await guest.receive()
        due_ms = stage.host(PROXY).clock.now_ms() + 30_000
        entry = (await guest.send(a_message(message_type=DELAY, delivery_timestamp_ms=due_ms))).entries[0]
        assert entry.recall_handle
        request = service.RecallMessageRequest(Resource(TOPIC), entry.recall_handle)
        answer = await guest.call(RequestCode.V2_RECALL_MESSAGE, request)
        assert (answer.status.code, answer.message_id) == (Code.OK, "id-1")
        await stage.for_ms(40_000)
        assert await receive_all(guest) == []

    runs(proxies(brokers=RECALLS, topics=of_type(TopicMessageType.DELAY)), script)


def test_recalls_that_cannot_be_are_refused() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        request = service.RecallMessageRequest(Resource(TOPIC), "none")
        answer = await guest.call(RequestCode.V2_RECALL_MESSAGE, request)
        assert answer.status.code is Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE

    runs(one_queue(), script)


# --- suspended brokers ---------------------------------------------------------------


@pytest.mark.trap("G39")
def test_a_suspended_broker_is_noticed_after_3_to_4_1_s() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.send(a_message())
        await stage.host(BROKER).suspend()
        begin_ms = stage.now_ms
        status = (await guest.send(a_message(message_id="id-2"))).status
        assert status.code is Code.PROXY_TIMEOUT
        assert "timeout, 2000(ms)" in status.message
        assert 3_000 <= stage.now_ms - begin_ms <= 4_100

    runs(one_queue(), script)
