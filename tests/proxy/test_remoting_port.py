"""The remoting port of a proxy: what it answers RocketMQ 4's clients, and what it leaves to brokers."""

import attrs
import pytest

from emulator.spec.model.scenario import Scenario, TopicSpec
from emulator.testing import Stage, broker_groups
from nodes.config import BrokerConfig
from nodes.config.proxy import ProxyConfig
from nodes.protocol import headers, headers_message, headers_pop
from nodes.protocol.batch_body import BatchedMessage, encode_messages
from nodes.protocol.bodies import LockBatchRequestBody, LockBatchResponseBody, PullMessageResponseBody
from nodes.protocol.bodies_admin import ConsumerConnection
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.exchange import NodeRole
from nodes.protocol.model import MessageQueue, TopicRouteData
from nodes.protocol.registry import codes_where, decode_body, decode_header
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.rpc.errors import RemotingSendRequestError, RemotingTimeoutError
from support.proxy_guest import BROKER, GROUP, PROXY, TOPIC, ProxyGuest, a_message, proxies
from support.remoting_guest import (
    CLIENT,
    PRODUCERS,
    Half,
    RemotingGuest,
    a_remoting_guest,
    pulled,
    runs_remoting,
)

OTHER = "proxy-2"
COMMIT = 8
NULL_LIST = (
    'Cannot invoke "org.apache.rocketmq.broker.client.ConsumerGroupInfo.getAllClientId()" '
    'because "consumerGroupInfo" is null'
)
LIST = RequestCode.GET_CONSUMER_LIST_BY_GROUP


def reason(answer: Command) -> tuple[int, str | None]:
    return answer.code, answer.remark


def offset(answer: Command) -> int:
    assert answer.code == ResponseCode.SUCCESS, answer
    return decode_header(headers.OffsetResponseHeader, answer.ext_fields).offset


async def route(guest: RemotingGuest, topic: str = TOPIC) -> TopicRouteData:
    header = headers.GetRouteInfoRequestHeader(topic)
    answer = await guest.ask(PROXY, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
    assert answer.code == ResponseCode.SUCCESS, answer
    return decode_body(TopicRouteData, answer.body)


# --- routes ----------------------------------------------------------------------------


@pytest.mark.trap("G51")
def test_the_proxy_is_each_broker_of_a_route_slaves_too() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        address = f"{stage.cluster.addresses[PROXY]}:8080"
        (data,) = (await route(guest)).broker_datas
        assert (data.broker_name, dict(data.broker_addrs)) == (BROKER, {0: address, 1: address})

    runs_remoting(proxies(brokers=broker_groups(slaves=1)), script)


def test_the_address_in_routes_is_an_option() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        (data,) = (await route(guest)).broker_datas
        assert dict(data.broker_addrs) == {0: "10.0.0.1:9080"}

    config = ProxyConfig(remoting_access_addr="10.0.0.1", remoting_listen_port=9_080)
    runs_remoting(proxies(config=config), script)


def test_the_route_of_an_unknown_topic_is_that_of_a_nameserver_and_is_cached() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        header = headers.GetRouteInfoRequestHeader("nothing")
        for _ in range(2):
            answer = await guest.ask(PROXY, RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
            assert answer.code == ResponseCode.TOPIC_NOT_EXIST
            assert (answer.remark or "").startswith("CODE: 17  DESC: No topic route info in name server")
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        asked = [row for row in stage.trace.select("rpc", src=PROXY, dst="ns-1") if row.code == code]
        assert len([row for row in asked if "nothing" in str(row)]) <= 1

    runs_remoting(proxies(), script)


# --- members ---------------------------------------------------------------------------


@pytest.mark.trap("G12")
def test_the_list_of_an_unknown_group_is_a_null_pointer() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        header = headers.ConsumerGroupRequestHeader("unknown")
        assert reason(await guest.ask(PROXY, LIST, header)) == (ResponseCode.SYSTEM_ERROR, NULL_LIST)

    runs_remoting(proxies(), script)


def test_a_heartbeat_registers_with_all_proxies_and_no_broker() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await stage.for_ms(5_000)  # until proxies read what others report
        assert reason(await guest.beat()) == (ResponseCode.SUCCESS, "")
        await stage.for_ms(1_000)
        assert (await guest.members(), await guest.members(OTHER)) == ((CLIENT,), (CLIENT,))
        header = headers.ConsumerGroupRequestHeader(GROUP)
        assert (await guest.ask(BROKER, LIST, header)).code == ResponseCode.SYSTEM_ERROR
        assert reason(await guest.leave()) == (ResponseCode.SUCCESS, "")
        await stage.for_ms(1_000)
        assert (await guest.members(), await guest.members(OTHER)) == (None, None)
        assert reason(await guest.leave()) == (ResponseCode.SUCCESS, "")

    runs_remoting(proxies(PROXY, OTHER), script)


@pytest.mark.trap("G50")
def test_the_end_of_a_connection_is_seen_at_once_and_at_other_proxies_after_two_minutes() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        watcher = await a_remoting_guest(stage, 1)
        await stage.for_ms(5_000)
        await guest.beat()
        await stage.for_ms(1_000)
        guest.node.rpc.close_all()
        await stage.for_ms(100)
        assert (await watcher.members(), await watcher.members(OTHER)) == (None, (CLIENT,))
        assert not stage.node(PROXY)._clients.producers.group_online(PRODUCERS)
        await stage.for_ms(131_000)
        assert await watcher.members(OTHER) is None

    runs_remoting(proxies(PROXY, OTHER), script)


def test_a_silent_client_loses_its_connection_with_all_its_groups() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        watcher = await a_remoting_guest(stage, 1)
        await guest.beat()
        connection = guest.node.rpc.channel(guest.address(PROXY))
        assert connection is not None
        for _ in range(13):  # requests keep a connection alive, heartbeats a member
            await stage.for_ms(10_000)
            await route(guest)
        assert await watcher.members() is None
        assert connection.closed

    runs_remoting(proxies(), script)


@pytest.mark.trap("G49")
def test_members_are_not_notified_of_others() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        other = await a_remoting_guest(stage, 1)
        await guest.beat()
        await other.beat(client_id="client@2")
        await other.leave(client_id="client@2")
        await stage.for_ms(1_000)
        assert guest.node.requested == []

    runs_remoting(proxies(), script)


def test_clients_of_both_kinds_are_members_of_one_group() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        five = ProxyGuest(guest.stage, guest.host, guest.node)
        await five.come(client_id="five", language="GO")
        await guest.beat()
        assert await guest.members() == (CLIENT, "five")
        header = headers.ConsumerGroupRequestHeader(GROUP)
        answer = await guest.ask(PROXY, RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        body = decode_body(ConsumerConnection, answer.body)
        assert [(c.client_id, c.language, c.version) for c in body.connection_set] == [
            ("five", "GO", 479),
            (CLIENT, "PYTHON", 479),
        ]
        assert list(body.subscription_table) == [TOPIC]
        unknown = headers.ConsumerGroupRequestHeader("unknown")
        refused = await guest.ask(PROXY, RequestCode.GET_CONSUMER_CONNECTION_LIST, unknown)
        assert reason(refused) == (ResponseCode.CONSUMER_NOT_ONLINE, "the consumer group[unknown] not online")

    runs_remoting(proxies(), script)


def test_a_group_for_which_there_is_no_room_leaves_nothing_behind() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        clients = stage.node(PROXY)._clients
        clients.producers._max_groups = clients.consumers._max_groups = 1
        assert (await guest.beat()).code == ResponseCode.SUCCESS
        for more in ({"producers": ("another",)}, {"group": "another", "producers": ()}):
            assert (await guest.beat(**more)).code == ResponseCode.SYSTEM_BUSY
        remoting = clients.remoting
        assert [list(groups.channels) for groups in (remoting._producers, remoting._consumers)] == [
            [PRODUCERS],
            [GROUP],
        ]

    runs_remoting(proxies(), script)


def test_each_subscription_is_fine() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        answer = await guest.ask(PROXY, RequestCode.CHECK_CLIENT_CONFIG)
        assert reason(answer) == (ResponseCode.SUCCESS, "")

    runs_remoting(proxies(), script)


# --- what brokers answer ---------------------------------------------------------------


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


# --- what 5.3.3 does not do --------------------------------------------------------------


@pytest.mark.trap("G47")
def test_pops_fail_since_they_are_read_as_pulls_and_their_acknowledgements_are_never_answered() -> None:
    null = (
        'Cannot invoke "java.lang.Integer.intValue()" because the return value of '
        '"org.apache.rocketmq.remoting.protocol.header.PullMessageRequestHeader.getSysFlag()" is null'
    )

    async def script(_: Stage, guest: RemotingGuest) -> None:
        await guest.beat()
        pop = headers_pop.PopMessageRequestHeader(GROUP, TOPIC, -1, 32, 60_000, 0, 0, 0, bname=BROKER)
        assert reason(await guest.ask(PROXY, RequestCode.POP_MESSAGE, pop)) == (ResponseCode.SYSTEM_ERROR, null)
        ack = headers_pop.AckMessageRequestHeader(GROUP, TOPIC, 0, "handle", 0, bname=BROKER)
        with pytest.raises(RemotingTimeoutError):
            await guest.ask(PROXY, RequestCode.ACK_MESSAGE, ack)
        change = headers_pop.ChangeInvisibleTimeRequestHeader(GROUP, TOPIC, 0, "handle", 0, 1_000, bname=BROKER)
        with pytest.raises(RemotingTimeoutError):
            await guest.ask(PROXY, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, change)

    runs_remoting(proxies(), script)


def test_requests_of_other_codes_are_unknown_and_those_of_other_versions_fail() -> None:
    null = (
        'Cannot invoke "java.util.HashMap.get(Object)" because the return value of '
        '"org.apache.rocketmq.remoting.protocol.RemotingCommand.getExtFields()" is null'
    )

    async def script(_: Stage, guest: RemotingGuest) -> None:
        answer = await guest.ask(PROXY, RequestCode.QUERY_ASSIGNMENT)
        assert reason(answer) == (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "request type 400 not supported")
        answer = await guest.ask(PROXY, RequestCode.CONSUMER_SEND_MSG_BACK)
        assert reason(answer) == (ResponseCode.SYSTEM_ERROR, null)

    runs_remoting(proxies(), script)


@pytest.mark.trap("G48")
def test_the_answer_to_a_request_that_fails_has_another_id_so_its_client_waits() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await guest.produce()
        await stage.kill(BROKER)
        began_ms = stage.now_ms
        with pytest.raises(RemotingTimeoutError):
            await guest.ask(PROXY, RequestCode.SEND_MESSAGE_V2, guest.sent(), b"x", timeout_ms=3_000)
        assert stage.now_ms - began_ms >= 3_000
        header = headers.GetMaxOffsetRequestHeader(TOPIC, 0, bname="nobody")
        with pytest.raises(RemotingTimeoutError):
            await guest.ask(PROXY, RequestCode.GET_MAX_OFFSET, header, timeout_ms=3_000)

    runs_remoting(proxies(), script)


def test_a_request_for_a_master_that_is_gone_goes_to_a_nameserver() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await guest.produce()
        await stage.kill(BROKER)
        await stage.for_ms(21_000)
        await route(guest, BROKER)
        await stage.for_ms(100)
        header = headers.GetMinOffsetRequestHeader(TOPIC, 0, bname=BROKER)
        answer = await guest.ask(PROXY, RequestCode.GET_MIN_OFFSET, header)
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    runs_remoting(proxies(brokers=broker_groups(slaves=1)), script)


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


# --- calls of RocketMQ 5 -------------------------------------------------------------------


class AtRemotingPort(ProxyGuest):
    """A client of RocketMQ 5 that has dialed the other port."""

    def address(self, node: str) -> str:
        return super().address(node).replace(":8081", ":8080")


def test_the_port_serves_clients_of_rocketmq_5_too() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        five = AtRemotingPort(guest.stage, guest.host, guest.node)
        await five.come()
        assert (await five.send(a_message())).status.message == "OK"
        assert len((await five.receive()).messages) == 1

    runs_remoting(proxies(), script)


def test_an_option_leaves_the_port_to_clients_of_rocketmq_4() -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        answer = await guest.ask(PROXY, RequestCode.V2_QUERY_ROUTE)
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    runs_remoting(proxies(config=ProxyConfig(enable_remoting_local_proxy_grpc=False)), script)


# --- the end -------------------------------------------------------------------------------


def test_a_proxy_that_ends_closes_the_connections_of_the_port_at_once() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        five = ProxyGuest(stage, guest.host, guest.node)
        await five.come()
        await guest.beat()
        stage.node(PROXY).request_shutdown()
        with pytest.raises(RemotingSendRequestError):
            await guest.ask(PROXY, RequestCode.ACK_MESSAGE)
        await stage.for_ms(20_000)
        assert stage.host(PROXY).power_state == "running"

    runs_remoting(proxies(), script)


REMOTING = sorted(
    code
    for code in codes_where(lambda exchange: NodeRole.PROXY in exchange.answered_by)
    if code < RequestCode.V2_QUERY_ROUTE
)


@pytest.mark.parametrize("code", REMOTING, ids=lambda code: RequestCode(code).name.lower())
def test_each_request_of_the_port_is_known_even_without_a_header(code: int) -> None:
    async def script(_: Stage, guest: RemotingGuest) -> None:
        try:
            answer = await guest.ask(PROXY, RequestCode(code))
        except RemotingTimeoutError:
            assert code in (RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME)
        else:
            assert answer.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    runs_remoting(proxies(), script)


def test_the_port_has_24_requests() -> None:
    assert len(REMOTING) == 24
