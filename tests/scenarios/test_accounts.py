"""ACL 1.0 in a whole cluster: brokers that have it serve what an account has signed, and nothing else."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.warnings.harmful_settings import check
from emulator.testing import execute
from nodes.protocol.codes import RequestCode, ResponseCode
from support.every_case import each_case

SCENARIO = """
[scenario]
name = "accounts"
run_for_s = 60
{head}

[nameserver]
count = 1

[[broker]]
name = "broker-a"
options = {{ aclEnable = true, knowsPlainAcl = true }}

[[topic]]
name = "orders"

[[consumer]]
group = "billing"
topics = ["orders"]
options = {{ {consumer} }}

[[producer]]
group = "shop"
topic = "orders"
options = {{ {producer} }}

[[account]]
access_key = "rocketmq-shop"
secret_key = "secret-of-shop"
topic_perms = ["orders=PUB"]

[[account]]
access_key = "rocketmq-billing"
secret_key = "secret-of-billing"
default_topic_perm = "SUB"
group_perms = ["billing=SUB"]
"""
SHOP = 'accessKey = "rocketmq-shop", secretKey = "secret-of-shop"'
BILLING = 'accessKey = "rocketmq-billing", secretKey = "secret-of-billing"'


def scenario(consumer=BILLING, producer=SHOP, head=""):
    return loads(SCENARIO.format(consumer=consumer, producer=producer, head=head), "accounts")


def executed(item):
    """The trace of half a minute."""

    async def script(stage):
        await stage.for_ms(30_000)

    return execute(item, script)


def consumed(trace):
    return len(trace.select("messages", event="consumed"))


def remarks(trace, code):
    rows = trace.select(
        "rpc", event="delivered", kind="response", code=int(code), status=int(ResponseCode.SYSTEM_ERROR)
    )
    return {row.detail for row in rows}


def test_keys_of_accounts_let_clients_in():
    trace = executed(scenario())
    assert consumed(trace) > 200
    assert trace.select("rpc", status=int(ResponseCode.SYSTEM_ERROR)) == []
    assert check(scenario()) == ()


EXCEPTION = "org.apache.rocketmq.acl.common.AclException: "


@pytest.mark.parametrize(
    ("producer", "why"),
    [
        ("", "No accessKey is configured"),
        (SHOP.replace("secret-of-shop", "another-secret"), "Check signature failed for accessKey=rocketmq-shop"),
        (SHOP.replace("rocketmq-shop", "rocketmq-nobody"), "No acl config for rocketmq-nobody"),
        (BILLING, "No default permission for topic:orders"),
    ],
    ids=["no key", "wrong secret", "no account", "no permission"],
)
def test_a_producer_without_the_right_key_is_refused_and_checked_for_by_name(producer, why):
    item = scenario(producer=producer)
    trace = executed(item)
    assert trace.select("messages", event="stored") == []
    assert remarks(trace, RequestCode.SEND_MESSAGE_V2) == {EXCEPTION + why}
    (found,) = check(item)
    assert found.line() == (
        f"clients-refused-by-accounts: producer-1: broker-a with aclEnable refuse their SEND_MESSAGE_V2: {why}"
    )


def test_a_consumer_without_a_key_is_refused_its_heartbeats_and_pulls():
    item = scenario(consumer="")
    trace = executed(item)
    assert consumed(trace) == 0
    assert remarks(trace, RequestCode.HEART_BEAT) == {EXCEPTION + "No accessKey is configured"}
    assert [(element.name, element.where) for element in check(item)] == [("clients-refused-by-accounts", "consumer-1")]


def test_a_white_address_needs_no_key():
    item = scenario(consumer="", producer="", head='global_white_remote_addresses = ["127.1.10.*", "127.1.100.1"]')
    assert consumed(executed(item)) > 200
    assert check(item) == ()


def test_without_acl_enable_no_one_is_asked_for_a_key():
    load = loads(SCENARIO.format(consumer="", producer="", head="").replace("aclEnable = true, ", ""), "open")
    assert consumed(executed(load)) > 200
    assert check(load) == ()


def test_slaves_sign_nothing_so_the_white_list_must_have_them():
    text = SCENARIO.format(consumer=BILLING, producer=SHOP, head="").replace(
        'name = "broker-a"', 'name = "broker-a"\nreplicas = 2'
    )
    (first, second) = check(loads(text, "slaves"))
    assert (first.name, first.where) == ("brokers-refused-by-accounts", "broker-a-s1")
    assert first.consequence.endswith("add them to global_white_remote_addresses (127.1.2.2)")
    assert second.where == "broker-a"
    white = text.replace("run_for_s", 'global_white_remote_addresses = ["127.1.2.*"]\nrun_for_s')
    assert check(loads(white, "slaves")) == ()
    requested = RequestCode.GET_TIMER_CHECK_POINT
    assert remarks(executed(loads(text, "slaves")), requested) == {EXCEPTION + "No accessKey is configured"}
    assert remarks(executed(loads(white, "slaves")), requested) == set()


def test_an_account_is_written_as_it_was_read():
    item = scenario(head='global_white_remote_addresses = ["10.0.0.*"]')
    # A mark stands for each secret, so only what is written again is equal.
    assert to_dict(from_dict(to_dict(item))) == to_dict(item)
    assert to_dict(item)["account"][0]["topic_perms"] == ["orders=PUB"]


@each_case(
    ("old", "new", "problem"),
    [
        ("rocketmq-billing", "rocketmq-shop", "account[1].access_key: expected another one than that of account[0]"),
        ("orders=PUB", "orders", 'account[0].topic_perms: expected a list of texts such as "orders=PUB|SUB"'),
        ("secret-of-shop", "short", "account[0].secret_key: expected a text of 7 characters or more"),
        (', secretKey = "secret-of-shop"', "", "producer[0].options.secretKey: missing; expected both keys"),
    ],
)
def test_a_mistake_in_an_account_is_one_line(old, new, problem):
    with pytest.raises(SpecError) as caught:
        loads(SCENARIO.format(consumer=BILLING, producer=SHOP, head="").replace(old, new), "accounts")
    assert problem in str(caught.value)
