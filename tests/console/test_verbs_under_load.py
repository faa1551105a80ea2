"""Each verb that begins a fault, while guests send without waiting: the fault acts when its row says so."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from emulator.console.control_client import say
from emulator.console.control_socket import SOCKET_FILE
from emulator.trace import schema
from faults.catalogue import WORDINGS
from network.hostile_requests import SEND_V2
from nodes.beliefs import BeliefKind
from support.live_cluster import BROKER_PORT, LiveCluster
from support.remoting_program import Caller
from support.run_rows import table_rows
from support.verb_lines import VERB_LINES

CLUSTER = """
[scenario]
name = "busy"
run_for_s = 3_600

[network]
delay_ms = 0

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[topic]]
name = "orders"
queues = 4
brokers = ["broker-b"]

[[consumer]]
group = "g"
count = 2
topics = ["orders"]
options = { clientRebalance = false }
"""
HEARTBEAT, SEND = 34, 310
LATE_NS_MAX = 1_000_000_000

Evidence = Callable[[schema.TraceTable, Mapping[str, Any]], bool]


def _stage(event: str) -> Evidence:
    return lambda table, row: table is schema.LIFECYCLE and row["event"] == event


def _belief(kind: BeliefKind) -> Evidence:
    return lambda table, row: table is schema.BELIEFS and row["kind"] == kind


EVIDENCE: Mapping[str, Evidence] = {
    "kill": _stage("killed"),
    "stop": _stage("stopping"),
    "power-off": _stage("powered_off"),
    "suspend": _stage("suspended"),
    "permission": _belief(BeliefKind.DATA_VERSION),
    "scale": _stage("started"),
    "restart": _stage("stopping"),
    "upgrade": _stage("stopping"),
    "chaos": _stage("killed"),
}
"""Verb -> the row that shows when it acted. The others change the network, a clock or a disk in the call that records
them, or send requests to brokers, as `permission` does."""


def test_every_verb_that_begins_a_fault_is_in_the_grid():
    assert list(VERB_LINES) == list(WORDINGS)


class Flood:
    """Guests that send to one broker without waiting, and one that repeats a large heartbeat."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._over = threading.Event()
        guests = (self._send, self._send, self._beat)
        self._threads = [threading.Thread(target=guest, daemon=True) for guest in guests]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)

    def _send(self) -> None:
        caller = Caller(self._broker, BROKER_PORT, 60)
        while not self._over.is_set():
            last = [caller.send_raw(SEND, SEND_V2, b"x" * 100) for _ in range(100)][-1]
            while caller.hear().opaque != last:
                pass

    def _beat(self) -> None:
        caller = Caller(self._broker, BROKER_PORT, 60)
        groups = ",".join(f'{{"groupName":"p{number}"}}' for number in range(2_000))
        body = f'{{"clientID":"heavy","consumerDataSet":[],"producerDataSet":[{groups}]}}'.encode()
        while not self._over.is_set():
            caller.ask_raw(HEARTBEAT, {}, body)


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """Mapping verb -> (instant of the fault's row, instant at which it acted), in ns since the run began."""
    cluster = LiveCluster(tmp_path_factory.mktemp("busy"), CLUSTER)
    socket = cluster.run / SOCKET_FILE
    with Flood(cluster.broker):
        for line in VERB_LINES.values():
            for words in ("until broker-b ready within 30s", line, "heal all"):
                assert tuple(say(socket, words.split()))
    cluster.end()
    tables = (schema.FAULTS, schema.LIFECYCLE, schema.BELIEFS)
    rows = [(row["seq"], table, row) for table in tables for row in table_rows(cluster.run, table)]
    return dict(_instants(sorted(rows, key=lambda item: item[0])))


def _instants(rows):
    verbs, recorded, shows = iter(VERB_LINES), ("", 0), None
    for _, table, row in rows:
        if table is schema.FAULTS and row["event"] == "begin":
            recorded = next(verbs), row["t_ns"]
            shows = EVIDENCE.get(recorded[0], lambda table, _: table is schema.FAULTS)
        if shows is not None and shows(table, row):
            yield recorded[0], (recorded[1], row["t_ns"])
            shows = None


def test_a_fault_acts_within_a_second_of_its_row_however_much_guests_send(faults):
    late_ns = {verb: acted_ns - recorded_ns for verb, (recorded_ns, acted_ns) in faults.items()}

    assert list(late_ns) == list(VERB_LINES)
    assert {verb: late for verb, late in late_ns.items() if late > LATE_NS_MAX} == {}
