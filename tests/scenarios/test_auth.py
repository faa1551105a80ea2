"""ACL 2.0 in a whole cluster: brokers refuse what no user has signed, and what no policy of the user allows."""

import pytest

from emulator.spec.warnings.harmful_settings import check
from emulator.testing import execute
from nodes.protocol.codes import RequestCode, ResponseCode
from support.auth_cluster import BILLING, ROOT, SHOP, scenario


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
