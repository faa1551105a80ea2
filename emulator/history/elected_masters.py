"""Elected masters: which replica of each broker group served as its master, from when on, in controller mode."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import attrs

from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow
from emulator.trace.schema import BELIEFS, TraceTable
from nodes.beliefs import BeliefKind

_MASTER = "master"


@attrs.frozen
class MasterSwitch:
    """A replica begins to serve as master in place of another one."""

    t_ns: int
    before: str
    """The node that served before."""
    master: str
    """The node that serves now."""


class ElectedMasters(Watcher):
    """Collects what brokers that controllers elect serve as."""

    settles_after_messages: ClassVar[bool] = False

    def __init__(self) -> None:
        self._began: dict[str, list[tuple[int, str]]] = {}
        """Mapping brokerName -> when a node began to serve as its master in place of another one, and which."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs."""
        return {BELIEFS: self._belief}

    def switches(self, broker_name: str) -> Iterator[MasterSwitch]:
        """The switches of a broker group, in order."""
        for (_, before), (t_ns, master) in pairwise(self._began.get(broker_name, ())):
            yield MasterSwitch(t_ns, before, master)

    def at(self, broker_name: str, t_ns: int) -> str:
        """The node that had begun last to serve at an instant; empty: nobody has ever been elected."""
        began = self._began.get(broker_name, ())
        first = began[0][1] if began else ""
        return next((node for began_ns, node in reversed(began) if began_ns <= t_ns), first)

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.BROKER_ROLE or not row.value_hash:
            return
        role = json.loads(row.value)
        # While a replica changes its role it may say that it serves for another one.
        if role["serves_as"] != _MASTER or role["master"] != role["replica"]:
            return
        began = self._began.setdefault(row.subject, [])
        if not began or began[-1][1] != row.node:
            began.append((row.t_ns, row.node))
