"""Transactions through proxies: who knows them, for how long, and who is asked about them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.spec.model.scenario import Scenario, TopicSpec
from emulator.testing import Stage, broker_groups
from nodes.config import BrokerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.protocol.registry import decode_body, decode_header
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import Resource, Status
from nodes.protocol.v2.enums import Code, TransactionResolution, TransactionSource
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.proxy.tables.transactions import TransactionData, TransactionDataManager
from support.proxy_guest import (
    BROKER,
    PROXY,
    TOPIC,
    TRANSACTION,
    ProxyGuest,
    a_message,
    producer_settings,
    proxies,
    runs,
)

OTHER = "proxy-2"
COMMIT = TransactionResolution.COMMIT
NOT_FOUND = "org.apache.rocketmq.proxy.common.ProxyException: cannot found transaction data"
HALF = a_message(message_type=TRANSACTION)


def with_transactions(*names: str) -> Scenario:
    """A cluster with a topic of transactions, whose broker checks every 2 s."""
    config = BrokerConfig(transaction_check_interval=2_000, transaction_time_out=1_000)
    topics = (TopicSpec(TOPIC, (BROKER,), 1, TopicMessageType.TRANSACTION),)
    return proxies(*names, brokers=broker_groups(config=config), topics=topics)


async def end(
    guest: ProxyGuest,
    transaction_id: str,
    proxy: str = PROXY,
    *,
    source: TransactionSource = TransactionSource.SOURCE_CLIENT,
) -> Status:
    """Commit a transaction."""
    request = service.EndTransactionRequest(Resource(TOPIC), "id-1", transaction_id, COMMIT, source)
    status: Status = (await guest.call(RequestCode.V2_END_TRANSACTION, request, proxy)).status
    return status


async def send(guest: ProxyGuest, proxy: str = PROXY) -> str:
    """Send a half message; returns the id of its transaction."""
    answer = await guest.send(HALF, proxy=proxy)
    assert answer.status.code is Code.OK
    return answer.entries[0].transaction_id


def checks(guest: ProxyGuest) -> list[service.RecoverOrphanedTransactionCommand]:
    """The checks that proxies have sent to a client."""
    commands = [
        decode_body(service.TelemetryCommand, request.body).recover_orphaned_transaction_command
        for request in guest.node.requested
        if request.code == RequestCode.V2_TELEMETRY
    ]
    return [command for command in commands if command is not None]


def delivered(stage: Stage) -> int:
    """Messages that commits have stored."""
    return len(stage.trace.select("messages", node=BROKER, event="stored", topic=TOPIC))


@pytest.mark.trap("G28")
def test_a_transaction_can_be_ended_once_at_the_proxy_that_sent_it() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        transaction_id = await send(guest)
        elsewhere = await end(guest, transaction_id, OTHER)
        assert (elsewhere.code, elsewhere.message) == (Code.INTERNAL_SERVER_ERROR, NOT_FOUND)
        assert (await end(guest, transaction_id)).code is Code.OK
        assert (await end(guest, transaction_id)).message == NOT_FOUND
        await stage.for_ms(100)
        assert delivered(stage) == 1

    runs(with_transactions(PROXY, OTHER), script)


@pytest.mark.trap("G28")
def test_a_transaction_is_unknown_30_s_after_it_was_sent() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        first, second = await send(guest), await send(guest)
        await stage.for_ms(29_000)
        assert (await end(guest, first)).code is Code.OK
        await stage.for_ms(1_500)
        assert (await end(guest, second)).message == NOT_FOUND

    runs(with_transactions(), script)


def test_an_end_without_an_id_or_with_an_illegal_topic_is_refused() -> None:
    async def script(_: Stage, guest: ProxyGuest) -> None:
        assert (await end(guest, " ")).code is Code.INVALID_TRANSACTION_ID
        request = service.EndTransactionRequest(Resource("a b"), "id-1", "t", COMMIT)
        assert (await guest.call(RequestCode.V2_END_TRANSACTION, request)).status.code is Code.ILLEGAL_TOPIC

    runs(with_transactions(), script)


@pytest.mark.trap("G31")
def test_the_end_of_a_transaction_is_ok_although_its_broker_is_dead() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        first, second = await send(guest), await send(guest)
        assert (await end(guest, first)).code is Code.OK
        await stage.for_ms(100)
        await stage.kill(BROKER)
        assert (await end(guest, second)).code is Code.OK
        stage.start(BROKER)
        await stage.for_ms(5_000)
        assert delivered(stage) == 1

    runs(with_transactions(), script)


@pytest.mark.trap("G30")
def test_the_first_heartbeat_for_transactions_comes_20_s_after_the_start() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.report(producer_settings())
        await send(guest)
        await stage.for_ms(18_000)
        assert checks(guest) == []
        await stage.for_ms(6_000)
        assert checks(guest)

    trace = runs(with_transactions(), script)
    beats = [row for row in trace.select("rpc", src=PROXY, kind="oneway") if row.code == RequestCode.HEART_BEAT]
    assert [row.sent_ns // 1_000_000_000 for row in beats] == [20]


@pytest.mark.trap("G29")
def test_a_check_reaches_a_producer_that_has_sent_nothing_through_a_proxy_that_sent_nothing() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        caller = await stage.probe(1)
        idle = ProxyGuest(stage, caller.host, caller.node)
        await idle.report(producer_settings(), OTHER, client_id="idle")
        await send(guest)
        await stage.for_ms(30_000)
        (first, *_) = checks(idle)
        assert checks(guest) == []
        checked = TransactionSource.SOURCE_SERVER_CHECK
        assert (await end(idle, first.transaction_id, OTHER, source=checked)).code is Code.OK
        await stage.for_ms(100)
        assert delivered(stage) == 1

    runs(with_transactions(PROXY, OTHER), script)


def test_a_check_names_its_client_since_clients_may_share_a_connection() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.report(producer_settings(), client_id="till")
        await guest.come(client_id="reader")
        await send(guest)
        await stage.for_ms(30_000)
        assert checks(guest)
        commands = [request for request in guest.node.requested if request.code == RequestCode.V2_TELEMETRY]
        assert {decode_header(CallMetadataHeader, frame.ext_fields).client_id for frame in commands} == {"till"}

    runs(with_transactions(), script)


@pytest.mark.trap("G26")
def test_of_two_processes_with_one_client_id_the_later_settings_get_the_checks() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        caller = await stage.probe(1)
        later = ProxyGuest(stage, caller.host, caller.node)
        await guest.report(producer_settings())
        await later.report(producer_settings())
        await send(guest)
        await stage.for_ms(30_000)
        assert checks(guest) == []
        assert checks(later)

    runs(with_transactions(), script)


def test_a_check_without_a_producer_is_dropped() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.report(producer_settings())
        await stage.for_ms(21_000)
        await guest.terminate(group=None)
        await send(guest)
        await stage.for_ms(10_000)
        assert checks(guest) == []

    runs(with_transactions(), script)


# --- the table -----------------------------------------------------------------------


def known(at_ms: int, *, offset: int = 0) -> TransactionData:
    return TransactionData(BROKER, TOPIC, offset, offset, "t", at_ms, 30_000)


def test_the_youngest_data_is_taken_first_and_old_data_with_it() -> None:
    table = TransactionDataManager(15)
    table.add("g", known(0))
    table.add("g", known(5_000, offset=1))
    assert table.poll("g", "t", 31_000) == known(5_000, offset=1)
    assert table.poll("g", "t", 31_000) is None


def test_too_many_entries_push_the_oldest_out() -> None:
    table = TransactionDataManager(2)
    for at_ms in (3, 1, 2):
        table.add("g", known(at_ms))
    assert [table.poll("g", "t", 0) for _ in range(3)] == [known(3), known(2), None]


@given(st.lists(st.integers(0, 100_000), max_size=20), st.integers(0, 200_000))
def test_a_scan_leaves_what_a_use_would_find(begins_ms: list[int], now_ms: int) -> None:
    scanned, unscanned = TransactionDataManager(100), TransactionDataManager(100)
    for at_ms in begins_ms:
        scanned.add("g", known(at_ms))
        unscanned.add("g", known(at_ms))
    scanned.clean_expired(now_ms)
    while (found := unscanned.poll("g", "t", now_ms)) is not None:
        assert scanned.poll("g", "t", now_ms) == found
    assert scanned.poll("g", "t", now_ms) is None
