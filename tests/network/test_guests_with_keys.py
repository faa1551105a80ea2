"""Guests sign requests with the key of an account, over the bytes that they send, and brokers with `aclEnable` look."""

import json

import pytest

import emulator
from emulator.spec import loads
from nodes.protocol.acl_signature import signed
from nodes.protocol.codes import RequestCode, ResponseCode
from support.free_ports import free_ports
from support.remoting_program import Caller

SCENARIO = """
[scenario]
name = "keys"
run_for_s = 3600

[nameserver]
count = 1

[[broker]]
name = "broker-a"
options = { aclEnable = true, knowsPlainAcl = true }

[[topic]]
name = "orders"

[[account]]
access_key = "rocketmq-billing"
secret_key = "secret-of-billing"
topic_perms = ["orders=SUB"]
group_perms = ["billing=SUB"]
"""
REFUSED = "org.apache.rocketmq.acl.common.AclException: "


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    first = free_ports(5)
    runs = tmp_path_factory.mktemp("runs")
    with emulator.launch(loads(SCENARIO, "keys"), mode="live", runs=runs, listen=f"127.0.0.1:{first}") as live:
        live.until("agree", "within", "60s")
        caller = Caller("127.0.0.1", first + 3)
        caller.cluster = live
        yield caller
        caller.close()


def heartbeat(group):
    data = {"clientID": "c@1", "producerDataSet": [], "consumerDataSet": [
        {"groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
         "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": [{"topic": "orders", "subString": "*"}]}
    ]}  # fmt: skip
    return json.dumps(data, indent=1).encode()


@pytest.mark.parametrize(
    ("group", "secret", "code", "remark"),
    [
        ("billing", "secret-of-billing", ResponseCode.SUCCESS, None),
        (
            "mailing",
            "secret-of-billing",
            ResponseCode.SYSTEM_ERROR,
            f"{REFUSED}No default permission for group:mailing",
        ),
        (
            "billing",
            "another-secret",
            ResponseCode.SYSTEM_ERROR,
            f"{REFUSED}Check signature failed for accessKey=rocketmq-billing",
        ),
    ],
    ids=["right", "another group", "wrong secret"],
)
def test_a_heartbeat_is_signed_as_its_bytes_were_sent(broker, group, secret, code, remark):
    body = heartbeat(group)
    fields = signed({"version": "1"}, body, access_key="rocketmq-billing", secret_key=secret)
    answer = broker.ask_raw(RequestCode.HEART_BEAT, fields, body)
    assert (answer.code, answer.remark) == (code, remark)


def test_a_request_without_a_key_is_refused_also_one_that_no_broker_knows(broker):
    for code in (RequestCode.GET_MAX_OFFSET, 4_711):
        answer = broker.ask_raw(code, {"topic": "orders", "queueId": "0"}, None)
        assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, f"{REFUSED}No accessKey is configured")


def test_a_oneway_request_that_is_refused_has_no_answer(broker):
    broker.send_raw(RequestCode.UPDATE_CONSUMER_OFFSET, {}, None, oneway=True)
    assert broker.ask_raw(RequestCode.GET_MAX_OFFSET, {}, None).code == ResponseCode.SYSTEM_ERROR


def test_verbs_need_no_key(broker):
    broker.cluster.permission("brokers", "4", "topic", "orders")
    requested = signed({"topic": "orders"}, None, access_key="rocketmq-billing", secret_key="secret-of-billing")
    route = broker.ask_raw(RequestCode.GET_TOPIC_CONFIG, requested, None)
    assert json.loads(route.body)["perm"] == 4
