"""Messages, offsets and transactions at the remoting port of a proxy, which brokers handle."""

import attrs
import pytest

from emulator.spec.model.scenario import Scenario, TopicSpec
from emulator.testing import Stage, broker_groups
from nodes.config import BrokerConfig
from nodes.protocol import headers, headers_message
from nodes.protocol.batch_body import BatchedMessage, encode_messages
from nodes.protocol.bodies import LockBatchRequestBody, LockBatchResponseBody, PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_body, decode_header
from nodes.proxy.tables.topic_types import TopicMessageType
from support.proxy_guest import BROKER, GROUP, PROXY, TOPIC, proxies
from support.remoting_guest import (
    CLIENT,
    PRODUCERS,
    Half,
    RemotingGuest,
    pulled,
    reason,
    runs_remoting,
)

COMMIT = 8


def offset(answer: Command) -> int:
    assert answer.code == ResponseCode.SUCCESS, answer
    return decode_header(headers.OffsetResponseHeader, answer.ext_fields).offset


@pytest.mark.trap("G54")
def test_messages_are_stored_by_the_broker_that_they_name() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        answer = await guest.produce()
        assert answer.code == ResponseCode.SUCCESS
        assert decode_header(headers.SendMessageResponseHeader, answer.ext_fields).queue_offset == 0
        assert (answer.ext_fields["MSG_REGION"], answer.ext_fields["TRACE_ON"]) == ("", "false")
        second = guest.sent()
        first = headers.SendMessageRequestHeader(
            *(getattr(second, field.name) for field in attrs.fields(headers.SendMessageRequestHeader))
        )
        answer = await guest.ask(PROXY, RequestCode.SEND_MESSAGE, first, b"x")
        assert decode_header(headers.SendMessageResponseHeader, answer.ext_fields).queue_offset == 1
        batch = encode_messages([BatchedMessage(b"a", ""), BatchedMessage(b"b", "")])
        answer = await guest.ask(PROXY, RequestCode.SEND_BATCH_MESSAGE, attrs.evolve(second, batch=True), batch)
        assert decode_header(headers.SendMessageResponseHeader, answer.ext_fields).queue_offset == 2

    runs_remoting(proxies(), script)


@pytest.mark.trap("G53")
@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE])
def test_a_message_of_a_client_that_names_no_broker_is_refused(code: RequestCode) -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        answer = await guest.ask(PROXY, code, attrs.evolve(guest.sent(), bname=None), b"x")
        assert reason(answer) == (ResponseCode.VERSION_NOT_SUPPORTED, "Request doesn't have field bname")

    runs_remoting(proxies(), script)


@pytest.mark.trap("G52")
def test_a_message_of_another_type_than_its_topic_is_refused_before_its_broker_is_looked_for() -> None:
    text = "TopicMessageType validate failed, the expected type is {}, but actual type is {}"

    async def script(_: Stage, guest: RemotingGuest) -> None:
        delayed = attrs.evolve(guest.sent(properties={"DELAY": "1"}), bname=None)
        answer = await guest.ask(PROXY, RequestCode.SEND_MESSAGE_V2, delayed, b"x")
        assert reason(answer) == (ResponseCode.MESSAGE_ILLEGAL, text.format("NORMAL", "DELAY"))
        answer = await guest.produce(topic="new")
        assert reason(answer) == (ResponseCode.MESSAGE_ILLEGAL, text.format("UNSPECIFIED", "NORMAL"))
        recall = headers_message.RecallMessageRequestHeader(TOPIC, "handle", bname=BROKER)
        answer = await guest.ask(PROXY, RequestCode.RECALL_MESSAGE, recall)
        assert reason(answer) == (ResponseCode.MESSAGE_ILLEGAL, text.format("NORMAL", "DELAY"))

    runs_remoting(proxies(), script)


def test_a_timed_message_is_taken_back() -> None:
    topics = (TopicSpec(TOPIC, (BROKER,), 1, TopicMessageType.DELAY),)

    async def script(_: Stage, guest: RemotingGuest) -> None:
        due_ms = guest.host.clock.now_ms() + 60_000
        answer = await guest.produce(TIMER_DELIVER_MS=str(due_ms), UNIQ_KEY="U1")
        handle = decode_header(headers.SendMessageResponseHeader, answer.ext_fields).recall_handle
        assert handle is not None
        header = headers_message.RecallMessageRequestHeader(TOPIC, handle, PRODUCERS, BROKER)
        answer = await guest.ask(PROXY, RequestCode.RECALL_MESSAGE, header)
        assert answer.code == ResponseCode.SUCCESS, answer
        assert decode_header(headers_message.RecallMessageResponseHeader, answer.ext_fields).msg_id == "U1"

    brokers = broker_groups(config=BrokerConfig(recall_message_enable=True))
    runs_remoting(proxies(brokers=brokers, topics=topics), script)


def test_pulls_get_the_subscription_of_their_group_at_the_proxy() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        await guest.produce()
        for code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
            latest = ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
            assert reason(await guest.pull(code=code)) == latest
        await guest.beat(topics=("another",))
        missing = ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist"
        assert reason(await guest.pull()) == missing
        await guest.beat()
        for code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
            answer = await guest.pull(code=code)
            assert answer.code == ResponseCode.SUCCESS
            assert [m.body for m in decode_body(PullMessageResponseBody, answer.body).messages] == [b"x"]

    runs_remoting(proxies(), script)


def test_a_pull_with_a_subscription_needs_no_heartbeat_and_may_be_held() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        header = attrs.evolve(pulled(), sys_flag=2 | 4, subscription="*", suspend_timeout_millis=15_000)
        began_ms = stage.now_ms
        answer = await guest.ask(PROXY, RequestCode.PULL_MESSAGE, header, timeout_ms=30_000)
        assert answer.code == ResponseCode.PULL_NOT_FOUND
        assert 15_000 <= stage.now_ms - began_ms < 21_000

    runs_remoting(proxies(), script)


def test_offsets_are_those_of_the_broker() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await guest.produce()
        await guest.beat()
        await guest.pull()  # a broker hears of the group for the first time
        update = headers.UpdateConsumerOffsetRequestHeader(GROUP, TOPIC, 0, 1, BROKER)
        guest.send(PROXY, RequestCode.UPDATE_CONSUMER_OFFSET, update)
        await stage.for_ms(100)
        query = headers.QueryConsumerOffsetRequestHeader(GROUP, TOPIC, 0, bname=BROKER)
        assert offset(await guest.ask(PROXY, RequestCode.QUERY_CONSUMER_OFFSET, query)) == 1
        waited = attrs.evolve(update, commit_offset=0)
        assert (await guest.ask(PROXY, RequestCode.UPDATE_CONSUMER_OFFSET, waited)).code == ResponseCode.SUCCESS
        assert offset(await guest.ask(PROXY, RequestCode.QUERY_CONSUMER_OFFSET, query)) == 0
        maximum = headers.GetMaxOffsetRequestHeader(TOPIC, 0, bname=BROKER)
        assert offset(await guest.ask(PROXY, RequestCode.GET_MAX_OFFSET, maximum)) == 1
        minimum = headers.GetMinOffsetRequestHeader(TOPIC, 0, bname=BROKER)
        assert offset(await guest.ask(PROXY, RequestCode.GET_MIN_OFFSET, minimum)) == 0
        search = headers.SearchOffsetRequestHeader(TOPIC, 0, 0, bname=BROKER)
        assert offset(await guest.ask(PROXY, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, search)) == 0

    trace = runs_remoting(proxies(), script)
    (change,) = trace.select("admin", request="UPDATE_CONSUMER_OFFSET")
    assert change.node == BROKER


def test_locks_of_queues_are_those_of_their_broker() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        queue = MessageQueue(TOPIC, BROKER, 0)
        body = LockBatchRequestBody(GROUP, CLIENT, (queue,))
        answer = await guest.ask(PROXY, RequestCode.LOCK_BATCH_MQ, None, body)
        assert decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set == (queue,)
        others = attrs.evolve(body, client_id="client@2")
        answer = await guest.ask(PROXY, RequestCode.LOCK_BATCH_MQ, None, others)
        assert decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set == ()
        assert (await guest.ask(PROXY, RequestCode.UNLOCK_BATCH_MQ, None, body)).code == ResponseCode.SUCCESS
        answer = await guest.ask(PROXY, RequestCode.LOCK_BATCH_MQ, None, others)
        assert decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set == (queue,)
        guest.send(PROXY, RequestCode.UNLOCK_BATCH_MQ, None, others)
        await stage.for_ms(100)
        answer = await guest.ask(PROXY, RequestCode.LOCK_BATCH_MQ, None, body)
        assert decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set == (queue,)
        for code in (RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ):
            empty = await guest.ask(PROXY, code, None, attrs.evolve(body, mq_set=()))
            assert reason(empty) == (ResponseCode.SYSTEM_ERROR, "MessageQueue set is empty")

    runs_remoting(proxies(), script)


def test_a_message_is_sent_back_to_its_broker() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        stored = decode_header(headers.SendMessageResponseHeader, (await guest.produce()).ext_fields)
        header = headers.ConsumerSendMsgBackRequestHeader(int(stored.msg_id[16:], 16), GROUP, 1, bname=BROKER)
        assert (await guest.ask(PROXY, RequestCode.CONSUMER_SEND_MSG_BACK, header)).code == ResponseCode.SUCCESS
        assert len(stage.trace.select("messages", node=BROKER, event="stored")) >= 2

    runs_remoting(proxies(), script)


# --- transactions ------------------------------------------------------------------------


def with_transactions() -> Scenario:
    return proxies(topics=(TopicSpec(TOPIC, (BROKER,), 1, TopicMessageType.TRANSACTION),))


def delivered(stage: Stage) -> int:
    """Messages that commits have stored."""
    return len(stage.trace.select("messages", node=BROKER, event="stored", topic=TOPIC))


def checks(guest: RemotingGuest) -> list[Half]:
    """The checks that proxies have sent to a client."""
    found = []
    for request in guest.node.requested:
        assert request.code == RequestCode.CHECK_TRANSACTION_STATE
        header = decode_header(headers_message.CheckTransactionStateRequestHeader, request.ext_fields)
        assert (header.topic, header.bname) == (TOPIC, None)
        found.append(Half(header.transaction_id or "", header.tran_state_table_offset, header.commit_log_offset))
    return found


@pytest.mark.trap("G46")
def test_a_commit_is_effective_only_after_the_first_check() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await guest.beat(topics=())
        half = await guest.prepare()
        assert (await guest.end(half, COMMIT)).code == ResponseCode.SUCCESS
        await stage.for_ms(1_000)
        assert delivered(stage) == 0
        await stage.until(lambda: bool(checks(guest)), 90_000, step_ms=100)
        (checked,) = checks(guest)
        assert checked.key == half.key
        assert (await guest.end(checked, COMMIT, checked=True)).code == ResponseCode.SUCCESS
        await stage.for_ms(100)
        assert delivered(stage) == 1

    runs_remoting(with_transactions(), script)


def test_a_check_needs_a_producer_that_is_connected() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await guest.beat(topics=())
        await guest.prepare()
        guest.node.rpc.close_all()
        await stage.for_ms(90_000)
        assert checks(guest) == []

    runs_remoting(with_transactions(), script)
