"""RocketMQ's own Java client signs with `AclClientRPCHook`; a broker with ACL 2.0 lets the right key pass."""

from pathlib import Path

import pytest

import emulator
from emulator.spec import loads
from guests.java_application import JavaApplication

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_ROUTE_MS = 1_000
_HEARTBEAT_MS = 1_000
ACCOUNTS = """
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
MIGRATES = "\n[broker.options]\nmigrateAuthFromV1Enabled = true\n"
SHOP, BILLING = "rocketmq-shop:secret-of-shop", "rocketmq-billing:secret-of-billing"
_MAY_NOT = "User:rocketmq-billing has no permission to access Topic:orders from "


@pytest.fixture
def namesrv_addr(tmp_path):
    scenario = (HERE / "users.toml").read_text().replace("\n[broker.options]\n", MIGRATES) + ACCOUNTS
    with emulator.launch(loads(scenario, "users"), mode="live", runs=tmp_path) as cluster:
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
        ("rocketmq-shop:another-secret", "check signature failed."),
        ("rocketmq-nobody:secret-of-shop", "User:rocketmq-nobody is not found."),
        (BILLING, _MAY_NOT),
        ("", "username cannot be null."),
    ],
    ids=["wrong secret", "no user", "no permission", "no key"],
)
def test_a_producer_with_another_key_is_reported_why_it_is_refused(namesrv_addr, class_path, key, why):
    with JavaApplication(class_path, "produce", namesrv_addr, "orders", 20, _ROUTE_MS, key=key) as shop:
        (because,) = shop.wait_for("because")
        assert because.startswith(f"because 16 {why}")
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
