"""The desk at which somebody sits before a running cluster."""

from pathlib import Path

import attrs
import trio

from emulator.cluster import Cluster
from emulator.host import EmulatedHost
from emulator.operator import Operator
from emulator.verbs.book import ViewBook
from emulator.verbs.verb import VerbError, nearest
from faults.kind import FaultKind
from faults.plan import Fault, Phase, Plan, Step, TimedFault
from faults.scope import FaultError, LinkScope, NodeScope

_NS_PER_MS = 1_000_000


class Desk:
    """What verbs act on, and what was done by hand.

    Args:
        cluster: that runs.
        operator: does to it what the scenario's plan says, too.
        run_directory: of this run.
    """

    def __init__(self, cluster: Cluster, operator: Operator, run_directory: Path) -> None:
        self.cluster = cluster
        self.operator = operator
        self.run_directory = run_directory
        self.book = ViewBook()
        """What everybody believes; it has to hear of every row."""
        self.leaving = trio.Event()
        """Somebody wants to leave."""
        self._done: list[TimedFault] = []
        self._next_ms = 0

    @property
    def now_ms(self) -> int:
        """Whole milliseconds since the run began."""
        return self.cluster.world.timeline.now_ns // _NS_PER_MS

    def host(self, name: str) -> EmulatedHost:
        """A node's host.

        Raises:
            VerbError: there is none of that name.
        """
        if name not in self.cluster.hosts:
            raise VerbError(nearest("node", name, tuple(self.cluster.hosts)))
        return self.cluster.hosts[name]

    async def begin(self, fault: Fault) -> TimedFault:
        """Break something, until it is healed.

        Raises:
            VerbError: something else has hold of the same process.
        """
        self.expect_free(fault)
        await self._wait_for_an_instant_of_its_own()
        timed = TimedFault(self._free_id(fault.kind), fault, self.now_ms)
        await self.operator.do(Step(self.now_ms, Phase.BEGIN, timed))
        self._done.append(timed)
        return timed

    def expect_free(self, fault: Fault) -> None:
        """Two faults cannot have hold of one process, since the first heal would undo both.

        Raises:
            VerbError: another one has.
        """
        for active in self.operator.active.values():
            one, other = fault.scope, active.fault.scope
            if isinstance(one, NodeScope) and isinstance(other, NodeScope) and one.overlaps(other):
                raise VerbError(f"{active.fault.describe()} is under way: heal {active.id} first")

    async def heal(self, fault_id: str) -> TimedFault:
        """End a fault, whoever began it.

        Raises:
            VerbError: none of that id is active.
        """
        active = self.operator.active
        if fault_id not in active:
            raise VerbError(nearest("active fault", fault_id, tuple(active)))
        await self._wait_for_an_instant_of_its_own()
        timed = active[fault_id]
        await self.operator.do(Step(self.now_ms, Phase.END, timed))
        lasted_ms = self.now_ms - timed.at_ms
        self._done = [attrs.evolve(one, for_ms=lasted_ms) if one is timed else one for one in self._done]
        return timed

    def active_on(self, node: str, kind: FaultKind | None = None) -> TimedFault | None:
        """The fault that has hold of a node's process, if one of that kind has."""
        for timed in self.operator.active.values():
            fault = timed.fault
            if isinstance(fault.scope, NodeScope) and fault.scope.matches(node) and kind in (None, fault.kind):
                return timed
        return None

    def by_hand(self) -> Plan:
        """All that was done by hand so far; what is still active has no end."""
        return Plan(tuple(self._done))

    async def _wait_for_an_instant_of_its_own(self) -> None:
        """Whole milliseconds are what scenario files can say, so nothing that is done shares one with another."""
        self._next_ms = max(self._next_ms, -(-self.cluster.world.timeline.now_ns // _NS_PER_MS))
        instant_ms, self._next_ms = self._next_ms, self._next_ms + 1
        await self.cluster.world.sleep_until_ns(instant_ms * _NS_PER_MS)

    def _free_id(self, kind: FaultKind) -> str:
        used = dict.fromkeys([*self.operator.active, *(timed.id for timed in self._done)])
        number = 1
        while f"{kind.value}-{number}" in used:
            number += 1
        return f"{kind.value}-{number}"


def link_scope(desk: Desk, src: str, dst: str, *, one_way: bool) -> LinkScope:
    """The links between two nodes; `*` is everybody.

    Raises:
        VerbError: a node does not exist, or both are the same.
    """
    for name in (src, dst):
        if name != "*":
            desk.host(name)
    try:
        return LinkScope(src, dst, one_way)
    except FaultError as error:
        raise VerbError(error.expected) from None
