"""ACL 2.0 in a whole cluster: brokers refuse what no user has signed, and what no policy of the user allows."""

import json
from pathlib import Path

import attrs
import pytest
from structlog.testing import capture_logs

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.spec import SpecError, load
from emulator.spec.warnings.harmful_settings import check
from emulator.testing import execute
from nodes.protocol.bodies_auth import UserInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_auth import UserHeader
from support.auth_cluster import BILLING, ROOT, SHOP, ask, scenario
from support.every_case import each_case


def executed(item):
    """The trace of half a minute."""

    async def script(stage):
        await stage.for_ms(30_000)

    return execute(item, script)


def consumed(trace):
    return len(trace.select("messages", event="consumed"))


def remarks(trace, code):
    rows = trace.select(
        "rpc", event="delivered", kind="response", code=int(code), status=int(ResponseCode.NO_PERMISSION)
    )
    return {row.detail for row in rows}


def all_refused(trace):
    return trace.select("rpc", kind="response", status=int(ResponseCode.NO_PERMISSION))


def test_users_whose_policies_allow_it_send_and_consume():
    item = scenario(consumer=ROOT)
    trace = executed(item)
    assert consumed(trace) > 200
    assert all_refused(trace) == []
    assert check(item) == ()


@pytest.mark.trap("A11")
def test_a_user_that_may_only_subscribe_is_refused_the_end_of_an_empty_queue():
    # Subscribers that were migrated have the action Sub, and GET_MAX_OFFSET requires Get: the round fails, the next
    # one finds messages and begins with the first.
    trace = executed(scenario())
    assert {row["code"] for row in all_refused(trace)} == {RequestCode.GET_MAX_OFFSET}
    assert consumed(trace) > 200


@pytest.mark.parametrize(
    ("producer", "why"),
    [
        ("", "username cannot be null."),
        (SHOP.replace("secret-of-shop", "another-secret"), "check signature failed."),
        (SHOP.replace("rocketmq-shop", "rocketmq-nobody"), "User:rocketmq-nobody is not found."),
        (
            BILLING,
            "User:rocketmq-billing has no permission to access Topic:orders from 127.1.100.1, no matched policies.",
        ),
    ],
    ids=["no key", "wrong secret", "no user", "no policy"],
)
def test_a_producer_without_the_right_key_is_refused_and_named_before_the_run(producer, why):
    item = scenario(producer=producer)
    trace = executed(item)
    assert remarks(trace, RequestCode.SEND_MESSAGE_V2) == {why}
    assert consumed(trace) == 0
    assert [element.line() for element in check(item)] == [
        f"clients-refused-by-accounts: producer-1: broker-a with ACL 2.0 refuse their SEND_MESSAGE_V2: {why}"
    ]


def test_a_consumer_without_a_key_is_refused_its_heartbeats_and_pulls():
    trace = executed(scenario(consumer=""))
    assert remarks(trace, RequestCode.HEART_BEAT) == {"username cannot be null."}
    assert consumed(trace) == 0


def test_authentication_alone_lets_every_user_send():
    item = scenario(producer=BILLING, authorization="false")
    assert consumed(executed(item)) > 200


def test_brokers_of_a_group_sign_what_they_send_each_other():
    item = scenario(consumer=ROOT, place="replicas = 2")
    trace = executed(item)
    copied = trace.select("rpc", event="delivered", kind="response", code=int(RequestCode.GET_TIMER_CHECK_POINT))
    assert {row["status"] for row in copied} == {ResponseCode.SUCCESS}
    assert all_refused(trace) == []
    assert check_names(item) == []


def test_without_inner_credentials_a_slave_is_refused_and_named_before_the_run():
    item = scenario(consumer=ROOT, place="replicas = 2", inner="")
    assert remarks(executed(item), RequestCode.GET_TIMER_CHECK_POINT) == {"username cannot be null."}
    assert [name for name in check_names(item) if name == "brokers-refused-by-accounts"]


def check_names(item):
    return [element.name for element in check(item) if "refused" in element.name]


@pytest.mark.trap("A9")
def test_slaves_have_the_users_of_their_own_options_and_copy_no_others():
    changed, found = UserInfo("alice", "secret-of-alice"), []

    async def script(stage):
        await stage.for_ms(5_000)
        caller = await stage.probe()
        await ask(caller, RequestCode.AUTH_CREATE_USER, UserHeader("alice"), changed)
        await stage.for_ms(25_000)
        for node in ("broker-a", "broker-a-s1"):
            answer = await ask(caller, RequestCode.AUTH_LIST_USER, node=node)
            found.append([user["username"] for user in json.loads(answer.body)])

    execute(scenario(consumer=ROOT, place="replicas = 2"), script)
    own = ["rocketmq-billing", "rocketmq-inner", "rocketmq-root", "rocketmq-shop"]
    assert found == [["alice", *own], own]


@each_case(
    ("given", "problem"),
    [
        (
            {"broker": 'authenticationProvider = "org.example.None"'},
            "broker[0].options.authenticationProvider: expected org.apache.rocketmq.auth.authentication.provider.",
        ),
        (
            {"broker": 'authorizationStrategy = "Stateful"'},
            "broker[0].options.authorizationStrategy: expected org.apache.rocketmq.auth.authorization.strategy.",
        ),
        ({"broker": "statefulAuthorizationCacheExpiredSecond = 0"}, "expected a whole number of seconds >= 1, not 0"),
        ({"inner": 'innerClientAuthenticationCredentials = "{}"\n'}, "expected the access_key of an [[account]]"),
        ({"users": ""}, "broker[0].options.authenticationMetadataProvider: missing; expected"),
    ],
)
def test_an_option_with_which_rocketmq_would_not_start_is_one_line(given, problem):
    with pytest.raises(SpecError) as caught:
        scenario(**given)
    assert problem in str(caught.value)


def test_options_without_effect_are_named():
    inside = check(scenario(place='container = "pod"'))
    assert [element.name for element in inside if "effect" in element.name] == ["auth-without-effect"]
    old = check(scenario(broker="aclEnable = true"))
    assert [element.name for element in old if "effect" in element.name] == ["acl-enable-without-effect"]


def test_a_broker_writes_a_line_for_what_it_refuses_without_secrets():
    with capture_logs() as lines:
        executed(scenario(producer=BILLING))
    denied = [line for line in lines if line["event"] == "request denied"]
    assert {(line["check"], line["user"], line["code"]) for line in denied} >= {
        ("authorization", "rocketmq-billing", RequestCode.SEND_MESSAGE_V2)
    }
    assert "secret-of" not in repr(lines)


def test_a_controller_and_nameservers_answer_brokers_with_users():
    text = "replicas = 2\n"
    item = scenario(
        consumer=ROOT, place=text, broker="enableControllerMode = true", controllers="[controller]\ncount = 1"
    )
    trace = executed(item)
    assert all_refused(trace) == []
    assert consumed(trace) > 100


EXAMPLE = Path(__file__).parents[2] / "examples" / "users_and_policies.toml"


def test_the_example_sends_while_the_user_has_a_policy_that_decides_for_it():
    item = load(EXAMPLE)

    async def script(stage):
        await stage.for_ms(145_000)

    trace = execute(item, script)
    sent = dict.fromkeys(row["t_ns"] // 30_000_000_000 for row in trace.select("messages", event="stored"))
    assert list(sent) == [2, 4]
    no_user, no_policy, denied = (
        "User:shop-user is not found.",
        "User:shop-user has no permission to access Topic:orders from 127.1.100.1, no matched policies.",
        "User:shop-user has no permission to access Topic:orders from 127.1.100.1, the decision is deny.",
    )
    refusals = trace.select("rpc", kind="response", event="delivered", code=int(RequestCode.SEND_MESSAGE_V2))
    at_s = {row["detail"]: row["t_ns"] // 30_000_000_000 for row in refusals if row["detail"]}
    assert at_s == {no_user: 0, no_policy: 1, denied: 3}


def with_acts(item, *acts, start_after_ms=15_000):
    """The producer starts after acts: (at_ms, line)."""
    timed = tuple(TimedAct(f"act-{number}", act_of(line), at_ms) for number, (at_ms, line) in enumerate(acts))
    producers = tuple(attrs.evolve(producer, start_after_ms=start_after_ms) for producer in item.producers)
    return attrs.evolve(item, acts=timed, producers=producers)


NOBODY = 'accessKey = "rocketmq-late", secretKey = "secret-of-shop"'
CREATED = (5_000, "create-user rocketmq-late account rocketmq-shop")
ALLOWED = (6_000, "create-acl rocketmq-late Topic:orders Pub Allow")


@each_case(
    ("acts", "why"),
    [
        ((CREATED, ALLOWED), ""),
        ((CREATED,), "has no permission to access Topic:orders"),
        ((CREATED, ALLOWED, (7_000, "delete-user rocketmq-late")), "is not found"),
        (((20_000, CREATED[1]), ALLOWED), "is not found"),
        ((CREATED, ALLOWED, (7_000, "delete-acl rocketmq-late resource Topic:orders")), "has no permission"),
    ],
)
def test_a_producer_is_checked_with_the_users_and_policies_that_acts_have_made_before_it_starts(acts, why):
    warnings = [item.line() for item in check(with_acts(scenario(producer=NOBODY, consumer=ROOT), *acts))]

    assert len(warnings) == bool(why)
    assert all(why in line for line in warnings)


def test_traces_of_messages_are_checked_as_brokers_check_them():
    item = scenario(producer=f"{SHOP}, enableTrace = true", consumer=ROOT, broker="traceTopicEnable = true\n")

    assert remarks(executed(item), RequestCode.SEND_MESSAGE_V2) == {TRACE_DENIED}
    assert [element.line().partition(": User:")[2] for element in check(item)] == [TRACE_DENIED.removeprefix("User:")]


def test_what_the_inner_producer_sends_back_is_checked_as_brokers_check_it():
    item = scenario(consumer=f"{BILLING}, consumeOrderly = true, maxReconsumeTimes = 1", broker="")
    (group,) = item.consumers
    item = attrs.evolve(item, consumers=(attrs.evolve(group, fail_times=1_000_000),))

    assert remarks(executed(item), RequestCode.SEND_MESSAGE_V2) == {INNER_DENIED}
    assert [element.line().partition(": User:")[2] for element in check(item)] == [INNER_DENIED.removeprefix("User:")]


TRACE_DENIED = (
    "User:rocketmq-shop has no permission to access Topic:RMQ_SYS_TRACE_TOPIC from 127.1.100.1, no matched policies."
)
INNER_DENIED = (
    "User:rocketmq-billing has no permission to access Group:CLIENT_INNER_PRODUCER from 127.1.10.1, no matched "
    "policies."
)
