"""Acts of administrators in a healthy cluster: each request is a cause, so that what follows breaks no rule."""

import pytest

from analysis.trace_rows import GROUP, TOPIC, HandMadeTrace, found_in
from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import RulesVerdict, symptoms
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from nodes.protocol.administration import ADMIN_REQUESTS
from nodes.protocol.codes import RequestCode
from support.admin_requests import EXAMPLES, READY_MS
from support.administrator import an_administrator, run_administered

LOSES = RequestCode.DELETE_TOPIC_IN_BROKER
"""Producers create the topic again with their next message, and its members lose some: it has a test of its own."""
QUICK = (
    RequestCode.UPDATE_AND_CREATE_TOPIC,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
    RequestCode.SET_MESSAGE_REQUEST_MODE,
    RequestCode.SET_REBALANCE_MODE,
    RequestCode.UPDATE_BROKER_CONFIG,
    RequestCode.DELETE_TOPIC_IN_NAMESRV,
    RequestCode.REMOVE_BROKER,
    RequestCode.CONTROLLER_ELECT_MASTER,
    RequestCode.DELETE_EXPIRED_COMMITLOG,
)
"""One or two of each kind of change; `make proofs` runs the others."""


def administered(example, runs):
    """The report about a run in which an administrator sends a request, and the requests in its trace."""

    async def act(stage):
        await stage.at_ms(READY_MS)
        await example.execute(await an_administrator(stage))

    path, trace = run_administered(example.scenario(), runs, act, level=TraceLevel.FINDINGS)
    return judge_run(open_run(path)), [row.request for row in trace.select("admin")]


def test_there_is_an_example_of_every_request_and_the_quick_ones_change_everything():
    assert {item.code for item in EXAMPLES} == set(map(RequestCode, ADMIN_REQUESTS))
    every = {changed for item in ADMIN_REQUESTS.values() for changed in item.changes}
    assert {changed for code in QUICK for changed in ADMIN_REQUESTS[code].changes} == every


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(item, id=item.code.name, marks=[pytest.mark.slow] * (item.code not in QUICK))
        for item in EXAMPLES
        if item.code is not LOSES
    ],
)
def test_an_act_of_an_administrator_breaks_no_rule(example, tmp_path):
    report, acts = administered(example, tmp_path)

    assert example.code.name in acts
    assert broken(report) == ()
    assert report.verdict is RulesVerdict.VALID


def test_a_topic_that_is_deleted_while_producers_send_loses_messages(
    tmp_path,
):
    """RocketMQ loses them: a pull above the end of the new queue is answered with this end as the next offset."""
    (example,) = [item for item in EXAMPLES if item.code is LOSES]
    report, acts = administered(example, tmp_path)

    assert acts == [LOSES.name]
    assert broken(report) == ("V7",)
    assert all(row.reused == row.lost > 0 for row in report["losses"])
    assert [symptom.kind for symptom in symptoms(report)][:1] == ["lost messages"]


# --- the same without the act ---------------------------------------------------------------


def a_group_of_two():
    """A group that has agreed long ago: `a` owns the queue, has committed 60, and a message waits for no one."""
    trace = HandMadeTrace()
    trace.roles |= {"broker-a": "broker", "box": "broker", "controller-1": "controller", "ns-1": "nameserver"}
    for node in "ab":
        trace.life(node, "ready", GROUP, role="consumer").subscribe(node).believe(node, 1)
    trace.at(1).own("a", "acquired", offset=0)
    for offset in range(60):
        trace.at(2 + offset).store(offset).consume("a", offset).commit("a", offset + 1)
    return trace.at(300)


def two_views(trace):
    return trace.believe("a", 2).at(340).believe("b", 2)


def two_owners(trace):
    return trace.own("b", "acquired", offset=60).at(340).own("a", "dropped")


def no_owner(trace):
    return trace.own("a", "dropped").at(340).own("b", "acquired", offset=60)


def an_offset_falls(trace):
    return trace.at(310).commit("a", 5)


def a_backlog(trace):
    return trace.at(301).store(60)


BROKEN = {two_views: "V6", two_owners: "V1", no_owner: "V2", an_offset_falls: "V4", a_backlog: "V8"}
ACTS = [
    (two_views, "broker-a", "UPDATE_AND_CREATE_TOPIC", TOPIC, "", {}),
    (two_views, "ns-1", "WIPE_WRITE_PERM_OF_BROKER", "", "", {}),
    (two_views, "broker-a", "UPDATE_BROKER_CONFIG", "", "", {}),
    (two_views, "box", "REMOVE_BROKER", "", "", {}),
    (two_views, "controller-1", "CONTROLLER_ELECT_MASTER", "", "", {}),
    (two_views, "broker-a", "SET_MESSAGE_REQUEST_MODE", TOPIC, GROUP, {}),
    (no_owner, "broker-a", "UPDATE_AND_CREATE_TOPIC", TOPIC, "", {}),
    (no_owner, "ns-1", "DELETE_TOPIC_IN_NAMESRV", TOPIC, "", {}),
    (two_owners, "broker-a", "DELETE_TOPIC_IN_BROKER", TOPIC, "", {}),
    (two_owners, "broker-a", "SET_REBALANCE_MODE", "", GROUP, {}),
    (an_offset_falls, "broker-a", "DELETE_TOPIC_IN_BROKER", TOPIC, "", {}),
    (an_offset_falls, "broker-a", "INVOKE_BROKER_TO_RESET_OFFSET", TOPIC, GROUP, {}),
    (a_backlog, "broker-a", "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", "", GROUP, {"consumeEnable": False}),
    (a_backlog, "broker-a", "UPDATE_AND_GET_GROUP_FORBIDDEN", TOPIC, GROUP, {"readable": "false"}),
]


@pytest.mark.parametrize(("impact", "node", "request_name", "topic", "group", "detail"), ACTS)
def test_the_act_explains_what_would_break_a_rule_without_it(impact, node, request_name, topic, group, detail):
    without = broken(found_in(impact(a_group_of_two()), 900))
    act = a_group_of_two().admin(node, request_name, topic, group, **detail)
    of_another = a_group_of_two().admin(node, request_name, "another" if topic else "", "another", **detail)

    assert BROKEN[impact] in without
    assert broken(found_in(impact(act), 900)) == ()
    assert topic + group == "" or BROKEN[impact] in broken(found_in(impact(of_another), 900))
