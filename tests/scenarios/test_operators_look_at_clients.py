"""What operators are reported about clients and their progress, and how they move offsets."""

import json
from typing import Any

import pytest

from emulator.testing import Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import bodies_admin as bodies
from nodes.protocol import headers, headers_admin
from nodes.protocol import headers_message as requested
from nodes.protocol.bodies import KvTable, TopicList
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_body, decode_header
from nodes.protocol.sys_flags import PullSysFlag
from support.asking_guest import Guest, a_guest, messages_of
from support.grouped import BEFORE_MS, MASTER, S1, a_group, acting

BROKER = "broker-a"
QUEUE = MessageQueue("orders", BROKER, 0)
LOOK_MS = 60_500


def look(script: Any, **scenario: Any) -> Any:
    """Run a cluster with a consumer and a producer, and let a guest look at it after a minute."""

    async def execute_it(stage: Stage) -> None:
        await stage.at_ms(LOOK_MS)
        await script(stage, await a_guest(stage))

    return execute(a_scenario(**{"queues": 2, "consumers": 1, "rate_per_s": 2, **scenario}), execute_it)


def test_progress_of_topics_and_groups_is_reported_by_queue() -> None:
    async def script(stage: Stage, guest: Guest) -> None:
        store = stage.node(BROKER).context.store
        answer = await guest.ask(BROKER, RequestCode.GET_TOPIC_STATS_INFO, headers_admin.TopicHeader("orders"))
        topic = decode_body(bodies.TopicStatsTable, answer.body)
        assert [queue.queue_id for queue in topic.offset_table] == [0, 1]
        assert topic.offset_table[QUEUE].max_offset == store.max_offset("orders", 0) > 50
        assert topic.topic_put_tps == pytest.approx(2, rel=0.2)
        header = headers_admin.GetConsumeStatsRequestHeader("g", "orders")
        stats = decode_body(bodies.ConsumeStats, (await guest.ask(BROKER, RequestCode.GET_CONSUME_STATS, header)).body)
        at = stats.offset_table[QUEUE]
        # Commits are 5 s old at most; what was consumed since then counts as waiting.
        assert 0 <= at.broker_offset - at.consumer_offset <= 6
        assert at.last_timestamp == store.store_timestamp("orders", 0, at.consumer_offset - 1)
        assert stats.consume_tps == pytest.approx(2, rel=0.2)
        every = await guest.ask(
            BROKER, RequestCode.GET_BROKER_CONSUME_STATS, headers_admin.GetConsumeStatsInBrokerHeader(is_order=False)
        )
        whole = decode_body(bodies.ConsumeStatsList, every.body)
        by_group = {name: item for entry in whole.consume_stats_list for name, item in entry.items()}
        assert whole.total_diff == sum(item.total_diff for item in by_group["g"])
        assert by_group["TOOLS_CONSUMER"] == ()
        span = await guest.ask(
            BROKER, RequestCode.QUERY_CONSUME_TIME_SPAN, headers_admin.GroupAndTopicHeader("g", "orders")
        )
        first = decode_body(bodies.QueryConsumeTimeSpanBody, span.body).consume_time_span_set[0]
        assert first.min_time_stamp < first.consume_time_stamp <= first.max_time_stamp
        assert 0 <= first.delay_time <= 6_000

    look(script)


def test_who_consumes_what_is_reported_from_offsets_and_heartbeats() -> None:
    async def script(_stage: Stage, guest: Guest) -> None:
        groups = await guest.ask(BROKER, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, headers_admin.TopicHeader("orders"))
        assert "g" in decode_body(bodies.GroupList, groups.body).group_list
        topics = await guest.ask(BROKER, RequestCode.QUERY_TOPICS_BY_CONSUMER, headers_admin.GroupHeader("g"))
        assert "orders" in decode_body(TopicList, topics.body).topic_list
        header = headers_admin.GroupAndTopicHeader("g", "orders")
        found = await guest.ask(BROKER, RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, header)
        subscription = decode_body(bodies.QuerySubscriptionResponseBody, found.body).subscription_data
        assert subscription is not None
        assert subscription.topic == "orders"

    look(script)


def test_connections_are_listed_with_the_language_and_the_version_that_they_speak() -> None:
    async def script(stage: Stage, guest: Guest) -> None:
        header = headers.ConsumerGroupRequestHeader("g")
        answer = await guest.ask(BROKER, RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        found = decode_body(bodies.ConsumerConnection, answer.body)
        (item,) = found.connection_set
        assert item.client_addr.startswith(stage.host("c1").ip)
        assert (item.language, item.version) == ("PYTHON", 479)
        assert sorted(found.subscription_table) == ["%RETRY%g", "orders"]
        gone = headers.ConsumerGroupRequestHeader("nobody")
        refused = await guest.ask(BROKER, RequestCode.GET_CONSUMER_CONNECTION_LIST, gone)
        assert refused.code == ResponseCode.CONSUMER_NOT_ONLINE
        producers = headers_admin.ProducerGroupHeader("pg")
        answer = await guest.ask(BROKER, RequestCode.GET_PRODUCER_CONNECTION_LIST, producers)
        assert len(decode_body(bodies.ProducerConnection, answer.body).connection_set) == 1
        every = await guest.ask(BROKER, RequestCode.GET_ALL_PRODUCER_INFO)
        assert list(decode_body(bodies.ProducerTableInfo, every.body).data) == ["CLIENT_INNER_PRODUCER", "pg"]

    look(script)


def test_a_consumer_reports_its_offsets_and_its_state_through_the_broker() -> None:
    async def script(stage: Stage, guest: Guest) -> None:
        client_id = stage.node(BROKER).tables.clients.consumers.client_ids("g")[0]
        status = requested.GetConsumerStatusRequestHeader("orders", "g")
        answer = await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, status)
        table = decode_body(bodies.GetConsumerStatusBody, answer.body).consumer_table
        assert [queue.queue_id for queue in table[client_id]] == [0, 1]
        header = requested.GetConsumerRunningInfoRequestHeader("g", client_id)
        answer = await guest.ask(BROKER, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
        text = (answer.body or b"").decode()
        # Queues are keys, which is no standard JSON; everything else is.
        assert '"mqTable":{{"brokerName":"broker-a","queueId":0,"topic":"%RETRY%g"}:{' in text
        properties = json.loads(text[text.index('"properties":') + 13 : text.index(',"statusTable"')])
        assert properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
        stranger = requested.GetConsumerRunningInfoRequestHeader("g", "stranger")
        refused = await guest.ask(BROKER, RequestCode.GET_CONSUMER_RUNNING_INFO, stranger)
        assert (refused.code, refused.remark) == (1, "The Consumer <g> <stranger> not online")

    look(script)


def test_a_question_is_passed_on_with_the_message_it_is_about_and_the_answer_comes_back_as_it_is() -> None:
    async def script(stage: Stage, guest: Guest) -> None:
        consumer = await a_guest(stage, 2)
        await consumer.beat(BROKER, client_id="real@1", group="real", topic="orders")
        text = (0, "fine", {"x": "y"}, b'{"consumeResult":"CR_SUCCESS"}')
        consumer.node.answer_with = lambda request: request.answer(*text)
        message = stage.node(BROKER).context.store.get_message("orders", 0, 3).messages[0]
        message_id = offset_message_id(message.store_host, message.commit_log_offset)
        header = requested.ConsumeMessageDirectlyResultRequestHeader("real", "real@1", message_id, topic="orders")
        answer = await guest.ask(BROKER, RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
        assert (answer.code, answer.remark, answer.ext_fields, answer.body) == text
        (request,) = consumer.requested(RequestCode.CONSUME_MESSAGE_DIRECTLY)
        assert messages_of(request) == [message]
        assert request.ext_fields["brokerName"] == BROKER

    look(script)


def test_a_client_that_never_answers_costs_a_time_out_and_nothing_more() -> None:
    answers: list[tuple[float, Command]] = []

    async def script(stage: Stage, guest: Guest) -> None:
        silent = await a_guest(stage, 2)
        await silent.beat(BROKER, client_id="silent", group="real", topic="orders")
        began_ms = stage.now_ms
        header = requested.GetConsumerRunningInfoRequestHeader("real", "silent")
        answers.append((began_ms, await guest.ask(BROKER, RequestCode.GET_CONSUMER_RUNNING_INFO, header)))
        answers.append((stage.now_ms, await guest.send(BROKER)))

    look(script)
    (began_ms, timed_out), (ended_ms, sent) = answers
    assert timed_out.code == ResponseCode.CONSUME_MSG_TIMEOUT
    assert ended_ms - began_ms == pytest.approx(10_000, abs=10)
    assert sent.code == ResponseCode.SUCCESS


def test_a_client_that_dies_while_it_is_asked_ends_the_question_at_once() -> None:
    async def script(stage: Stage, guest: Guest) -> None:
        dying = await a_guest(stage, 2)
        await dying.beat(BROKER, client_id="dying", group="real", topic="orders")

        def die(request: Command) -> Command:
            dying.node.rpc.close_all()
            return request.answer()

        dying.node.answer_with = die
        began_ms = stage.now_ms
        header = requested.GetConsumerRunningInfoRequestHeader("real", "dying")
        answer = await guest.ask(BROKER, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert stage.now_ms - began_ms < 100

    look(script)


def pulls(queue_offset: int, commit_offset: int, *, commit: bool) -> headers.PullMessageRequestHeader:
    flag = PullSysFlag.COMMIT_OFFSET if commit else 0
    return headers.PullMessageRequestHeader("g", "orders", 0, queue_offset, 1, flag, commit_offset, 0, 0)


@pytest.mark.trap("C50")
def test_while_a_reset_waits_for_the_next_pull_a_commit_is_reported_success_and_not_stored() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.beat(BROKER, group="g", topic="orders")
        for _ in range(5):
            await guest.send(BROKER)
        offsets = stage.node(BROKER).tables.clients.offsets
        offsets.commit_offset("g", "orders", 0, 4, now_ms=0)
        reset = requested.ResetOffsetRequestHeader("g", "orders", 0, 1)
        answer = await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)
        assert decode_body(bodies.ResetOffsetBody, answer.body).offset_table == {QUEUE: 1}
        commit = headers.UpdateConsumerOffsetRequestHeader("g", "orders", 0, 5)
        assert (await guest.ask(BROKER, RequestCode.UPDATE_CONSUMER_OFFSET, commit)).code == ResponseCode.SUCCESS
        assert offsets.query_offset("g", "orders", 0) == 1
        # A commit that rides on a pull is stored all the same; that pull is reported where to go on.
        answer = await guest.ask(BROKER, RequestCode.PULL_MESSAGE, pulls(4, 4, commit=True))
        reported = decode_header(headers.PullMessageResponseHeader, answer.ext_fields)
        assert (answer.code, reported.next_begin_offset) == (ResponseCode.PULL_OFFSET_MOVED, 1)
        assert offsets.query_offset("g", "orders", 0) == 4
        answer = await guest.ask(BROKER, RequestCode.PULL_MESSAGE, pulls(1, 0, commit=False))
        assert [message.queue_offset for message in messages_of(answer)] == [1]

    execute(a_scenario(queues=1), script)


def test_a_group_that_is_reset_consumes_again_from_that_time_on() -> None:
    async def script(stage: Stage, guest: Guest) -> None:
        timestamp = stage.node(BROKER).context.store.store_timestamp("orders", 0, 10)
        reset = requested.ResetOffsetRequestHeader("g", "orders", timestamp=timestamp, is_force=True)
        answer = await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)
        assert answer.code == ResponseCode.SUCCESS
        await stage.for_ms(60_000)

    trace = look(script)
    twice = {offset for (_, queue_id, offset), node in trace.consumed().items() if queue_id == 0 and len(node) > 1}
    assert min(twice) == 10
    assert len(twice) > 10


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (requested.ResetOffsetRequestHeader("g", "orders", 0, 99_999), ResponseCode.SYSTEM_ERROR),
        (requested.ResetOffsetRequestHeader("g", "ghost"), ResponseCode.TOPIC_NOT_EXIST),
        (requested.ResetOffsetRequestHeader("ghost", "orders"), ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
    ],
)
def test_a_reset_that_cannot_be_changes_nothing(header: requested.ResetOffsetRequestHeader, code: ResponseCode) -> None:
    async def script(stage: Stage, guest: Guest) -> None:
        answer = await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        assert answer.code == code
        assert stage.node(BROKER).tables.clients.offsets.reset_offsets == {}

    look(script)


def test_without_resets_at_the_server_the_members_are_notified_and_who_is_away_is_not_reset() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.send(BROKER)
        offsets = stage.node(BROKER).tables.clients.offsets
        offsets.commit_offset("real", "orders", 0, 1, now_ms=0)
        reset = requested.ResetOffsetRequestHeader("real", "orders", timestamp=0, is_force=True)
        answer = await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)
        assert answer.code == ResponseCode.CONSUMER_NOT_ONLINE
        await guest.beat(BROKER, group="real", topic="orders")
        answer = await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)
        assert answer.code == ResponseCode.SUCCESS
        await stage.for_ms(100)
        (reported,) = guest.requested(RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
        assert decode_body(bodies.ResetOffsetBody, reported.body).offset_table == {QUEUE: 0}
        assert offsets.query_offset("real", "orders", 0) == 1

    execute(
        a_scenario(queues=1, brokers=broker_groups(config=BrokerConfig(use_server_side_reset_offset=False))), script
    )


def test_offsets_are_cloned_by_topic_and_queues_are_shown_entry_by_entry() -> None:
    async def script(stage: Stage, guest: Guest) -> None:
        offsets = stage.node(BROKER).tables.clients.offsets
        for topic in (None, "orders"):
            clone = headers_admin.CloneGroupOffsetRequestHeader("g", "copy", topic)
            assert (await guest.ask(BROKER, RequestCode.CLONE_GROUP_OFFSET, clone)).code == ResponseCode.SUCCESS
            copied = offsets.query_offset("copy", "orders", 0)
            # 5.3.3 copies the topic of the request, so without one nothing.
            assert copied == (-1 if topic is None else offsets.query_offset("g", "orders", 0))
        header = headers_admin.QueryConsumeQueueRequestHeader("orders", 0, 5, 3, "g")
        answer = await guest.ask(BROKER, RequestCode.QUERY_CONSUME_QUEUE, header)
        body = decode_body(bodies.QueryConsumeQueueResponseBody, answer.body)
        store = stage.node(BROKER).context.store
        shown = [entry.physic_offset for entry in body.queue_data]
        assert shown == [m.commit_log_offset for m in store.get_message("orders", 0, 5, 3).messages]
        assert (body.min_queue_index, body.max_queue_index) == (0, store.max_offset("orders", 0))

    look(script)


def test_runtime_counts_and_replication_are_reported() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        guest = await a_guest(stage)
        for _ in range(10):
            await guest.send(MASTER)
        await stage.for_ms(10_000)
        table = decode_body(KvTable, (await guest.ask(MASTER, RequestCode.GET_BROKER_RUNTIME_INFO)).body).table
        assert table["brokerActive"] == "true"
        assert table["brokerVersionDesc"] == "V5_3_3"
        assert table["msgPutTotalTodayNow"] == "10"
        assert [len(table[name].split(" ")) for name in ("putTps", "getTransferredTps")] == [3, 3]
        assert table["runtime"].startswith("[ 0 days, 0 hours, 0 minutes, 30 seconds")
        master = decode_body(bodies.HARuntimeInfo, (await guest.ask(MASTER, RequestCode.GET_BROKER_HA_STATUS)).body)
        slave = decode_body(bodies.HARuntimeInfo, (await guest.ask(S1, RequestCode.GET_BROKER_HA_STATUS)).body)
        assert (master.master, master.in_sync_slave_nums) == (True, 2)
        assert [link.diff for link in master.ha_connection_info] == [0, 0]
        assert (slave.master, slave.ha_client_runtime_info.activated) == (False, True)
        assert slave.ha_client_runtime_info.max_offset == master.master_commit_log_max_offset
        header = headers_admin.ViewBrokerStatsDataRequestHeader("TOPIC_PUT_NUMS", "orders")
        stats = decode_body(
            bodies.BrokerStatsData, (await guest.ask(MASTER, RequestCode.VIEW_BROKER_STATS_DATA, header)).body
        )
        assert [stats.stats_minute.sum, stats.stats_day.sum] == [10, 10]
        for name in ("TOPIC_PUT_NUMS", "NO_SUCH_STATS"):
            unknown = headers_admin.ViewBrokerStatsDataRequestHeader(name, "ghost")
            answer = await guest.ask(MASTER, RequestCode.VIEW_BROKER_STATS_DATA, unknown)
            assert answer.remark == f"The stats <{name}> <ghost> not exist"

    execute(a_group(config=acting()), script)
