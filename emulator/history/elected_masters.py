"""Elected masters: which replica of each broker group served as its master, from when on, in controller mode."""

import json
from collections.abc import Callable, Mapping, Sequence
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
        self._masters: dict[str, str] = {}
        """Mapping brokerName -> the node that began last to serve as its master."""
        self._switches: dict[str, list[MasterSwitch]] = {}
        self._first: dict[str, str] = {}
        """Mapping brokerName -> the node that served first."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs."""
        return {BELIEFS: self._belief}

    def switches(self, broker_name: str) -> Sequence[MasterSwitch]:
        """The switches of a broker group, in order."""
        return self._switches.get(broker_name, ())

    def at(self, broker_name: str, t_ns: int) -> str:
        """The node that had begun last to serve at an instant; empty: nobody has ever been elected."""
        before = [item.master for item in self.switches(broker_name) if item.t_ns <= t_ns]
        return before[-1] if before else self._first.get(broker_name, "")

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.BROKER_ROLE or not row.value_hash:
            return
        role = json.loads(row.value)
        # While a replica changes its role it may say that it serves for another one.
        if role["serves_as"] != _MASTER or role["master"] != role["replica"]:
            return
        before = self._masters.get(row.subject, "")
        self._masters[row.subject] = row.node
        self._first.setdefault(row.subject, row.node)
        if before not in ("", row.node):
            self._switches.setdefault(row.subject, []).append(MasterSwitch(row.t_ns, before, row.node))
