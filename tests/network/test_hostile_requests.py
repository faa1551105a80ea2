"""Frames that once ended, froze or poisoned a live cluster, sent to `rmqemu up` next to a client that behaves well."""

import socket
import struct

import msgpack
import pytest

from emulator.guests.remoting.remoting_command import encode_remoting
from emulator.trace.run_directory import open_run
from emulator.trace.schema import RPC
from network.hostile_requests import HOSTILE, SEND_V2, heartbeat
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.rpc.codec import GREETING, Decoder, encode
from support.live_cluster import BROKER_PORT, INTERRUPTED, NAMESERVER_PORT, LiveCluster
from support.remoting_program import Caller, request
from support.run_rows import table_rows
from support.well_behaved import WellBehaved

CLUSTER = """
[scenario]
name = "hostile"
run_for_s = 600

[network]
delay_ms = 0

[guest_limits]
unfinished_bytes = 8_000_000

[nameserver]
count = 1

[[broker]]
name = "b"
options = { enablePropertyFilter = true }
"""


class Executed(LiveCluster):
    """The cluster while the tests of this file send to it, then what it left."""

    def __init__(self, folder):
        super().__init__(folder, CLUSTER)
        self.good = WellBehaved(self.broker, "good")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    cluster = Executed(tmp_path_factory.mktemp("hostile"))
    yield cluster
    if cluster.process.poll() is None:
        cluster.process.kill()


def test_requests_are_answered_as_the_real_broker_answers_them(executed):
    differences = []
    for hostile in HOSTILE:
        answer = Caller(executed.broker, BROKER_PORT).ask_raw(hostile.code, hostile.fields, hostile.body.encode())
        if answer.code != (hostile.real if hostile.ours is None else hostile.ours):
            differences.append((hostile.name, answer.code, answer.remark))
        assert len(answer.remark or "") <= 1_000
        executed.good.notices_nothing()
    assert differences == []


def framed(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


NO_FRAMES = {
    "a header of comments": framed(b"{/*:1,/*:1}"),
    "a header of very many comments": framed(b"{" + b"/*:1," * 200_000 + b"}"),
    "a header with numbers of 10^30": framed(b'{"code":%d,"opaque":1}' % 10**30),
    "a header that nests": framed(b'{"extFields":' * 5_000),
    "a header with a list as key": framed(b"{{a:[1]}:2}"),
    "a code of infinity": framed(b'{"code":1e999,"opaque":1}'),
    "fields that are a list": framed(b'{"code":11,"extFields":[]}'),
    "a header of 200 kB": encode_remoting(request(105, 1, fields={"topic": "T" * 200_000})),
    "msgpack: a header of 200 kB": GREETING + encode(Command(105, 0, 1, ext_fields={"topic": "T" * 200_000})),
    "msgpack: not a command": GREETING + b"\x00\x00\x00\x01\xc0",
    "msgpack: an opaque of 2^63": GREETING + encode(Command(11, 0, 2**63)),
    "msgpack: nested fields": GREETING + b"\x00\x00\x07\xd0" + b"\x91" * 2_000,
}


def test_what_is_no_frame_ends_its_connection_alone(executed):
    send_what_is_no_frame(executed)


def send_what_is_no_frame(executed):
    for name, frame in NO_FRAMES.items():
        with socket.create_connection((executed.broker, BROKER_PORT), 10) as wire:
            wire.sendall(frame)
            assert wire.recv(1) == b"", name
        executed.good.notices_nothing()


def test_a_message_that_cannot_be_written_harms_no_one_who_would_get_it(executed):
    """Its producer's address is no address; it comes from another guest, and the emulator relays it to a member."""
    member = Caller(executed.broker, BROKER_PORT)
    assert member.ask_raw(34, {}, heartbeat(1, "relayed").replace('"c1"', '"c9"').encode()).code == 0
    row = ["T", 0, 0, 0, 0, 0, b"x", {}, 0, 0, 0, "no address", "127.0.0.1:1"]
    fields = {"consumerGroup": "relayed", "clientId": "c9", "msgId": "x", "brokerName": "b"}
    requested = Command(309, 0, 1, ext_fields=fields, body=msgpack.packb({"messages": [row]}))
    with socket.create_connection((executed.broker, BROKER_PORT), 10) as wire:
        wire.sendall(GREETING + encode(requested))
        assert member.ask_raw(34, {}, heartbeat(1, "relayed").replace('"c1"', '"c9"').encode()).code == 0
    executed.good.notices_nothing()


def test_names_that_no_client_would_use_are_refused(executed):
    for name in ("g" * 1_001, "é" * 1_000_000):
        answer = Caller(executed.broker, BROKER_PORT).ask_raw(34, {}, heartbeat(1, name).encode())
        assert (answer.code, "at most 1000 are allowed" in answer.remark) == (1, True)
    executed.good.notices_nothing()


def test_a_route_of_very_many_queues_is_refused_before_anybody_lists_them(executed):
    """A random frame registered 2^31-1 queues; the next assignment that was asked for took 16 GB."""
    queues = f'{{"brokerName":"b","readQueueNums":{2**31 - 1},"writeQueueNums":1,"perm":6}}'
    nameserver = Caller(executed.nameserver, NAMESERVER_PORT)
    body = f'{{"queueDatas":[{queues}],"brokerDatas":[]}}'.encode()
    answer = nameserver.ask_raw(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "wide"}, body)
    assert (answer.code, "2147483647 queues in one topic" in answer.remark) == (2, True)
    executed.good.notices_nothing()


SQL = '{"group":"g","subscriptionData":{"expressionType":"SQL92","topic":"T","subString":"%s"}}'
COSTLY = {
    "a batch of very many messages": (320, SEND_V2 | {"m": "true"}, bytes(22) * 190_000, 13),
    "options in very many lines": (25, {}, b"a=b\n" * 1_000_000, 1),
    "thresholds in very many lines": (2001, {}, b"a=1\n" * 1_000_000, 1),
    "an expression of very many words": (46, {}, (SQL % " or ".join(["a=1"] * 200_000)).encode(), 23),
    "an expression of very many brackets": (46, {}, (SQL % ("(" * 400_000)).encode(), 23),
    "a subscription that is very long": (34, {}, heartbeat(1).replace('"*"', f'"{"x" * 5_000_000}"').encode(), 1),
    "very many empty groups": (34, {}, ('{{"consumerDataSet":[{}]}}'.format(",".join(["{}"] * 49_000))).encode(), 1),
}
"""Requests that took seconds each, and their answers now: (code, fields, body, code of the answer)."""
_CPU_S_MAX = 0.8


def test_requests_of_few_bytes_that_ask_for_much_work_are_refused_at_once(executed):
    for name, (code, fields, body, refusal) in COSTLY.items():
        began_s = executed.cpu_s
        answer = Caller(executed.broker, BROKER_PORT).ask_raw(code, fields, body)
        assert (answer.code, executed.cpu_s - began_s < _CPU_S_MAX) == (refusal, True), (name, answer.remark)
        executed.good.notices_nothing()


def test_a_number_beyond_64_bits_in_msgpack_is_refused(executed):
    """A lock of queue 2^63 + 5 was granted, and its row ended the run."""
    queue = {"topic": "T", "brokerName": "b", "queueId": 2**63 + 5}
    body = msgpack.packb({"consumerGroup": "g", "clientId": "c", "onlyThisBroker": True, "mqSet": [queue]})
    with socket.create_connection((executed.broker, BROKER_PORT), 10) as wire:
        wire.sendall(GREETING + encode(Command(41, 0, 1, body=body)))
        decoder = Decoder()
        while not (answers := decoder.feed(wire.recv(65_536))):
            pass
    assert answers[0].code == 1
    assert "does not fit into 32 bits" in answers[0].remark
    executed.good.notices_nothing()


def test_unfinished_frames_share_a_budget(executed):
    """50 halves of frames of 15 MiB were 866 MB; now the largest is closed when all together exceed the limit."""
    send_halves(executed)


def send_halves(executed):
    half = struct.pack(">II", 15_000_000, 100) + b"x" * 3_000_000
    wires = [socket.create_connection((executed.broker, BROKER_PORT), 10) for _ in range(4)]
    for wire in wires:
        wire.sendall(half)
    assert any(_has_ended(wire) for wire in wires)
    executed.good.notices_nothing()
    for wire in wires:
        wire.close()


def _has_ended(wire):
    wire.settimeout(2)
    try:
        return wire.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def test_the_run_is_whole_and_says_what_was_malformed(tmp_path):
    executed = Executed(tmp_path)
    send_what_is_no_frame(executed)
    send_halves(executed)
    executed.good.notices_nothing()
    assert "Traceback" not in executed.end()
    assert executed.process.returncode == INTERRUPTED
    run = open_run(executed.run)
    assert [line for line in executed.log() if line["level"] == "error"] == []
    assert run.manifest["crashes"] == []
    malformed = [row["detail"].partition(": ")[2] for row in table_rows(run.path, RPC) if row["event"] == "malformed"]
    assert len(malformed) >= len(NO_FRAMES) + 1
    assert all(len(detail) <= 300 for detail in malformed)
    assert any("unfinished frames" in detail for detail in malformed)
