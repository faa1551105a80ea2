"""What a guest asks that is not emulated is said: in the events, by `nodes` and `why`, and in the report."""

import signal
import socket

import pytest

from emulator.analysis.judge import judge_run
from emulator.analysis.rendering.shown_report import as_text
from emulator.guests.not_emulated import FOREIGN_PROTOCOLS, foreign_protocol, request_text
from emulator.trace.run_directory import open_run
from emulator.trace.schema import RPC
from support.every_case import each_case
from support.live_cluster import BROKER_PORT, LiveCluster
from support.remoting_program import Caller
from support.rmqemu_process import rmqemu
from support.run_rows import table_rows
from support.waiting import until

SCENARIO = """
[scenario]
name = "asked-in-vain"
run_for_s = 600
[nameserver]
count = 1
[[broker]]
name = "broker-a"
"""
FILTER_SERVER, NO_NODE_KNOWS, SUSPEND_CONSUMER = 301, 4_711, 209
CLIENT_HELLO, GRPC = b"\x16\x03\x01\x02\x00\x01\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ANSWERED = "answered REQUEST_CODE_NOT_SUPPORTED"
FILTERS = f"REGISTER_FILTER_SERVER (301) to broker-a, for filter servers: not emulated; {ANSWERED}"
REPORTED = (
    FILTERS,
    f"request 4711 to broker-a: no request of RocketMQ 5.3.3; {ANSWERED}",
    "SUSPEND_CONSUMER (209) to broker-a: not emulated; dropped",
    (
        "TLS to broker-a: not emulated, the connection was closed; start the program without it "
        "(in Java -Dtls.enable=false)"
    ),
    (
        "gRPC over HTTP/2, as 5.x clients speak it to a proxy to broker-a: not emulated, the connection was closed; "
        "use a client of the remoting protocol (in Java the artifact rocketmq-client)"
    ),
)


def closed_after(ip, answer):
    """Whether the connection is closed when this was said."""
    with socket.create_connection((ip, BROKER_PORT), 10) as item:
        item.sendall(answer)
        return item.recv(1) == b""


def printed(*words, cwd):
    return rmqemu(*words, cwd=cwd).stdout


@pytest.fixture(scope="module")
def requested(tmp_path_factory):
    """What was printed, what `nodes` and `why` said, and the run."""
    cluster = LiveCluster(tmp_path_factory.mktemp("vain"), SCENARIO)
    caller = Caller(cluster.broker, BROKER_PORT)
    answers = [caller.ask_raw(code, {}, b"") for code in (FILTER_SERVER, NO_NODE_KNOWS, FILTER_SERVER)]
    caller.send_raw(SUSPEND_CONSUMER, {}, b"", oneway=True)
    caller.ask_raw(FILTER_SERVER, {}, b"")
    closed = [closed_after(cluster.broker, answer) for answer in (CLIENT_HELLO, GRPC, GRPC)]
    until(lambda: "gRPC" in printed("ctl", "--run", cluster.run, "nodes", cwd=cluster.run))
    nodes = printed("ctl", "--run", cluster.run, "nodes", cwd=cluster.run)
    cluster.process.send_signal(signal.SIGINT)
    events = cluster.process.communicate(timeout=60)[0].splitlines()
    return {"answers": answers, "closed": closed, "nodes": nodes, "events": events, "run": cluster.run}


def test_the_node_answers_or_closes_the_connection(requested):
    assert [answer.code for answer in requested["answers"]] == [3, 3, 3]
    assert requested["closed"] == [True, True, True]


def test_the_answer_says_what_is_not_emulated_and_why(requested):
    assert [answer.remark for answer in requested["answers"]] == [
        "request type 301 not supported: filter servers are not emulated",
        "request type 4711 not supported",
        "request type 301 not supported: filter servers are not emulated",
    ]


def test_each_is_an_event_once_for_a_guest_and_a_code(requested):
    lines = [line.split("not_emulated")[1].strip() for line in requested["events"] if " not_emulated " in line]

    assert [item.replace(" to broker-a", "") for item in lines] == [
        item.replace(" to broker-a", "") for item in REPORTED
    ]


def test_nodes_and_why_and_the_report_notify_them(requested):
    run = requested["run"]
    report, why = judge_run(open_run(run)), printed("why", run, "node", "guest", cwd=run)

    for reported in REPORTED:
        assert f"guest asked {reported}" in requested["nodes"]
        assert f"guest asked {reported}" in why
    assert tuple(item.text for item in report["unsupported_requests"]) == REPORTED
    assert "What guests asked that is not emulated" in as_text(report)


def test_why_a_node_reports_the_end_of_its_life_all_the_same(requested):
    assert "its process 1 is ready" in printed("why", requested["run"], "node", "broker-a", cwd=requested["run"])


def test_the_first_bytes_of_another_protocol_are_one_malformed_row_for_each_connection(requested):
    rows = [row["detail"] for row in table_rows(requested["run"], RPC) if row["event"] == "malformed"]

    assert [row.partition("looks like ")[2].partition(":")[0] for row in rows] == [
        "TLS",
        "gRPC over HTTP/2, as 5.x clients speak it to a proxy",
        "gRPC over HTTP/2, as 5.x clients speak it to a proxy",
    ]


@each_case("protocol", FOREIGN_PROTOCOLS, ids=lambda item: item.begins.decode("latin-1").strip())
def test_a_protocol_is_known_by_its_first_bytes(protocol):
    assert foreign_protocol(protocol.begins + b"more") is protocol
    assert foreign_protocol(b"\x07" + protocol.begins) is None


def test_a_request_that_another_kind_of_node_answers_is_not_said_to_be_missing():
    assert request_text(10, "ns-1") == (
        "SEND_MESSAGE (10) to ns-1: not for a node of this kind, in RocketMQ neither; " + ANSWERED
    )
