"""What the judge reports of clients that brokers refuse by their users and permissions, and of whom it is silent."""

import pytest

from analysis.executed_rows import found_in_executed
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.measures.denied_requests import DENIED
from emulator.analysis.measures.measured_symptoms import measured_symptoms
from emulator.testing import execute
from nodes.protocol.bodies_auth import AclInfo, PolicyEntryInfo, PolicyInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers import GetMinOffsetRequestHeader
from nodes.protocol.headers_auth import SubjectHeader
from nodes.protocol.headers_pop import PopMessageRequestHeader
from support.auth_cluster import BILLING, ROOT, SHOP, ask, scenario

RUN_MS = 60_000


async def pops(stage, *, born_time, every_ms=1_000):
    """A proxy pops for the group once a second; returns how its requests are answered."""
    caller, codes = await stage.probe(), []
    await stage.for_ms(5_000)
    while stage.now_ms < RUN_MS:
        born_ms = caller.node.now_ms() if born_time else 0
        header = PopMessageRequestHeader("billing", "orders", -1, 8, 60_000, 0, born_ms, 0)
        codes.append((await ask(caller, RequestCode.POP_MESSAGE, header)).code)
        await stage.for_ms(every_ms)
    return codes


def complaints(trace):
    """Severity and text of each symptom of denied requests that is above the limit."""
    found = found_in_executed(trace)
    context = Context(round(trace.end_ms * 1e6), {}, {})
    symptoms = [item for item in measured_symptoms(found, context) if item.kind is SymptomKind.DENIED]
    return [(item.severity, item.text) for item in symptoms if item.severity > 1]


def test_a_group_whose_user_may_not_subscribe_is_named_with_what_it_is_denied():
    trace = execute(scenario(consumer=SHOP), for_ms=RUN_MS)

    ((severity, text),) = complaints(trace)
    assert severity > 3
    assert text.startswith("rocketmq-shop was denied ")
    assert "HEART_BEAT (Sub of Group:billing) of 127.1.10.1 at broker-a" in text
    assert text.endswith("no matched policies.")


def test_a_group_whose_user_may_is_not():
    assert complaints(execute(scenario(consumer=BILLING), for_ms=RUN_MS)) == []


def test_a_client_that_is_denied_once_is_no_complaint():
    async def script(stage):
        caller = await stage.probe()
        await stage.for_ms(5_000)
        answer = await ask(caller, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader("orders", 0), signs=None)
        assert answer.code == ResponseCode.NO_PERMISSION
        await stage.at_ms(RUN_MS)

    trace = execute(scenario(consumer=BILLING), script)

    assert "" in [item.user for item in found_in_executed(trace).of(DENIED)]
    assert complaints(trace) == []


def test_a_policy_that_comes_later_ends_the_denial():
    async def script(stage):
        await stage.at_ms(15_000)
        entries = tuple(PolicyEntryInfo(name, ("Sub", "Get"), None, "Allow") for name in ("Topic:*", "Group:*"))
        acl = AclInfo("User:rocketmq-shop", (PolicyInfo(None, entries),))
        await ask(await stage.probe(), RequestCode.AUTH_UPDATE_ACL, SubjectHeader("User:rocketmq-shop"), acl)
        await stage.at_ms(RUN_MS)

    trace = execute(scenario(consumer=SHOP), script)

    denied = found_in_executed(trace).of(DENIED)
    assert {item.end_ns // 10**9 for item in denied if item.request == "HEART_BEAT"} == {31}
    assert max(severity for severity, _ in complaints(trace)) < 3.1


@pytest.mark.trap("A7")
def test_9518_pops_without_their_time_are_named_where_permissions_are_checked():
    codes = []

    async def script(stage):
        codes.extend(await pops(stage, born_time=False))

    trace = execute(scenario(consumer=ROOT), script)

    assert set(codes) == {ResponseCode.POLLING_TIMEOUT}
    ((severity, text),) = complaints(trace)
    assert severity > 5
    assert text.startswith("rocketmq-root was denied ")
    assert "POP_MESSAGE (Group:billing) of " in text
    assert text.endswith("the pop has no bornTime, and is too late where permissions are checked (issue 9518)")


@pytest.mark.parametrize(("authorization", "born_time"), [("false", False), ("true", True)])
def test_9518_is_silent_with_either_remedy(authorization, born_time):
    async def script(stage):
        await pops(stage, born_time=born_time)

    assert complaints(execute(scenario(consumer=ROOT, authorization=authorization), script)) == []
