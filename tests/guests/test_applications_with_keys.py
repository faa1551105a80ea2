"""RocketMQ's own Java client signs with `AclClientRPCHook`; a broker with `aclEnable` lets the right key pass."""

from pathlib import Path

import pytest

import emulator
from emulator.spec import loads
from guests.java_application import JavaApplication

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_ROUTE_MS = 1_000
_HEARTBEAT_MS = 1_000
SCENARIO = """
[scenario]
name = "accounts"
run_for_s = 3600

[[broker]]
name = "broker-a"
options = { aclEnable = true }

[[topic]]
name = "orders"
queues = 2

[[account]]
access_key = "rocketmq-shop"
secret_key = "secret-of-shop"
topic_perms = ["orders=PUB"]

[[account]]
access_key = "rocketmq-billing"
secret_key = "secret-of-billing"
topic_perms = ["orders=SUB"]
group_perms = ["billing=SUB"]
"""
SHOP, BILLING = "rocketmq-shop:secret-of-shop", "rocketmq-billing:secret-of-billing"
_REFUSED = "org.apache.rocketmq.acl.common.AclException: "


@pytest.fixture
def namesrv_addr(tmp_path):
    with emulator.launch(loads(SCENARIO, "accounts"), mode="live", runs=tmp_path) as cluster:
        cluster.until("agree", "within", "60s")
        yield cluster.namesrv_addr


def test_the_right_keys_send_and_consume(namesrv_addr, class_path):
    with (
        JavaApplication(class_path, "consume", namesrv_addr, "orders", _HEARTBEAT_MS, key=BILLING) as billing,
        JavaApplication(class_path, "produce", namesrv_addr, "orders", 20, _ROUTE_MS, key=SHOP) as shop,
    ):
        shop.wait_for("sent broker-a SEND_OK", count=20)
        billing.wait_for("consumed broker-a ", count=20)
        assert shop.reported("failed") == []


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("rocketmq-shop:another-secret", "Check signature failed for accessKey=rocketmq-shop"),
        ("rocketmq-nobody:secret-of-shop", "No acl config for rocketmq-nobody"),
        (BILLING, "No permission for topic:orders"),
        ("", "No accessKey is configured"),
    ],
    ids=["wrong secret", "no account", "no permission", "no key"],
)
def test_a_producer_with_another_key_is_reported_why_it_is_refused(namesrv_addr, class_path, key, why):
    with JavaApplication(class_path, "produce", namesrv_addr, "orders", 20, _ROUTE_MS, key=key) as shop:
        assert shop.wait_for("because") == [f"because 1 {_REFUSED}{why}"]
        assert shop.reported("sent") == []


def test_a_consumer_with_a_wrong_secret_gets_nothing(namesrv_addr, class_path):
    wrong = "rocketmq-billing:another-secret"
    with (
        JavaApplication(class_path, "consume", namesrv_addr, "orders", _HEARTBEAT_MS, key=wrong) as billing,
        JavaApplication(class_path, "produce", namesrv_addr, "orders", 20, _ROUTE_MS, key=SHOP) as shop,
    ):
        billing.wait_for("started")
        shop.wait_for("sent broker-a SEND_OK", count=60)
        assert billing.reported("consumed") == []
