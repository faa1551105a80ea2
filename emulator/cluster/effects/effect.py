"""The base classes of effects: what a kind of fault does to a running cluster at its begin and at its end."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import attrs

from emulator.cluster.cluster import Cluster
from emulator.machine.host import EmulatedHost
from emulator.machine.world import World
from faults.fault import Fault
from faults.process import DOWN
from faults.scope import NodeScope

F = TypeVar("F", bound=Fault)


class ImpossibleError(Exception):
    """A fault would have no effect now; the text says why in one line."""


@attrs.frozen
class Scene:
    """The cluster and its active faults, as effects see them."""

    cluster: Cluster

    @property
    def active(self) -> Mapping[str, Fault]:
        """Mapping id -> active fault that has targets, in the order in which they began."""
        return self.cluster.faults.faults

    @property
    def world(self) -> World:
        """The world of the cluster."""
        return self.cluster.world

    def machines(self, scope: NodeScope) -> Iterator[EmulatedHost]:
        """The machines that a scope hits, each once, in the order of the cluster."""
        hit = (host.machine for name, host in self.cluster.hosts.items() if scope.matches(name))
        yield from list(dict.fromkeys(hit))

    def hosts(self, scope: NodeScope) -> Iterator[EmulatedHost]:
        """The hosts that a scope hits, in the order of the cluster; not the brokers of a container that it hits."""
        for name, host in list(self.cluster.hosts.items()):
            if scope.matches(name) and (host.machine is host or not scope.matches(host.machine.name)):
                yield host

    def is_held(self, name: str, kinds: tuple[type[Fault], ...]) -> bool:
        """Whether an active fault of one of these kinds hits a node."""
        return self.cluster.faults.is_held(name, kinds)

    def must_stay_down(self, name: str) -> bool:
        """Whether a process may not start now: a fault keeps it down, scaling removed it, or its start is to come."""
        cluster = self.cluster
        return self.is_held(name, DOWN) or cluster.is_retired(name) or cluster.is_start_to_come(name)

    def count(self, fault_id: str, times: int = 1) -> None:
        """Count hits of a fault."""
        self.cluster.faults.count(fault_id, times)


class Effect(ABC, Generic[F]):
    """The effect of one or more kinds of faults; one object per run, which may remember what it has changed.

    `EFFECTS` of this package maps kinds to effects. `begin` and `end` are both abstract, so every fault that can begin
    can also end.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @abstractmethod
    async def begin(self, fault_id: str, fault: F) -> None:
        """Begin a fault, whose targets are resolved."""

    @abstractmethod
    async def end(self, fault_id: str, fault: F) -> None:
        """End a fault; a node that another fault keeps down stays down."""

    def require_possible(self, fault: F) -> None:
        """Refuse a fault that would have no effect now.

        Raises:
            ImpossibleError: no target is in a state in which the fault has an effect.
        """


class HostEffect(Effect[F]):
    """The effect of a fault that hits single hosts."""

    async def begin(self, fault_id: str, fault: F) -> None:
        """Begin the fault on each host; stops where it ends meanwhile."""
        for host in self._hit(fault):
            if fault_id in self.scene.active:
                await self.begin_on(host, fault_id, fault)

    async def end(self, fault_id: str, fault: F) -> None:
        """End the fault on each host."""
        for host in self._hit(fault):
            await self.end_on(host, fault_id, fault)

    def _hit(self, fault: F) -> Iterator[EmulatedHost]:
        return self.scene.machines(fault.scope) if fault.hits_machines else self.scene.hosts(fault.scope)

    @abstractmethod
    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: F) -> None:
        """Begin the fault on one host."""

    @abstractmethod
    async def end_on(self, host: EmulatedHost, fault_id: str, fault: F) -> None:
        """End the fault on one host."""
