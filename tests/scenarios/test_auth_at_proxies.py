"""Clients of RocketMQ 5 behind a proxy with ACL 2.0: with the right keys, with wrong ones, and without."""

from itertools import pairwise

import pytest

from analysis.executed_rows import found_in_executed
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.measures.measured_symptoms import measured_symptoms
from emulator.spec.warnings.harmful_settings import check
from emulator.testing import Stage, Trace, execute
from nodes.protocol.bodies_auth import AclInfo, PolicyEntryInfo, PolicyInfo
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers_auth import SubjectHeader
from support.auth_cluster import ask
from support.every_case import each_case
from support.proxy_auth import BILLING, INNER, SHOP, scenario

RUN_MS = 60_000
NO_USER, WRONG_KEY = "username cannot be null.", "check signature failed."
NOT_OF_THE_GROUP = "User:rocketmq-shop has no permission to access Group:billing from 127.1.10.1, no matched policies."


def consumed(trace: Trace, from_s: float = 0) -> int:
    """Messages of the topic that the consumer has worked on, from an instant on."""
    return len([row for row in trace.select("messages", event="consumed", topic="orders") if row.at_s >= from_s])


def start_failure(trace: Trace, node: str) -> str:
    """Why a node could not start; empty: it could."""
    found = [row.detail for row in trace.select("lifecycle", node=node, event="stopping")]
    return found[0] if found else ""


def complaints(trace: Trace) -> list[str]:
    """The symptoms of denied requests that are above the limit."""
    context = Context(round(trace.end_ms * 1e6), {}, {})
    symptoms = measured_symptoms(found_in_executed(trace), context)
    return [item.text for item in symptoms if item.kind is SymptomKind.DENIED and item.severity > 1]


@pytest.mark.parametrize(
    ("mode", "authorization"),
    [
        ("push5", "true"),
        ("simple", "false"),
        pytest.param("push5", "false", marks=pytest.mark.slow),
        pytest.param("simple", "true", marks=pytest.mark.slow),
    ],
)
def test_users_whose_policies_allow_it_send_and_consume(mode: str, authorization: str) -> None:
    trace = execute(scenario(mode=mode, authorization=authorization), for_ms=20_000)
    assert consumed(trace) > 100
    assert trace.select("beliefs", kind="denied") == []


def test_a_proxy_signs_its_heartbeats_for_producers_so_that_checks_reach_them() -> None:
    sends = 'local_transaction = "unknown"\ncheck_local_transaction = "commit"'
    trace = execute(scenario(message_type="TRANSACTION", sends=sends), for_ms=90_000)
    assert consumed(trace) > 50
    assert trace.select("beliefs", kind="denied") == []


@pytest.mark.parametrize("mode", ["push5", "simple"])
@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("", NO_USER),
        (BILLING.replace("secret-of-billing", "another-secret"), WRONG_KEY),
        (BILLING.replace("rocketmq-billing", "rocketmq-nobody"), "User:rocketmq-nobody is not found."),
    ],
    ids=["no key", "wrong key", "no user"],
)
def test_a_consumer_without_the_right_key_does_not_start(mode: str, keys: str, why: str) -> None:
    trace = execute(scenario(mode=mode, consumer=keys, producer=None), for_ms=10_000)
    assert start_failure(trace, "billing-1") == f"start failed: [40100] {why}"


@pytest.mark.parametrize(
    ("keys", "why"), [("", NO_USER), (SHOP.replace("secret-of-shop", "another-secret"), WRONG_KEY)]
)
def test_a_producer_without_the_right_key_does_not_start(keys: str, why: str) -> None:
    trace = execute(scenario(consumer=None, producer=keys), for_ms=10_000)
    assert start_failure(trace, "shop") == f"start failed: [40100] {why}"


@pytest.mark.trap("A17")
def test_a_client_whose_settings_are_denied_does_not_start_and_does_not_learn_why() -> None:
    # It may publish to the topic, so it gets the route; its group is not its own.
    trace = execute(scenario(consumer=SHOP, producer=None), for_ms=10_000)
    assert start_failure(trace, "billing-1") == "start failed: no settings came in 6000 ms"
    (row,) = trace.select("lifecycle", node="billing-1", event="stopping")
    assert 6 <= row.at_s < 7
    (denial,) = trace.select("beliefs", node="proxy-1", kind="denied")
    assert denial.subject == "rocketmq-shop/127.1.10.1/V2_TELEMETRY/Group:billing"


async def deny_group(stage: Stage, *names: str) -> None:
    """Take the group from the user of the consumer."""
    entries = tuple(PolicyEntryInfo(name, ("Sub",), None, "Deny") for name in names)
    acl = AclInfo("User:rocketmq-billing", (PolicyInfo(None, entries),))
    header = SubjectHeader("User:rocketmq-billing")
    answer = await ask(await stage.probe(), RequestCode.AUTH_UPDATE_ACL, header, acl)
    assert answer.code == 0


@pytest.mark.parametrize("mode", ["push5", "simple"])
def test_a_consumer_whose_receives_are_denied_tries_again_each_second_and_is_named(mode: str) -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await deny_group(stage, "Group:billing", "Topic:*")
        await stage.at_ms(RUN_MS)

    trace = execute(scenario(mode=mode), script)

    assert consumed(trace, from_s=10) > 50
    assert consumed(trace, from_s=42) == 0
    receive = int(RequestCode.V2_RECEIVE_MESSAGE)
    asked_s = [row.at_s for row in trace.select("rpc", event="delivered", kind="request", code=receive)]
    late_s = [at_s for at_s in asked_s if at_s > 50]
    assert all(0.9 < later - earlier < 1.2 for earlier, later in pairwise(late_s))
    assert len(late_s) >= 9
    ((text),) = complaints(trace)
    assert text.startswith("rocketmq-billing was denied ")
    assert "V2_RECEIVE_MESSAGE (Sub of Group:billing) of 127.1.10.1 at proxy-1" in text
    assert text.endswith("has no permission to access Group:billing from 127.1.10.1, the decision is deny.")


@pytest.mark.trap("A7")
def test_9518_behind_a_proxy_consumers_receive_nothing_where_brokers_check_permissions() -> None:
    sick = execute(scenario(authorization_of_broker="true", mode="simple"), for_ms=20_000)
    assert consumed(sick) == 0
    ((text),) = complaints(sick)
    assert text.startswith("rocketmq-inner was denied ")
    assert text.endswith("the pop has no bornTime, and is too late where permissions are checked (issue 9518)")


@pytest.mark.trap("A15")
@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({"signs": "false"}, "proxy-credentials-without-effect"),
        ({"inner": ""}, "proxies-refused-by-accounts"),
    ],
)
def test_9958_a_proxy_that_does_not_sign_cannot_start_and_is_named_before_the_run(
    given: dict[str, str], warning: str
) -> None:
    item = scenario(consumer=None, producer=None, **given)
    trace = execute(item, for_ms=10_000)
    text = "create system broadcast topic DefaultHeartBeatSyncerTopic failed on cluster DefaultCluster"
    assert start_failure(trace, "proxy-1") == f"start failed: {text}"
    assert warning in [element.name for element in check(item)]
    (denial,) = trace.select("beliefs", node="broker-a", kind="denied")
    assert denial.held["reason"] == NO_USER


def test_a_proxy_that_signs_as_a_user_without_permissions_refuses_every_user() -> None:
    item = scenario(inner=INNER.replace("rocketmq-inner", "rocketmq-billing"), authorization_of_broker="true")
    trace = execute(item, for_ms=10_000)
    assert "create system broadcast topic" in start_failure(trace, "proxy-1")


def refused_by(why: str) -> list[str]:
    """The warnings where nobody gets in."""
    calls = {"billing-1": "ReceiveMessage", "shop": "SendMessage"}
    return [f"{name}: proxy-1 with ACL 2.0 refuses their {call}: {why}" for name, call in calls.items()]


@each_case(
    ("given", "lines"),
    [
        ({}, []),
        ({"authorization": "false", "consumer": SHOP}, []),
        ({"authentication": "false", "authorization": "false", "consumer": ""}, []),
        ({"consumer": 'accessKey = "rocketmq-billing", secretKey = { env = "KEY_OF_BILLING" }'}, []),
        ({"consumer": ""}, [f"billing-1: proxy-1 with ACL 2.0 refuses their ReceiveMessage: {NO_USER}"]),
        (
            {"producer": SHOP.replace("secret-of-shop", "another-secret")},
            [f"shop: proxy-1 with ACL 2.0 refuses their SendMessage: {WRONG_KEY}"],
        ),
        (
            {"consumer": SHOP},
            [f"billing-1: proxy-1 with ACL 2.0 refuses their ReceiveMessage: {NOT_OF_THE_GROUP}"],
        ),
        ({"users": ""}, refused_by("The authenticationMetadataProvider is not configured")),
        ({"acls": ""}, refused_by("The authorizationMetadataProvider is not configured")),
    ],
)
def test_clients_that_a_proxy_refuses_are_named_before_the_run(given: dict[str, str], lines: list[str]) -> None:
    named = [element.line() for element in check(scenario(**given)) if "refused" in element.name]
    assert named == [f"clients-refused-by-accounts: {line}" for line in lines]


@pytest.mark.parametrize("keys", [BILLING, ""], ids=["right key", "no key"])
def test_an_old_consumer_behind_a_proxy_consumes_with_keys_alone(keys: str) -> None:
    options = ", ".join(filter(None, ('namesrvAddr = "proxy-1"', keys)))
    trace = execute(scenario(mode="pull", consumer=options), for_ms=40_000)
    assert (consumed(trace) > 200) == bool(keys)
    assert bool(complaints(trace)) == (not keys)
