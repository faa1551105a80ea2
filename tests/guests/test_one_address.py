"""`--listen`: RocketMQ's own Java client finds all brokers at one address of this machine."""

import socket
import subprocess
from pathlib import Path

import pytest

import emulator
from emulator.spec import loads
from guests.java_application import JavaApplication

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_PORT = 9_876
_ROUTE_MS = 1_000
_HEARTBEAT_MS = 5_000
_JVM_WITHIN_S = 300
SCENARIO = """
[scenario]
name = "one-address"
run_for_s = 3600

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[broker]]
name = "broker-c"

[[topic]]
name = "orders"
queues = 4
"""
TWO_NAMESERVERS = loads(SCENARIO, "one address")
BROKERS = ("broker-a", "broker-b", "broker-c")


def other_address() -> str:
    """An address of this machine that is not loopback; skips where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address next to loopback")
        return str(probe.getsockname()[0])


@pytest.mark.parametrize("listen", ["127.0.0.1", "0.0.0.0"])
def test_a_producer_and_a_consumer_reach_every_broker_also_after_its_restart(tmp_path, class_path, listen):
    namesrv_addr = f"{listen if listen != '0.0.0.0' else other_address()}:{_PORT}"
    with (
        emulator.launch(TWO_NAMESERVERS, mode="live", runs=tmp_path, listen=f"{listen}:{_PORT}") as cluster,
        JavaApplication(class_path, "consume", namesrv_addr, "orders", _HEARTBEAT_MS) as billing,
        JavaApplication(class_path, "produce", namesrv_addr, "orders", 20, _ROUTE_MS) as shop,
    ):
        for broker in BROKERS:
            shop.wait_for(f"sent {broker} SEND_OK", count=5)
            billing.wait_for(f"consumed {broker} ")
        cluster.kill("broker-b")
        cluster.heal("all")
        since_s = shop.lines[-1][0]
        shop.wait_for("sent broker-b SEND_OK", since_s=since_s)
        billing.wait_for("consumed broker-b ", since_s=since_s)


def test_mqadmin_sees_the_addresses_that_it_can_dial(tmp_path, class_path):
    lines = [f"clusterList -n 127.0.0.1:{_PORT}", f"topicRoute -n 127.0.0.1:{_PORT} -t orders"]
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
    with emulator.launch(TWO_NAMESERVERS, mode="live", runs=tmp_path, listen=f"127.0.0.1:{_PORT}") as cluster:
        cluster.until("agree", "within", "60s")
        run = ["java", f"-Drocketmq.home.dir={tmp_path}", "-cp", class_path]
        run += [str(HERE / "java" / "Mqadmin.java"), str(tmp_path / "lines")]
        done = subprocess.run(run, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=_JVM_WITHIN_S)
    output = done.stdout
    for broker, port in zip(BROKERS, (9_880, 9_884, 9_888), strict=True):
        assert f"127.0.0.1:{port}" in output, (broker, output + done.stderr)
    assert "127.1." not in output, output
