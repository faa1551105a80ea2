"""A master dies and controllers elect another one: what a Java producer and a Java consumer notice, as they are."""

import time
from pathlib import Path

import pytest

import emulator
from guests.java_application import JavaApplication

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
ROUTE_MS, HEARTBEAT_MS = 1_000, 1_000


def test_a_java_producer_and_a_java_consumer_go_on_with_the_new_master(tmp_path, class_path):
    with (
        emulator.launch(HERE / "controllers.toml", mode="live", runs=tmp_path) as cluster,
        JavaApplication(class_path, "consume", cluster.namesrv_addr, "orders", HEARTBEAT_MS) as billing,
        JavaApplication(class_path, "produce", cluster.namesrv_addr, "orders", 20, ROUTE_MS) as shop,
    ):
        shop.wait_for("sent", count=40)
        billing.wait_for("consumed", count=40)
        cluster.run_for("8s")  # the slaves are in sync
        cluster.kill("broker-a")
        killed_s = time.monotonic()
        shop.wait_for("sent", since_s=killed_s + 0.5, count=20, within_s=15)
        billing.wait_for("consumed", since_s=killed_s + 0.5, count=20, within_s=45)
        back_s = time.monotonic()
        cluster.run_for("3s")
        assert shop.reported("failed", back_s) == []
