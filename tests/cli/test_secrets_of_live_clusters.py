"""No secret that an operator types, or that a guest sends, is written or printed by a live cluster."""

import json

import pyarrow.parquet as pq
import pytest

from nodes.protocol.acl_signature import signed
from support.live_cluster import BROKER_PORT, NAMESERVER_PORT, LiveCluster
from support.remoting_program import Caller
from support.rmqemu_process import rmqemu

CANARY = "canary-5ea1"
SCENARIO = f"""
[scenario]
name = "live"
run_for_s = 600
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = {{ aclEnable = true, knowsPlainAcl = true }}
[[topic]]
name = "orders"
[[producer]]
name = "till"
group = "shop"
topic = "orders"
options = {{ accessKey = "rocketmq-shop", secretKey = "{CANARY}" }}
[[account]]
access_key = "rocketmq-shop"
secret_key = "{CANARY}"
admin = true
"""
VERBS = (
    f"restart till with {{secretKey = {CANARY}}}",
    f"restart till with {{secretKey {CANARY}}}",
    f"restart broker-a with {{secretKey = {CANARY}}}",
    f"restart till with {{secretKey = '{CANARY}}}",
    f"kill till with {{secretKey = {CANARY}}}",
    f"at +1s restart till with {{secretKey = {CANARY}}}",
    "status",
    "nodes",
    "faults",
    "views",
    "save live.toml",
)
CREATE_USER, CREATE_ACL, UPDATE_ACL_CONFIG, UPDATE_BROKER, UPDATE_NAMESERVER, STRANGE = 3001, 3006, 50, 25, 318, 4711
USER = json.dumps({"username": "shop", "password": CANARY}).encode()
PROPERTIES = f"secretKey={CANARY}\n".encode()
FIELDS = {"accessKey": "rocketmq-shop", "secretKey": CANARY, "a": "rocketmq-shop", "b": CANARY}
REQUESTS = [
    (CREATE_USER, {"username": "shop"}, USER),
    (CREATE_ACL, {"subject": "User:shop"}, USER),
    (UPDATE_ACL_CONFIG, FIELDS, b""),
    (UPDATE_BROKER, {}, PROPERTIES),
    (UPDATE_BROKER, {}, f"secretKey={CANARY}\naclEnable".encode()),
    (UPDATE_NAMESERVER, {}, PROPERTIES),
    (STRANGE, FIELDS, PROPERTIES),
    (UPDATE_BROKER, {"SecurityToken": CANARY}, PROPERTIES),
]


@pytest.fixture
def cluster(tmp_path):
    live = LiveCluster(tmp_path, SCENARIO)
    yield live
    if live.process.poll() is None:
        live.end()


def ask(ip, port):
    """Send all requests, signed and not."""
    caller = Caller(ip, port)
    for code, fields, body in REQUESTS:
        for given in (fields, signed(fields, body, access_key="rocketmq-shop", secret_key=CANARY)):
            try:
                caller.ask_raw(code, given, body)
            except (OSError, AssertionError, TimeoutError):
                caller = Caller(ip, port)
    caller.close()


def content_of(path):
    return json.dumps(pq.read_table(path).to_pylist()).encode() if path.suffix == ".parquet" else path.read_bytes()


def test_no_secret_of_an_operator_or_a_guest_is_written_or_printed(cluster, tmp_path):
    lines = [rmqemu("ctl", *line.split(), cwd=tmp_path) for line in VERBS]
    ask(cluster.broker, BROKER_PORT)
    ask(cluster.nameserver, NAMESERVER_PORT)
    lines.append(rmqemu("ctl", "nodes", cwd=tmp_path))
    cluster.process.send_signal(2)
    printed = list(cluster.process.communicate(timeout=60))
    after = (
        ("analyze", "--all", cluster.run),
        ("why", cluster.run),
        ("report", cluster.run),
        ("land", "runs", "--to", "d"),
    )
    lines += [rmqemu(*words, cwd=tmp_path) for words in after]
    (tmp_path / "cluster.toml").unlink()

    assert any("restarted till" in item.stdout for item in lines)
    printed += [text for item in lines for text in (item.stdout, item.stderr)]
    assert [line for text in printed for line in text.splitlines() if CANARY in line] == []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [str(path) for path in files if CANARY.encode() in content_of(path)] == []
