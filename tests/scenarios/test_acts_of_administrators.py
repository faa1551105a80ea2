"""What administrators change is in the trace: a row for each request that was carried out, and none for others."""

from pathlib import Path
from typing import get_args, get_type_hints

import attrs
import pytest

from emulator.state.event_lines import EventLines
from emulator.testing import Stage, a_scenario, execute
from emulator.trace.schema import ADMIN, COUNTS, TraceLevel
from nodes.protocol import headers, headers_admin, headers_controller
from nodes.protocol.administration import ADMIN_REQUESTS
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.registry import EXCHANGES
from nodes.protocol.wire_names import wire_name
from support.admin_requests import BROKER, CLUSTER, CONTROLLER, EXAMPLES, GROUP, READY_MS, TOPIC, AdminExample
from support.administrator import an_administrator, run_administered
from support.run_rows import table_rows


def test_each_request_of_administrators_has_an_example() -> None:
    assert sorted(example.code for example in EXAMPLES) == sorted(ADMIN_REQUESTS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.code.name)
def test_a_request_leaves_a_row_for_each_thing_that_it_names(example: AdminExample) -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(READY_MS)
        admin = await an_administrator(stage)
        await example.execute(admin)
        rows = admin.acts(request=example.code.name)
        assert [(row.topic, row.group, row.broker_name) for row in rows] == list(example.named)
        for row in rows:
            assert (row.node, row.t_ns) == (example.node, stage.world.timeline.now_ns - 1_000_000)
            assert READY_MS * 1_000_000 < row.began_ns <= row.t_ns

    trace = execute(example.scenario(), script)
    seqs = [row.seq for table in trace.rows.values() for row in table]
    for row in trace.select("admin"):
        assert row.cause in seqs


def test_the_row_of_a_request_says_what_was_asked_and_its_cause_is_its_arrival() -> None:
    async def script(stage: Stage) -> None:
        admin = await an_administrator(stage)
        await admin.create_topic("news", queues=3, perm=4)
        await admin.change(BROKER, RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerPermission=4\nmaxMessageSize = 9\n")

    trace = execute(a_scenario(), script)
    topic, option = trace.select("admin")
    assert topic.detail == (
        '{"defaultTopic":"TBW102","order":"false","perm":"4","readQueueNums":"3","topicFilterType":"SINGLE_TAG",'
        '"writeQueueNums":"3"}'
    )
    assert option.detail == '{"brokerPermission":"4","maxMessageSize":"9"}'
    (arrived,) = trace.select("rpc", src="probe-9", code=int(RequestCode.UPDATE_BROKER_CONFIG), kind="request")
    assert option.cause == arrived.seq
    # It is answered when a nameserver knows the topic, but nothing has changed before it arrived.
    (arrived,) = trace.select("rpc", src="probe-9", code=int(RequestCode.UPDATE_AND_CREATE_TOPIC), kind="request")
    assert topic.began_ns == arrived.t_ns < topic.t_ns


def test_who_watches_a_run_sees_what_administrators_change() -> None:
    scenario = a_scenario()

    async def script(stage: Stage) -> None:
        admin = await an_administrator(stage)
        await admin.change(BROKER, RequestCode.DELETE_TOPIC_IN_BROKER, headers_admin.TopicHeader(TOPIC))
        await admin.change(BROKER, RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerPermission=4")

    rows = execute(scenario, script).select("admin")
    lines = [EventLines(scenario).line(ADMIN, tuple(row.values())) or "" for row in rows]
    assert [line.split()[1:] for line in lines] == [
        ["broker-a", "ADMIN", "DELETE_TOPIC_IN_BROKER", "orders", "(from", "127.1.200.10:32769)"],
        ["broker-a", "ADMIN", "UPDATE_BROKER_CONFIG", "(from", "127.1.200.10:32769):", "brokerPermission=4"],
    ]


def test_a_request_that_is_refused_leaves_no_row() -> None:
    async def script(stage: Stage) -> None:
        admin = await an_administrator(stage)
        refused = (
            (RequestCode.DELETE_TOPIC_IN_BROKER, headers_admin.TopicHeader(" "), None),
            (RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerConfigPath=x"),
            (RequestCode.UPDATE_CONSUMER_OFFSET, headers.UpdateConsumerOffsetRequestHeader("none", TOPIC, 0, 1), None),
        )
        for code, header, body in refused:
            assert (await admin.ask(BROKER, code, header, body)).code != ResponseCode.SUCCESS
        # One of the name alone: it only queries.
        asks = headers_admin.UpdateGroupForbiddenRequestHeader(GROUP, TOPIC)
        await admin.change(BROKER, RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, asks)

    assert execute(a_scenario(), script).select("admin") == []


def test_what_consumers_commit_and_operators_do_with_verbs_leaves_no_row() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        for line in ("permission broker-a 4", "consume-mode g pop", "rebalance g broker"):
            await stage.end(await stage.begin(line))
        await stage.at_ms(60_000)

    trace = execute(a_scenario(consumers=2, rate_per_s=5), script)
    assert trace.select("messages", event="committed")
    assert len(trace.select("faults", event="begin")) == 3
    assert trace.select("admin") == []


def test_an_election_that_brokers_ask_for_leaves_no_row_and_one_that_designates_a_master_does() -> None:
    example = next(item for item in EXAMPLES if item.code is RequestCode.CONTROLLER_ELECT_MASTER)

    async def script(stage: Stage) -> None:
        admin = await an_administrator(stage)
        await stage.at_ms(READY_MS)
        await stage.kill(BROKER)
        await stage.for_ms(20_000)
        stage.start(BROKER)
        await stage.for_ms(20_000)
        assert stage.trace.select("admin") == []
        back = headers_controller.ElectMasterRequestHeader(CLUSTER, BROKER, 1, designate_elect=True)
        await admin.change(CONTROLLER, RequestCode.CONTROLLER_ELECT_MASTER, back)

    trace = execute(example.scenario(), script)
    assert trace.select("rpc", code=int(RequestCode.CONTROLLER_ELECT_MASTER), src="broker-a", kind="request")
    assert [row.broker_name for row in trace.select("admin")] == [BROKER]


def test_the_fields_that_the_table_names_are_those_of_the_requests() -> None:
    for code, kind in ADMIN_REQUESTS.items():
        exchange = EXCHANGES[RequestCode(code)]
        classes = [exchange.request_header, exchange.request_body]
        if kind.entries:
            (listed,) = attrs.fields(exchange.request_body)
            assert wire_name(exchange.request_body, listed) == kind.entries
            classes.append(get_args(get_type_hints(exchange.request_body)[listed.name])[0])
        names = [wire_name(cls, field) for cls in classes if attrs.has(cls) for field in attrs.fields(cls)]
        assert all(name in names for name in kind.names if name), RequestCode(code).name


@pytest.mark.parametrize("level", TraceLevel)
def test_each_level_has_the_rows_of_administrators_or_their_number(level: TraceLevel, tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(READY_MS)
        admin = await an_administrator(stage)
        await admin.update_group(GROUP, consume_enable=False)

    path, trace = run_administered(
        attrs.evolve(a_scenario(consumers=1), run_for_ms=60_000), tmp_path, script, level=level
    )
    (expected,) = trace.select("admin")
    name = "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP"
    found = list(table_rows(path, ADMIN))
    counted = [row["rows"] for row in table_rows(path, COUNTS) if (row["table"], row["event"]) == ("admin", name)]
    assert (found, counted) == (([], [1]) if level is TraceLevel.COUNTS else ([dict(expected)], []))
