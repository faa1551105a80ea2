"""Each verb that begins a fault, while guests send without waiting: the fault acts when its row says so."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from emulator.console.control_client import say
from emulator.console.control_socket import SOCKET_FILE
from emulator.trace import schema
from emulator.trace.run_directory import table_rows
from faults.catalogue import WORDINGS
from network.hostile_requests import SEND_V2
from nodes.beliefs import BeliefKind
from support.live_cluster import BROKER_PORT, LiveCluster
from support.remoting_program import Caller

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

Evidence = Callable[[schema.Table, Mapping[str, Any]], bool]


def _stage(event: str) -> Evidence:
    return lambda table, row: table is schema.LIFECYCLE and row["event"] == event


def _belief(kind: BeliefKind) -> Evidence:
    return lambda table, row: table is schema.BELIEFS and row["kind"] == kind


@attrs.frozen
class Acts:
    """A verb, and the row that shows when it acted."""

    line: str
    evidence: Evidence | None = None
    """None: it changes the network, a clock or a disk in the call that records it, or sends requests as `permission`."""


GRID = {
    "cut": Acts("cut broker-b ns-1"),
    "partition": Acts("partition isolate broker-b"),
    "loss": Acts("loss 10 broker-b ns-1"),
    "tcp-loss": Acts("tcp-loss 10 broker-b ns-1"),
    "delay": Acts("delay 5 broker-b ns-1"),
    "drop": Acts("drop HEART_BEAT to broker-b"),
    "refuse": Acts("refuse HEART_BEAT with SYSTEM_BUSY to broker-b"),
    "kill": Acts("kill broker-b", _stage("killed")),
    "stop": Acts("stop broker-b", _stage("stopping")),
    "power-off": Acts("power-off broker-b", _stage("powered_off")),
    "suspend": Acts("suspend broker-b", _stage("suspended")),
    "slow-cpu": Acts("slow-cpu broker-b 20"),
    "skew": Acts("skew broker-b 1000"),
    "drift": Acts("drift broker-b 100"),
    "jump": Acts("jump broker-b 1000"),
    "slow-disk": Acts("slow-disk broker-b 5"),
    "lost-writes": Acts("lost-writes broker-b"),
    "permission": Acts("permission broker-b 4", _belief(BeliefKind.DATA_VERSION)),
    "scale": Acts("scale g 3", _stage("started")),
    "rebalance": Acts("rebalance g client"),
    "consume-mode": Acts("consume-mode g pop"),
    "restart": Acts("restart broker-b", _stage("stopping")),
    "upgrade": Acts("upgrade broker-b one every 1s", _stage("stopping")),
    "chaos": Acts("chaos fixed-kill broker-b", _stage("killed")),
}


def test_every_verb_that_begins_a_fault_is_in_the_grid():
    assert set(GRID) == set(WORDINGS)


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
            last = [caller.say_raw(SEND, SEND_V2, b"x" * 100) for _ in range(100)][-1]
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
        for acts in GRID.values():
            for words in ("until broker-b ready within 30s", acts.line, "heal all"):
                assert tuple(say(socket, words.split()))
    cluster.end()
    tables = (schema.FAULTS, schema.LIFECYCLE, schema.BELIEFS)
    rows = [(row["seq"], table, row) for table in tables for row in table_rows(cluster.run, table)]
    return dict(_instants(sorted(rows, key=lambda it: it[0])))


def _instants(rows):
    verbs, waiting = iter(GRID.items()), None
    for _, table, row in rows:
        if table is schema.FAULTS and row["event"] == "begin":
            verb, acts = next(verbs)
            waiting = None if acts.evidence is None else (verb, acts.evidence, row["t_ns"])
            if waiting is None:
                yield verb, (row["t_ns"], row["t_ns"])
        elif waiting is not None and waiting[1](table, row):
            yield waiting[0], (waiting[2], row["t_ns"])
            waiting = None


@pytest.mark.parametrize("verb", GRID)
def test_a_fault_acts_within_a_second_of_its_row_however_much_guests_send(faults, verb):
    recorded_ns, acted_ns = faults[verb]
    assert acted_ns - recorded_ns <= LATE_NS_MAX
