"""The faults that are active in a cluster, and the processes that they keep down."""

from collections.abc import Mapping
from types import MappingProxyType

from emulator.base.hits import Hits
from faults.fault import Fault
from faults.process import DOWN


class ActiveFaults:
    """Active faults by id, with the names of the nodes that they hit.

    Args:
        hits: counts how often each fault has had an effect.
    """

    def __init__(self, hits: Hits) -> None:
        self._hits = hits
        self._faults: dict[str, Fault] = {}
        self._nodes_hit: dict[tuple[str, str], None] = {}
        """(fault id, node) that were counted."""

    @property
    def faults(self) -> Mapping[str, Fault]:
        """Mapping id -> active fault that has targets, in the order in which they began."""
        return MappingProxyType(self._faults)

    def add(self, fault_id: str, fault: Fault) -> None:
        """A fault with targets begins."""
        self._faults[fault_id] = fault

    def remove(self, fault_id: str) -> Fault | None:
        """A fault ends; None if it had no target."""
        return self._faults.pop(fault_id, None)

    def is_held(self, name: str, kinds: tuple[type[Fault], ...]) -> bool:
        """Whether an active fault of one of these kinds hits a node."""
        return any(True for _ in self._holding(name, kinds))

    def withhold(self, name: str) -> bool:
        """Whether a fault keeps a process from starting now; each that does has hit the node."""
        holding = self._holding(name, DOWN)
        for fault_id in holding:
            self.count_node(fault_id, name)
        return bool(holding)

    def count(self, fault_id: str, times: int = 1) -> None:
        """Count hits of a fault."""
        self._hits.count(fault_id, times)

    def count_node(self, fault_id: str, name: str) -> None:
        """Count a hit of a fault that hits each node once at most."""
        if (fault_id, name) not in self._nodes_hit:
            self._nodes_hit[fault_id, name] = None
            self._hits.count(fault_id)

    def _holding(self, name: str, kinds: tuple[type[Fault], ...]) -> list[str]:
        return [
            fault_id
            for fault_id, fault in self._faults.items()
            if isinstance(fault, kinds) and fault.scope.matches(name)
        ]
