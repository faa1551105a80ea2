"""A topic that may only be read, as applications with RocketMQ's own clients see it."""

import time
from pathlib import Path

import pytest

import emulator
from guests.java_application import JavaApplication

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.guests
ROUTE_MS = 1_000


def test_a_java_producer_fails_from_its_next_route_on_and_sends_at_once_when_the_permission_is_back(
    tmp_path, class_path
):
    with (
        emulator.launch(ROOT / "examples" / "guests.toml", mode="live", runs=tmp_path) as cluster,
        JavaApplication(class_path, "produce", cluster.namesrv_addr, "orders", 20, ROUTE_MS) as shop,
    ):
        shop.wait_for("sent", count=40)
        cluster.permission("brokers", 4, "topic", "orders")
        shop.wait_for("failed", count=5, within_s=10)
        healed_s = time.monotonic()
        assert shop.reported("sent", healed_s) == []
        cluster.heal("all")
        shop.wait_for("sent", since_s=healed_s, within_s=0.5)
        # No broker refuses a send for what the topic may not; it is the client that has nowhere to send to.
        assert dict.fromkeys(shop.reported("failed")) == {"failed 10005 No route info of this topic: orders": None}
