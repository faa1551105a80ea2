"""Unreachable addresses: what clients dialled that leads to no node from where they are.

A nameserver gives the address that a broker has registered, and a proxy the one that a client has named. Outside of a
private network, an address inside of it is of no use; people decide what is registered, and what is published.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import LostFrame, Span
from emulator.history.steps import merged
from emulator.trace.schema import RPC, TraceTable
from nodes.units import NS_PER_S

DIALS = ("refused", "connect_lost")
"""Events of dials that failed; those with a detail dialled an unreachable address."""
_DIALS_AGAIN_NS = 35 * NS_PER_S
"""A client dials the same address again within this time."""
_ALL = ""


class UnreachableAddresses(Watcher):
    """Collects dials to addresses that lead nowhere.

    Args:
        node_of: the node of an address.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, node_of: Callable[[str], str]) -> None:
        self._node_of = node_of
        self._dials: dict[tuple[str, str], list[Span]] = {}
        """Mapping client and server -> its dials, each until the next one; without a server: those to all."""
        self._known: dict[tuple[str, str], tuple[int, Sequence[Span]]] = {}
        """The same, merged, and how many dials there were."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads connections that were not made."""
        return {RPC: self._read}

    def spans(self, client: str, server: str = _ALL) -> Sequence[Span]:
        """When the address that a client had of a server led nowhere; without a server, that of any."""
        dials = self._dials.get((client, server), ())
        known = self._known.get((client, server))
        if known is None or known[0] != len(dials):
            known = self._known[client, server] = len(dials), tuple(merged(dials))
        return known[1]

    def holds(self, client: str, t_ns: int, server: str = _ALL) -> bool:
        """Whether an address that a client had at an instant led nowhere: of a server, or without one of any."""
        return any(start_ns <= t_ns < end_ns for start_ns, end_ns in self.spans(client, server))

    def _read(self, row: LostFrame) -> None:
        if row.event in DIALS and row.detail:
            span = row.sent_ns, row.t_ns + _DIALS_AGAIN_NS
            for server in (self._node_of(row.dst), _ALL):
                self._dials.setdefault((row.src, server), []).append(span)
