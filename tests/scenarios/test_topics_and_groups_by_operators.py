"""What operators change while a cluster runs: topics, groups, permissions, options."""

from typing import Any

import attrs
import pytest

from emulator.testing import Stage, Trace, a_scenario, execute
from nodes.config import BrokerConfig
from nodes.live_config import CONFIG_FILE
from nodes.protocol import headers_admin as headers
from nodes.protocol.bodies import TopicList
from nodes.protocol.bodies_admin import CreateTopicListRequestBody, GroupForbidden
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers import DeleteTopicFromNamesrvRequestHeader, GetRouteInfoRequestHeader
from nodes.protocol.model import SubscriptionGroupConfig, TopicConfig, TopicRouteData
from nodes.protocol.registry import decode_body
from support.asking_guest import Guest, a_guest

BROKER, NS = "broker-a", "ns-1"


def topic_header(topic: str = "news", queues: int = 4, perm: int = 6, **more: Any) -> headers.CreateTopicRequestHeader:
    return headers.CreateTopicRequestHeader(topic, "TBW102", queues, queues, perm, "SINGLE_TAG", **more)


async def create(guest: Guest, **wanted: Any) -> int:
    answer = await guest.ask(BROKER, RequestCode.UPDATE_AND_CREATE_TOPIC, topic_header(**wanted))
    return answer.code


async def route(guest: Guest, topic: str = "news") -> TopicRouteData | None:
    answer = await guest.ask(NS, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
    return decode_body(TopicRouteData, answer.body) if answer.code == ResponseCode.SUCCESS else None


def owned(trace: Trace, topic: str = "orders") -> list[int]:
    return [queue_id for _, queue_id in trace.owners(topic=topic)]


def test_a_topic_made_while_the_cluster_runs_is_in_the_routes_at_once_and_consumers_take_its_queues() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.at_ms(20_000)
        assert await create(guest, topic="orders", queues=8) == ResponseCode.SUCCESS
        await stage.for_ms(100)
        found = await route(guest, "orders")
        assert found is not None
        assert [data.read_queue_nums for data in found.queue_datas] == [8]
        await stage.at_ms(80_000)

    trace = execute(a_scenario(consumers=2), script)
    assert owned(trace) == list(range(8))


def test_a_topic_that_is_new_can_be_sent_to_and_survives_a_restart() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        assert await create(guest, attributes="+message.type=NORMAL") == ResponseCode.SUCCESS
        assert (await guest.send(BROKER, topic="news")).code == ResponseCode.SUCCESS
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(1_000)
        answer = await guest.ask(BROKER, RequestCode.GET_TOPIC_CONFIG, headers.TopicHeader("news"))
        assert decode_body(TopicConfig, answer.body) == TopicConfig("news", 4, 4, attributes={"message.type": "NORMAL"})

    execute(a_scenario(), script)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"topic": "bad topic"}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "t" * 128}, ResponseCode.INVALID_PARAMETER),
        ({"topic": "SELF_TEST_TOPIC"}, ResponseCode.INVALID_PARAMETER),
        ({"attributes": "+message.type=MIXED"}, ResponseCode.INVALID_PARAMETER),
        ({"attributes": "+message.colour=red"}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_topic_that_cannot_be_is_refused_and_nothing_changes(wanted: dict[str, Any], code: ResponseCode) -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.at_ms(5_000)
        topics = stage.node(BROKER).context.topics
        before = topics.data_version
        assert await create(guest, **wanted) == code
        assert topics.data_version is before

    execute(a_scenario(), script)


def test_a_topic_without_write_permission_gets_no_more_messages_and_is_still_read() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        guest = await a_guest(stage)
        assert await create(guest, topic="orders", perm=4) == ResponseCode.SUCCESS
        await stage.for_ms(60_000)

    trace = execute(a_scenario(consumers=1, rate_per_s=1), script)
    sent = [row.at_ms for row in trace.select("messages", event="stored", topic="orders")]
    # A producer looks at its routes every 30 s.
    assert 30_000 < max(sent) < 61_000
    assert len(trace.consumed()) == len(sent)


def test_several_topics_are_made_at_once_and_a_deleted_one_is_gone_with_its_offsets() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        body = CreateTopicListRequestBody((TopicConfig("one", 2, 2), TopicConfig("two", 2, 2)))
        answer = await guest.ask(BROKER, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, None, body)
        assert answer.code == ResponseCode.SUCCESS
        await stage.for_ms(100)
        assert await route(guest, "one") is not None
        assert await route(guest, "two") is not None
        await guest.send(BROKER, topic="one")
        context, offsets = stage.node(BROKER).context, stage.node(BROKER).tables.clients.offsets
        offsets.commit_offset("g", "one", 0, 1, now_ms=0)
        delete = headers.TopicHeader("one")
        assert (await guest.ask(BROKER, RequestCode.DELETE_TOPIC_IN_BROKER, delete)).code == ResponseCode.SUCCESS
        everywhere = DeleteTopicFromNamesrvRequestHeader("one")
        assert (await guest.ask(NS, RequestCode.DELETE_TOPIC_IN_NAMESRV, everywhere)).code == ResponseCode.SUCCESS
        assert await route(guest, "one") is None
        assert (offsets.query_offset("g", "one", 0), context.store.max_offset("one", 0)) == (-1, 0)
        refused = await guest.ask(BROKER, RequestCode.DELETE_TOPIC_IN_BROKER, headers.TopicHeader("TBW102"))
        assert refused.code == ResponseCode.INVALID_PARAMETER
        await stage.for_ms(60_000)  # two registrations later
        assert await route(guest, "one") is None

    execute(a_scenario(), script)


def test_groups_are_made_asked_about_and_deleted() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)

        async def ask(code: RequestCode, header: Any = None, body: Any = None) -> Any:
            return await guest.ask(BROKER, code, header, body)

        wanted = SubscriptionGroupConfig("vip", retry_max_times=3, consume_enable=False)
        await ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, wanted)
        answer = await ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, headers.GroupHeader("vip"))
        assert decode_body(SubscriptionGroupConfig, answer.body) == wanted
        forbid = headers.UpdateGroupForbiddenRequestHeader("vip", "orders", readable=False)
        answer = await ask(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, forbid)
        assert decode_body(GroupForbidden, answer.body) == GroupForbidden("orders", "vip", readable=False)
        delete = headers.DeleteSubscriptionGroupRequestHeader("vip", clean_offset=True)
        context, offsets = stage.node(BROKER).context, stage.node(BROKER).tables.clients.offsets
        offsets.commit_offset("vip", "orders", 0, 1, now_ms=0)
        assert (await ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, delete)).code == ResponseCode.SUCCESS
        assert "vip" not in context.groups.groups
        assert offsets.query_offset("vip", "orders", 0) == -1

    execute(a_scenario(), script)


def test_a_group_that_may_not_consume_any_more_stops_at_its_next_pull() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        guest = await a_guest(stage)
        await guest.ask(
            BROKER,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            None,
            SubscriptionGroupConfig("g", consume_enable=False),
        )
        await stage.for_ms(30_000)

    trace = execute(a_scenario(consumers=1, rate_per_s=1), script)
    assert max(row.at_ms for row in trace.select("messages", event="consumed", topic="orders")) < 46_000


def test_options_change_while_a_broker_runs_and_stay_changed_when_it_is_restarted() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.at_ms(5_000)
        answer = await guest.ask(BROKER, RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerPermission=4\nunknown=1\n")
        assert answer.code == ResponseCode.SUCCESS
        await stage.for_ms(100)
        found = await route(guest, "orders")
        assert found is not None
        assert [data.perm for data in found.queue_datas] == [4]
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(1_000)
        answer = await guest.ask(BROKER, RequestCode.GET_BROKER_CONFIG)
        lines = (answer.body or b"").decode().splitlines()
        assert "brokerPermission=4" in lines
        assert "brokerName=broker-a" in lines
        assert not [line for line in lines if line.startswith("unknown")]

    execute(a_scenario(), script)


@pytest.mark.parametrize(
    ("body", "code", "remark"),
    [
        (b"brokerPermission=9", 1, "brokerPermission: expected a whole number from 0 to 7, not 9"),
        (b"brokerPermission=\\u00g1", 1, "string2Properties error"),
        (b"listenPort=1", ResponseCode.NO_PERMISSION, "Can not update config in black list."),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_is_refused_in_one_line_and_changes_nothing(body, code, remark) -> None:  # type: ignore[no-untyped-def]
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        before = stage.node(BROKER).context.config
        answer = await guest.ask(BROKER, RequestCode.UPDATE_BROKER_CONFIG, None, b"forceRegister=false\n" + body)
        assert (answer.code, answer.remark) == (code, remark)
        assert stage.node(BROKER).context.config is before

    execute(a_scenario(), script)


def test_an_option_whose_text_does_not_parse_stays_as_it_is_and_that_is_a_success() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        body = b"brokerPermission=x\nforceRegister=no\nfileReservedTime\nunknown=1"
        answer = await guest.ask(BROKER, RequestCode.UPDATE_BROKER_CONFIG, None, body)
        assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
        assert stage.node(BROKER).context.config == BrokerConfig(force_register=False)
        stored = stage.host(BROKER).disk.read(CONFIG_FILE)
        assert stored == b"forceRegister=false\n"
        assert (await guest.ask(BROKER, RequestCode.UPDATE_BROKER_CONFIG)).code == ResponseCode.SUCCESS

    execute(a_scenario(), script)


def test_a_nameserver_changes_its_options_too() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)

        async def lists() -> int:
            return (await guest.ask(NS, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)).code

        assert await lists() == ResponseCode.SUCCESS
        answer = await guest.ask(NS, RequestCode.UPDATE_NAMESRV_CONFIG, None, b"enableAllTopicList=false")
        assert answer.code == ResponseCode.SUCCESS
        assert await lists() == ResponseCode.SYSTEM_ERROR
        await stage.kill(NS)
        stage.start(NS)
        await stage.for_ms(1_000)
        assert await lists() == ResponseCode.SYSTEM_ERROR
        answer = await guest.ask(NS, RequestCode.GET_NAMESRV_CONFIG)
        assert b"enableAllTopicList=false\n" in (answer.body or b"")

    execute(a_scenario(), script)


def test_what_no_one_emulates_is_answered_with_code_3() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        for node in (BROKER, NS):
            for code in (301, 99_999):
                command = await guest.node.rpc.call(
                    f"{stage.host(node).ip}:{9_876 if node == NS else 10_911}", code, timeout_ms=3_000
                )
                assert command.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    execute(a_scenario(), script)


def test_system_topics_of_a_broker_are_listed() -> None:
    found: list[TopicList] = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        answer = await guest.ask(BROKER, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
        found.append(decode_body(TopicList, answer.body))

    execute(a_scenario(), script)
    (listed,) = found
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"} <= set(listed.topic_list)
    assert "orders" not in listed.topic_list
    assert attrs.asdict(listed)["broker_addr"] is None


def test_queues_of_topics_that_are_gone_are_cleaned_and_those_of_others_stay() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        broker = stage.node(BROKER).context
        for topic in ("orders", "news", "%LMQ%news"):
            assert (await guest.send(BROKER, topic=topic)).code == ResponseCode.SUCCESS
        for topic in ("news", "%LMQ%news"):
            broker.topics.delete_topic_config(topic, now_ms=0)

        assert (await guest.ask(BROKER, RequestCode.CLEAN_UNUSED_TOPIC, None)).code == ResponseCode.SUCCESS

        assert broker.store.topics() == ("orders", "%LMQ%news")
        assert broker.store.max_offset("news", 0) == 0

    execute(a_scenario(), script)
