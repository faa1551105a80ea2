"""Oracle V17 `elections`: in controller mode an epoch has one master, epochs rise, and a master is in its SyncStateSet.

Brokers tell which replica they are, whom they take for master and what they serve as; controllers tell the state of
the group as they have applied it. A broker that hears of a new master serves as the old one for an instant more, so
only who takes *itself* for master counts. That an old master, which has not heard yet, serves beside the new one in
another epoch is V10's concern, and what its messages cost is V7's.
"""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.rows import BeliefRow, Process, Watcher
from emulator.trace.schema import BELIEFS, Table
from nodes.beliefs import BeliefKind


class ElectionFlaw(StrEnum):
    """What is wrong with an election."""

    SECOND_MASTER = "second master"
    """Another replica had served as master in the same epoch."""
    EPOCH_FELL = "epoch fell"
    """A process had known a later epoch."""
    OUT_OF_SYNC = "master out of sync"
    """A controller has a SyncStateSet that lacks the master."""


@attrs.frozen
class FlawedElection:
    """A flaw, told once for each node and epoch (V17)."""

    broker_name: str
    """Of the group."""
    what: ElectionFlaw
    """What is wrong."""
    node: str
    """Who told it first."""
    epoch: int
    """Master epoch of the group."""
    known: str
    """Second master: the replica that had served; epoch fell: the later epoch; else the SyncStateSet."""
    start_ns: int
    """When."""


class Elections(Watcher):
    """Compares what brokers and controllers tell of a group."""

    def __init__(self) -> None:
        self._masters: dict[tuple[str, int], int] = {}
        """Mapping brokerName and epoch -> the replica that served as master first."""
        self._epochs: dict[tuple[Process, str], int] = {}
        """Mapping process and brokerName -> the latest epoch that it has known."""
        self._found: dict[tuple[str, ElectionFlaw, str, int], FlawedElection] = {}

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads beliefs of brokers and of controllers."""
        return {BELIEFS: self._belief}

    @property
    def found(self) -> tuple[FlawedElection, ...]:
        """All flaws, in order of time."""
        return tuple(self._found.values())

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.BROKER_ROLE:
            self._of_broker(row, json.loads(row.value))
        elif row.kind == BeliefKind.SYNC_STATE:
            self._of_controller(row, json.loads(row.value))

    def _of_broker(self, row: BeliefRow, told: Mapping[str, Any] | None) -> None:
        if told is None:
            return
        self._compare_epochs(row, told["epoch"])
        if told["serves_as"] != "master" or told["replica"] != told["master"]:
            return
        first = self._masters.setdefault((row.subject, told["epoch"]), told["replica"])
        if first != told["replica"]:
            self._tell(row, ElectionFlaw.SECOND_MASTER, told["epoch"], f"replica {first}")

    def _of_controller(self, row: BeliefRow, told: Mapping[str, Any] | None) -> None:
        if told is None:
            return
        self._compare_epochs(row, told["epoch"])
        if told["master"] is not None and told["master"] not in told["in_sync"]:
            self._tell(row, ElectionFlaw.OUT_OF_SYNC, told["epoch"], ", ".join(map(str, told["in_sync"])))

    def _compare_epochs(self, row: BeliefRow, epoch: int) -> None:
        key = (row.node, row.incarnation), row.subject
        known = self._epochs.setdefault(key, epoch)
        if epoch < known:
            self._tell(row, ElectionFlaw.EPOCH_FELL, epoch, f"epoch {known}")
        self._epochs[key] = max(known, epoch)

    def _tell(self, row: BeliefRow, what: ElectionFlaw, epoch: int, known: str) -> None:
        one = FlawedElection(row.subject, what, row.node, epoch, known, row.t_ns)
        self._found.setdefault((row.subject, what, row.node, epoch), one)
