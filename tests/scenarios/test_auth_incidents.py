"""What users of ACL 2.0 reported of 5.3.3, by the number of the issue: as it happens here, and not with the remedy."""

import pytest

from emulator.testing import execute
from nodes.config.auth import STATEFUL_AUTHENTICATION, STATEFUL_AUTHORIZATION
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.bodies_auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers import GetMaxOffsetRequestHeader, GetMinOffsetRequestHeader
from nodes.protocol.headers_auth import SubjectHeader, UserHeader
from nodes.protocol.headers_pop import PopMessageRequestHeader
from nodes.secret import Secret
from support.auth_cluster import ROOT, SIGNS_AS_ROOT, ask, scenario

ALICE = SessionCredentials("alice", Secret("secret-of-alice"))


def with_a_caller(item, questions):
    """What a coroutine returned that asks the cluster after some seconds."""
    found = []

    async def script(stage):
        await stage.for_ms(5_000)
        found.append(await questions(await stage.probe()))

    execute(item, script)
    return found[0]


async def create_alice(caller):
    user = UserInfo("alice", "secret-of-alice")
    return await ask(caller, RequestCode.AUTH_CREATE_USER, UserHeader("alice"), user)


async def give_alice(caller, *entries):
    acl = AclInfo("User:alice", (PolicyInfo(None, tuple(entries)),))
    return await ask(caller, RequestCode.AUTH_CREATE_ACL, SubjectHeader("User:alice"), acl)


def entry(resource, decision, action="Get"):
    return PolicyEntryInfo(resource, (action,), None, decision)


async def read_orders(caller, *, signs=ALICE):
    header = GetMinOffsetRequestHeader("orders", 0)
    return (await ask(caller, RequestCode.GET_MIN_OFFSET, header, signs=signs)).code


@pytest.mark.trap("A7")
@pytest.mark.parametrize(
    ("authorization", "code"), [("true", ResponseCode.POLLING_TIMEOUT), ("false", ResponseCode.SUCCESS)]
)
def test_9518_a_pop_that_a_proxy_sends_without_its_time_is_too_late_where_permissions_are_checked(authorization, code):
    # The maintainers' remedy: authorization at the proxy alone.
    async def questions(caller):
        header = PopMessageRequestHeader("billing", "orders", -1, 8, 60_000, 1_000, 0, 0)
        return (await ask(caller, RequestCode.POP_MESSAGE, header)).code

    assert with_a_caller(scenario(consumer=ROOT, authorization=authorization), questions) == code


def test_9518_consumers_that_send_the_time_pop_where_permissions_are_checked():
    async def script(stage):
        await stage.for_ms(30_000)

    trace = execute(scenario(consumer=ROOT, mode="pop"), script)
    assert len(trace.select("messages", event="consumed")) > 200
    assert trace.select("rpc", kind="response", status=int(ResponseCode.POLLING_TIMEOUT)) == []


ALLOWS_ORDERS, DENIES_ORD = entry("Topic:orders", "Allow"), entry("Topic:ord*", "Deny")


@pytest.mark.trap("A1")
@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ((entry("Topic:o*", "Allow"), DENIES_ORD), ResponseCode.SUCCESS),
        ((DENIES_ORD, entry("Topic:o*", "Allow")), ResponseCode.SUCCESS),
        ((ALLOWS_ORDERS, DENIES_ORD), ResponseCode.NO_PERMISSION),
        ((DENIES_ORD, ALLOWS_ORDERS), ResponseCode.SUCCESS),
    ],
    ids=["shorter first", "shorter last", "literal first", "literal last"],
)
def test_9539_the_shorter_prefix_decides_and_of_a_literal_name_and_a_prefix_the_last_one(entries, code):
    async def questions(caller):
        await create_alice(caller)
        await give_alice(caller, *entries)
        return await read_orders(caller)

    assert with_a_caller(scenario(), questions) == code


def test_9539_one_entry_for_a_topic_decides_alone():
    async def questions(caller):
        await create_alice(caller)
        await give_alice(caller, entry("Topic:orders", "Allow"))
        return await read_orders(caller)

    assert with_a_caller(scenario(), questions) == ResponseCode.SUCCESS


@pytest.mark.trap("A2")
def test_9784_of_two_entries_of_one_weight_the_one_that_allows_decides():
    async def questions(caller):
        await create_alice(caller)
        await give_alice(caller, entry("Topic:*", "Deny"), entry("Topic:orders", "Allow"))
        return await read_orders(caller)

    assert with_a_caller(scenario(), questions) == ResponseCode.SUCCESS


@pytest.mark.trap("A3")
@pytest.mark.parametrize(
    ("authentication", "code"), [("false", ResponseCode.SUCCESS), ("true", ResponseCode.NO_PERMISSION)]
)
def test_9763_a_user_that_is_disabled_goes_on_where_it_is_not_authenticated(authentication, code):
    async def questions(caller):
        await create_alice(caller)
        await give_alice(caller, entry("Topic:orders", "Allow"))
        await ask(caller, RequestCode.AUTH_UPDATE_USER, UserHeader("alice"), UserInfo("alice", user_status="disable"))
        return await read_orders(caller)

    assert with_a_caller(scenario(authentication=authentication), questions) == code


@pytest.mark.trap("A4")
@pytest.mark.parametrize(
    ("authentication", "code"), [("false", ResponseCode.SUCCESS), ("true", ResponseCode.NO_PERMISSION)]
)
def test_11178_without_authentication_the_name_of_a_super_user_is_enough(authentication, code):
    liar = SessionCredentials("rocketmq-root", Secret("no-secret-of-root"))

    async def questions(caller):
        return await read_orders(caller, signs=liar)

    assert with_a_caller(scenario(authentication=authentication), questions) == code


@pytest.mark.trap("A8")
@pytest.mark.parametrize(("acls", "code"), [("", ResponseCode.SYSTEM_ERROR), (None, ResponseCode.SUCCESS)])
def test_9561_without_a_provider_of_policies_a_user_is_deleted_and_the_answer_is_an_error(acls, code):
    async def questions(caller):
        await create_alice(caller)
        deleted = await ask(caller, RequestCode.AUTH_DELETE_USER, UserHeader("alice"))
        left = await ask(caller, RequestCode.AUTH_GET_USER, UserHeader("alice"))
        return deleted.code, left.body

    item = scenario(authorization="false") if acls is None else scenario(authorization="false", acls=acls)
    assert with_a_caller(item, questions) == (code, None)


@pytest.mark.trap("A6")
@pytest.mark.parametrize(
    ("strategy", "code"),
    [(STATEFUL_AUTHORIZATION, ResponseCode.SUCCESS), ("", ResponseCode.NO_PERMISSION)],
    ids=["stateful", "stateless"],
)
def test_11182_what_a_white_list_lets_pass_lets_others_pass_over_the_connection(strategy, code):
    broker = f'authorizationWhitelist = "31"\nauthorizationStrategy = "{strategy}"'

    async def questions(caller):
        await create_alice(caller)
        assert await read_orders(caller) == ResponseCode.SUCCESS
        return (await ask(caller, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader("orders", 0), signs=ALICE)).code

    assert with_a_caller(scenario(broker=broker), questions) == code


@pytest.mark.trap("A5")
@pytest.mark.parametrize(
    ("strategy", "code"),
    [(STATEFUL_AUTHENTICATION, ResponseCode.SUCCESS), ("", ResponseCode.NO_PERMISSION)],
    ids=["stateful", "stateless"],
)
def test_a_wrong_signature_passes_after_a_right_one_over_the_connection(strategy, code):
    async def questions(caller):
        await read_orders(caller, signs=SIGNS_AS_ROOT)
        return await read_orders(caller, signs=SessionCredentials("rocketmq-root", Secret("no-secret-of-root")))

    assert with_a_caller(scenario(broker=f'authenticationStrategy = "{strategy}"'), questions) == code


@pytest.mark.trap("A12")
def test_a_user_without_policies_changes_options_and_reads_no_topic():
    async def questions(caller):
        await create_alice(caller)
        changed = await ask(caller, RequestCode.UPDATE_BROKER_CONFIG, None, b"maxMessageSize=9", signs=ALICE)
        return changed.code, await read_orders(caller)

    assert with_a_caller(scenario(), questions) == (ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION)
