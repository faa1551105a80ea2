"""Oracles of a whole run, on its rows: no row, frame or fault is lost, and no call times out without a reason."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from emulator.cluster.cluster import Cluster
from emulator.spec import Scenario
from emulator.spec.model.scenario import ADMINISTRATOR
from faults.plan import TimedFault
from fuzz.timeouts import invented_timeouts
from nodes.beliefs import LifecycleEvent

Rows = Sequence[Mapping[str, Any]]
_FATES = ("delivered", "dropped", "lost", "in_flight")
_RUNS = (LifecycleEvent.STARTED, LifecycleEvent.CONFIGURED, LifecycleEvent.READY, LifecycleEvent.RESUMED)
_STOP_NS = 10_000_000_000
"""An orderly stop takes no longer, and an upgrade that began so late ends with the run."""
_GAVE_UP = "start failed"
"""A client that reaches no nameserver ends itself, as RocketMQ's does."""
_MAX_REPORTED = 5


@attrs.frozen
class Problem:
    """One violation of an oracle."""

    kind: str
    text: str


class Sent(NamedTuple):
    """A frame that a node gave to the network; a connection and a number name it."""

    connection: int
    src: str
    is_response: bool
    opaque: int


Calls = Mapping[tuple[str, int], list[int]]
"""Mapping (node, number of the call) -> instants in ns at which calls of this number began, in order."""


@attrs.frozen
class Evidence:
    """Everything that the oracles look at, after the run has ended."""

    scenario: Scenario
    manifest: Mapping[str, Any]
    rows: Mapping[str, Rows]
    """Mapping table -> rows on disk."""
    faults: Mapping[str, TimedFault]
    """Mapping id -> fault that has begun, with the names of the nodes that it hit."""
    sent: tuple[Sent, ...]
    calls: Calls
    cluster: Cluster


def problems_of(evidence: Evidence) -> Iterator[Problem]:
    """All violations in a run, at most a few of each kind."""
    for kind, oracle in _ORACLES.items():
        for number, text in enumerate(oracle(evidence)):
            if number < _MAX_REPORTED:
                yield Problem(kind, text)


def _incomplete(evidence: Evidence) -> Iterator[str]:
    if evidence.manifest["ended"] != "complete":
        yield f"the run ended as {evidence.manifest['ended']}"
    yield from evidence.manifest["crashes"]
    for row in evidence.rows["rpc"]:
        if row["status"] == 1 and "Error:" in row["detail"]:
            yield f"{row['src']} answered {row['code']} with an error of its code: {row['detail']}"


def _lost_rows(evidence: Evidence) -> Iterator[str]:
    counts = {table: len(rows) for table, rows in evidence.rows.items()}
    if counts != dict(evidence.manifest["rows"]):
        yield f"the manifest counts {evidence.manifest['rows']}, on disk are {counts}"
    numbers = sorted(row["seq"] for rows in evidence.rows.values() for row in rows)
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"{len(numbers)} rows, of which the last is {numbers[-1] if numbers else 0}: seq has gaps"


def _lost_frames(evidence: Evidence) -> Iterator[str]:
    """Each frame that was sent has one row that says what became of it."""
    rows = evidence.rows["rpc"]
    broken = {row["connection"] for row in rows if row["event"] == "malformed"}
    fates = Counter(
        Sent(row["connection"], row["src"], row["kind"] == "response", row["opaque"])
        for row in rows
        if row["event"] in _FATES and row["kind"] != "connection"
    )
    sent = Counter(element for element in evidence.sent if element.connection not in broken)
    for item, times in (sent - fates).items():
        subject = "response" if item.is_response else "request"
        yield f"{times} x {subject} {item.opaque} of {item.src} on connection {item.connection} has no fate"
    for item, times in (fates - sent).items():
        if item.connection not in broken:
            yield f"{times} x fate of a frame that no one sent: {item}"


def _leftover_faults(evidence: Evidence) -> Iterator[str]:
    events = Counter((row["fault_id"], row["event"]) for row in evidence.rows["faults"])
    for fault_id in dict.fromkeys(fault_id for fault_id, _ in events):
        reported = (events[fault_id, "begin"], events[fault_id, "end"])
        if reported != (1, 1):
            yield f"{fault_id} began {reported[0]} times and ended {reported[1]} times"
    planned = {timed.id for timed in evidence.scenario.plan().faults}
    if missing := planned - {fault_id for fault_id, _ in events}:
        yield f"never began: {', '.join(sorted(missing))}"
    yield from _leftover_states(evidence)


def _leftover_states(evidence: Evidence) -> Iterator[str]:
    cluster = evidence.cluster
    for rule in cluster.world.fabric.rules:
        yield f"the rule of {rule.fault_id} is left on the links"
    for host in cluster.hosts.values():
        for fault_id in (*host.cpu._turns_ms, *host.disk._slow, *host.disk._lying):
            yield f"{fault_id} is left on the CPU or the disk of {host.name}"
    last: dict[str, str] = {}
    at_ns: dict[str, int] = {}
    gave_up: dict[str, bool] = {}
    for row in evidence.rows["lifecycle"]:
        name = row["node"]
        last[name], at_ns[name] = row["event"], row["t_ns"]
        if row["event"] != LifecycleEvent.STOPPED:
            gave_up[name] = row["detail"].startswith(_GAVE_UP)
    pods = [name for name in last for spec in evidence.scenario.statefulsets if spec.is_pod(name)]
    for name, event in last.items():
        if name in pods or name == ADMINISTRATOR or name in cluster.absent:
            continue  # Kubernetes decides when a pod runs, an act when it ends, an administrator what is absent
        if event == LifecycleEvent.STOPPING and at_ns[name] > evidence.scenario.run_for_ms * 1_000_000 - _STOP_NS:
            continue
        if event not in _RUNS and not cluster.is_retired(name) and not gave_up[name]:
            yield f"{name} does not run at the end: its last event is {event}"


_ORACLES = {
    "incomplete": _incomplete,
    "lost row": _lost_rows,
    "lost frame": _lost_frames,
    "leftover fault": _leftover_faults,
    "invented timeout": invented_timeouts,
}
