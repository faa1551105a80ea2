"""Requests 3001 to 3010 to a broker: each answers, and refuses bad input with RocketMQ's code and text."""

import json

import attrs
import pytest

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.testing import execute
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.bodies_auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_auth import (
    DeleteAclRequestHeader,
    ListAclsRequestHeader,
    ListUsersRequestHeader,
    SubjectHeader,
    UserHeader,
)
from nodes.protocol.registry import decode_body
from nodes.secret import Secret
from support.auth_cluster import ask, scenario

SHOP_KEYS = SessionCredentials("rocketmq-shop", Secret("secret-of-shop"))
ALICE = UserInfo("alice", "secret-of-alice")
MAY_READ = AclInfo("User:alice", (PolicyInfo(None, (PolicyEntryInfo("Topic:orders", ("Get",), None, "Allow"),)),))
SUCCESS, NO_PERMISSION = ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION


def answers(*requests, item=None):
    """The answers to requests that are sent one after the other, each as keyword arguments of `ask`."""
    found = []

    async def script(stage):
        await stage.for_ms(5_000)
        caller = await stage.probe()
        found.extend([await ask(caller, **sent) for sent in requests])

    trace = execute(item or scenario(), script)
    return found, trace


def request(code, header=None, body=None, **more):
    return {"code": code, "header": header, "body": body, **more}


def create(user, **more):
    return request(RequestCode.AUTH_CREATE_USER, UserHeader(user.username), user, **more)


def test_each_of_the_ten_requests_is_answered():
    alice = UserHeader("alice")
    found, _ = answers(
        create(ALICE),
        request(RequestCode.AUTH_UPDATE_USER, alice, UserInfo("alice", user_type="Super")),
        request(RequestCode.AUTH_GET_USER, alice),
        request(RequestCode.AUTH_LIST_USER, ListUsersRequestHeader("ali")),
        request(RequestCode.AUTH_CREATE_ACL, SubjectHeader("User:alice"), MAY_READ),
        request(RequestCode.AUTH_UPDATE_ACL, SubjectHeader("User:alice"), MAY_READ),
        request(RequestCode.AUTH_GET_ACL, SubjectHeader("User:alice")),
        request(RequestCode.AUTH_LIST_ACL, ListAclsRequestHeader("alice", "orders")),
        request(RequestCode.AUTH_DELETE_ACL, DeleteAclRequestHeader("User:alice")),
        request(RequestCode.AUTH_DELETE_USER, alice),
        request(RequestCode.AUTH_GET_USER, alice),
    )
    assert [answer.code for answer in found] == [SUCCESS] * 11
    assert decode_body(UserInfo, found[2].body) == UserInfo("alice", "secret-of-alice", "Super", "enable")
    assert [user["username"] for user in json.loads(found[3].body)] == ["alice"]
    assert decode_body(AclInfo, found[6].body).policies[0].policy_type == "Custom"
    assert [acl["subject"] for acl in json.loads(found[7].body)] == ["User:alice"]
    assert found[10].body is None


@pytest.mark.parametrize(
    ("sent", "code", "remark"),
    [
        (create(UserInfo("", "x")), ResponseCode.INVALID_PARAMETER, "The username is blank"),
        (create(UserInfo("alice", None)), NO_PERMISSION, "password can not be blank"),
        (create(ALICE, signs=None), NO_PERMISSION, "username cannot be null."),
        (
            create(ALICE, signs=SHOP_KEYS),
            NO_PERMISSION,
            (
                "User:rocketmq-shop has no permission to access Cluster:DefaultCluster from 127.1.200.1, "
                "no matched policies."
            ),
        ),
        (
            request(
                RequestCode.AUTH_CREATE_ACL, SubjectHeader("User:nobody"), AclInfo("User:nobody", MAY_READ.policies)
            ),
            NO_PERMISSION,
            "The subject of User:nobody is not exist.",
        ),
        (
            request(RequestCode.AUTH_CREATE_ACL, SubjectHeader("shop"), AclInfo("shop", MAY_READ.policies)),
            ResponseCode.SYSTEM_ERROR,
            "An system error occurred, please try again later.",
        ),
        (
            request(
                RequestCode.AUTH_CREATE_ACL, SubjectHeader("User:rocketmq-shop"), AclInfo("User:rocketmq-shop", ())
            ),
            ResponseCode.SYSTEM_ERROR,
            "org.apache.rocketmq.auth.authorization.exception.AuthorizationException: The body of acl is null",
        ),
        (
            request(RequestCode.AUTH_GET_USER, UserHeader(" ")),
            ResponseCode.INVALID_PARAMETER,
            "The username is blank",
        ),
    ],
)
def test_bad_input_is_refused_with_the_code_and_the_text_of_rocketmq(sent, code, remark):
    (answer,), _ = answers(sent)
    assert (answer.code, answer.remark) == (code, remark)


def test_only_a_super_user_makes_and_changes_super_users():
    rights = PolicyInfo(None, (PolicyEntryInfo("Cluster:*", ("All",), None, "Allow"),))
    found, _ = answers(
        request(
            RequestCode.AUTH_CREATE_ACL, SubjectHeader("User:rocketmq-shop"), AclInfo("User:rocketmq-shop", (rights,))
        ),
        create(ALICE, signs=SHOP_KEYS),
        create(UserInfo("carol", "x", "Super"), signs=SHOP_KEYS),
        request(
            RequestCode.AUTH_UPDATE_USER,
            UserHeader("rocketmq-root"),
            UserInfo("rocketmq-root", "x"),
            signs=SHOP_KEYS,
        ),
        request(RequestCode.AUTH_DELETE_USER, UserHeader("rocketmq-root"), signs=SHOP_KEYS),
    )
    assert [answer.code for answer in found] == [SUCCESS, SUCCESS, ResponseCode.SYSTEM_ERROR, *[NO_PERMISSION] * 2]
    assert found[2].remark == "The super user can only be create by super user"
    assert {answer.remark for answer in found[3:]} == {"The super user can only be update by super user"}


@pytest.mark.trap("A10")
def test_a_broker_of_a_container_has_no_users_and_refuses_nothing():
    item = scenario(place='container = "pod"', producer="")
    (answer,), trace = answers(create(ALICE), item=item)
    assert (answer.code, answer.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "An system error occurred, please try again later.",
    )
    assert trace.select("messages", event="stored")


def test_users_survive_a_restart_and_the_first_user_keeps_a_changed_password():
    changed = UserInfo("rocketmq-root", "another-secret")
    found = []

    async def script(stage):
        await stage.for_ms(5_000)
        caller = await stage.probe()
        await ask(caller, RequestCode.AUTH_UPDATE_USER, UserHeader("rocketmq-root"), changed)
        await stage.kill("broker-a")
        stage.start("broker-a")
        await stage.for_ms(5_000)
        for password in ("secret-of-root", "another-secret"):
            keys = SessionCredentials("rocketmq-root", Secret(password))
            found.append((await ask(caller, RequestCode.AUTH_LIST_USER, signs=keys)).code)

    execute(scenario(), script)
    assert found == [NO_PERMISSION, SUCCESS]


def test_acts_create_a_user_and_policies_and_no_row_of_the_trace_has_a_password():
    lines = (
        "create-user alice account rocketmq-shop on broker-a",
        "create-acl alice Topic:orders Pub Allow",
        "update-user alice status disable",
        "delete-acl alice resource Topic:orders",
        "delete-user alice",
    )
    acts = tuple(TimedAct(f"act-{at}", act_of(line), 5_000 + at * 1_000) for at, line in enumerate(lines))

    async def script(stage):
        await stage.for_ms(20_000)

    trace = execute(attrs.evolve(scenario(), acts=acts), script)
    assert [row["request"] for row in trace.rows["admin"]] == [
        f"AUTH_{verb}" for verb in ("CREATE_USER", "CREATE_ACL", "UPDATE_USER", "DELETE_ACL", "DELETE_USER")
    ]
    assert "secret-of" not in repr(trace.rows)
    assert trace.select("lifecycle", event="command_failed") == []


def test_acts_copy_users_with_their_passwords_and_policies_from_one_broker_to_another():
    lines = (
        "create-user alice account rocketmq-shop on broker-a",
        "create-user carol account rocketmq-shop on broker-a",
        "create-acl alice Topic:orders,Group:bill* Pub,Sub Allow from 10.0.0.0/8 on broker-a",
        "copy-user from broker-a users alice,nobody on broker-a-s1",
        "copy-acl from broker-a users alice on broker-a-s1",
        "update-user alice status disable on broker-a",
        "copy-user from broker-a on broker-a-s1",
        "copy-acl from broker-a on broker-a-s1",
    )
    acts = tuple(TimedAct(f"act-{at}", act_of(line), 5_000 + at * 1_000) for at, line in enumerate(lines))
    tables = []

    async def script(stage):
        await stage.at_ms(9_500)
        tables.append([user.username for user in stage.node("broker-a-s1").tables.auth.users.listed(None)])
        await stage.at_ms(20_000)
        for node in ("broker-a", "broker-a-s1"):
            auth = stage.node(node).tables.auth
            tables.append(([user.info() for user in auth.users.listed(None)], list(auth.acls.listed(None, None))))

    trace = execute(attrs.evolve(scenario(place="replicas = 2"), acts=acts), script)
    assert "alice" in tables[0]
    assert "carol" not in tables[0]
    assert tables[1] == tables[2]
    assert "secret-of" not in repr(trace.rows)
    assert trace.select("lifecycle", event="command_failed") == []


def test_options_of_acl_are_printed_where_they_are_set_and_a_change_waits_for_the_next_start():
    changed = request(RequestCode.UPDATE_BROKER_CONFIG, None, b"authenticationEnabled=false\nmaxMessageSize=9\n")
    found, _ = answers(
        changed,
        request(RequestCode.GET_BROKER_CONFIG),
        create(ALICE, signs=None),
    )
    printed = dict(line.split("=", 1) for line in found[1].body.decode().splitlines())
    assert (printed["authorizationEnabled"], printed["maxMessageSize"]) == ("true", "9")
    assert "authorizationStrategy" not in printed
    assert found[2].code == NO_PERMISSION


@pytest.mark.parametrize(
    "option",
    [
        b'initAuthenticationUser={"username":"root","password":"canary-1"}',
        b'innerClientAuthenticationCredentials={"accessKey":"root","secretKey":"canary-1"}',
    ],
)
def test_a_user_in_an_option_that_is_changed_is_in_no_row_of_the_trace(option):
    (answer,), trace = answers(request(RequestCode.UPDATE_BROKER_CONFIG, None, option))
    assert answer.code == SUCCESS
    assert len(trace.rows["admin"]) == 1
    assert "canary" not in repr(trace.rows)
