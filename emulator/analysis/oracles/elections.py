"""V17: elections of masters by controllers."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import JudgedFinding
from emulator.analysis.findings.questions import Words, about_node, instant
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.reads import WITHOUT_MESSAGES, Reads
from emulator.history.rows.row_classes import BeliefRow, Process
from emulator.history.rows.sweeps import Sweeps
from emulator.trace.schema import BELIEFS, TraceTable
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
class FlawedElection(JudgedFinding):
    """A flaw, found once for each node and epoch (V17)."""

    broker_name: str
    """Of the group."""
    what: ElectionFlaw
    """What is wrong."""
    node: str
    """Which node recorded it first."""
    epoch: int
    """Master epoch of the group."""
    known: str
    """Second master: the replica that had served; epoch fell: the later epoch; else the SyncStateSet."""
    start_ns: int
    """When."""


class ElectionSweep:
    """What brokers and controllers record of one broker group.

    Args:
        broker_name: of the group.
    """

    def __init__(self, broker_name: str) -> None:
        self._broker_name = broker_name
        self._masters: dict[int, int] = {}
        """Mapping epoch -> the replica that served as master first."""
        self._epochs: dict[Process, int] = {}
        """Mapping process -> the latest epoch that it has known."""
        self._found: dict[tuple[ElectionFlaw, str, int], FlawedElection] = {}

    @property
    def found(self) -> Iterable[FlawedElection]:
        """All flaws, in order of time."""
        return self._found.values()

    def feed(self, row: BeliefRow) -> None:
        """A broker records its role, or a controller the state of the group."""
        held = json.loads(row.value)
        if held is None:
            return
        self._compare_epochs(row, held["epoch"])
        if row.kind == BeliefKind.BROKER_ROLE:
            self._of_broker(row, held)
        elif held["master"] is not None and held["master"] not in held["in_sync"]:
            self._find(row, ElectionFlaw.OUT_OF_SYNC, held["epoch"], ", ".join(map(str, held["in_sync"])))

    def settle(self, t_ns: int) -> None:
        """It looks at rows only."""

    def close(self, end_ns: int) -> None:
        """Nothing is open."""

    def _of_broker(self, row: BeliefRow, held: Mapping[str, Any]) -> None:
        if held["serves_as"] != "master" or held["replica"] != held["master"]:
            return
        first = self._masters.setdefault(held["epoch"], held["replica"])
        if first != held["replica"]:
            self._find(row, ElectionFlaw.SECOND_MASTER, held["epoch"], f"replica {first}")

    def _compare_epochs(self, row: BeliefRow, epoch: int) -> None:
        process = row.node, row.incarnation
        known = self._epochs.setdefault(process, epoch)
        if epoch < known:
            self._find(row, ElectionFlaw.EPOCH_FELL, epoch, f"epoch {known}")
        self._epochs[process] = max(known, epoch)

    def _find(self, row: BeliefRow, election_flaw: ElectionFlaw, epoch: int, known: str) -> None:
        item = FlawedElection(self._broker_name, election_flaw, row.node, epoch, known, row.t_ns, violation=True)
        self._found.setdefault((election_flaw, row.node, epoch), item)


class ElectionSweeps(Sweeps[str, ElectionSweep]):
    """All broker groups."""

    def __init__(self) -> None:
        super().__init__(ElectionSweep)

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs of brokers and of controllers."""
        return {BELIEFS: self._belief}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind in (BeliefKind.BROKER_ROLE, BeliefKind.SYNC_STATE):
            self.sweep(row.subject).feed(row)


class Elections(Oracle[FlawedElection, ElectionSweeps]):
    """V17: an epoch of a broker group has one master, and epochs rise."""

    id: ClassVar[str] = "V17"
    title: ClassVar[str] = "an epoch of a broker group has one master, and epochs rise"
    definition: ClassVar[str] = (
        "In controller mode, a second replica takes itself for master in an epoch, a process hears of an epoch below "
        "one that it knew, or a controller has a SyncStateSet without the master. Each is a violation. A broker that "
        "has not heard of its successor serves on in an older epoch: that is V10, and its messages are V7."
    )
    reads: ClassVar[tuple[Input, ...]] = ()
    rows: ClassVar[Reads] = WITHOUT_MESSAGES
    table = FindingTable("elections", FlawedElection, "a flaw of an election in controller mode")

    def watch(self, inputs: SharedInputs) -> ElectionSweeps:  # noqa: ARG002
        """A sweep for each broker group."""
        return ElectionSweeps()

    def find(self, inputs: SharedInputs, watched: ElectionSweeps) -> Iterable[FlawedElection]:  # noqa: ARG002
        """All flaws."""
        return [item for sweep in watched.of.values() for item in sweep.found]

    def order(self, row: FlawedElection) -> Any:
        """By time."""
        return row.start_ns

    def summary(self, rows: Sequence[FlawedElection]) -> str:
        """How often each."""
        times = Counter(row.what for row in rows)
        return ", ".join(f"{times[subject]} times {subject}" for subject in ElectionFlaw if times[subject])

    def amount(self, row: FlawedElection) -> float:  # noqa: ARG002
        """All are equally bad."""
        return 0.0

    def describe(self, row: FlawedElection, context: Context) -> str:  # noqa: ARG002
        """Which epoch, where, and what is wrong."""
        return f"{row.broker_name}, epoch {row.epoch}, at {row.node}: {row.what}, after {row.known}"

    def questions(self, row: FlawedElection, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """The node that recorded it."""
        yield about_node(row.node, instant(row.start_ns))


ELECTIONS = Elections()
