"""What a kind of fault does to a running cluster when it begins, and when it ends."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Generic, TypeVar

import attrs

from emulator.cluster.cluster import Cluster
from emulator.machine.host import EmulatedHost
from emulator.machine.world import World
from faults.fault import Fault
from faults.scope import NodeScope

F = TypeVar("F", bound=Fault)


class ImpossibleError(Exception):
    """A fault would change nothing now; says why in one line."""


@attrs.frozen
class Scene:
    """Where faults take effect."""

    cluster: Cluster
    active: Mapping[str, Fault]
    """Id -> fault, in the order of their beginnings, of those that have begun, not ended, and found their targets."""

    @property
    def world(self) -> World:
        """Of the cluster."""
        return self.cluster.world

    def hosts(self, scope: NodeScope) -> Iterator[EmulatedHost]:
        """Those that a scope hits, in the order of the cluster."""
        for name, host in list(self.cluster.hosts.items()):
            if scope.matches(name):
                yield host

    def is_held(self, name: str, kinds: tuple[type[Fault], ...]) -> bool:
        """Whether an active fault of some kinds hits a node."""
        return any(isinstance(fault, kinds) and fault.scope.matches(name) for fault in self.active.values())

    def count(self, fault_id: str, times: int = 1) -> None:
        """A fault has done something to a frame, a process, a write or a reading of a clock."""
        self.world.fabric.hits.count(fault_id, times)


class Effect(ABC, Generic[F]):
    """The effect of some kinds of faults; one object for each run, which may remember what it has changed.

    A subclass names its kinds: `class CutEffect(Effect[Cut], kinds=(Cut,))`. Both ends are abstract, so no kind can
    begin that could not end.
    """

    registry: ClassVar[dict[type[Fault], "type[Effect[Fault]]"]] = {}
    """Kind -> its effect, of all modules of this package."""

    def __init_subclass__(cls, *, kinds: tuple[type[F], ...] = ()) -> None:
        """Enter it into the registry."""
        super().__init_subclass__()
        for kind in kinds:
            assert kind not in Effect.registry, f"{kind.__name__} has two effects"
            Effect.registry[kind] = cls  # type: ignore[assignment]

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @abstractmethod
    async def begin(self, fault_id: str, fault: F) -> None:
        """Begin it, with its targets by name."""

    @abstractmethod
    async def end(self, fault_id: str, fault: F) -> None:
        """End it; what another fault still holds down stays down."""

    def expect_possible(self, fault: F) -> None:
        """Refuse what would change nothing.

        Raises:
            ImpossibleError: nobody whom it hits is in a state in which it makes sense.
        """


class HostEffect(Effect[F]):
    """The effect of a fault that hits host by host."""

    async def begin(self, fault_id: str, fault: F) -> None:
        """Begin it on each."""
        for host in self.scene.hosts(fault.scope):
            await self.begin_on(host, fault_id, fault)

    async def end(self, fault_id: str, fault: F) -> None:
        """End it on each."""
        for host in self.scene.hosts(fault.scope):
            await self.end_on(host, fault_id, fault)

    @abstractmethod
    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: F) -> None:
        """Begin it on one host."""

    @abstractmethod
    async def end_on(self, host: EmulatedHost, fault_id: str, fault: F) -> None:
        """End it on one host."""
