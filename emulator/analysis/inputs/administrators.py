"""Acts of administrators: what each changed, and for which group consumption is switched off."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import AdminRow
from emulator.history.steps import Steps
from emulator.trace.schema import ADMIN, TraceTable
from nodes.protocol.admin_request import Changed
from nodes.protocol.administration import ADMIN_REQUESTS
from nodes.protocol.codes import RequestCode

_OFF = ("false", "False", False)


def changes_of(row: AdminRow) -> tuple[Changed, ...]:
    """What a request changed."""
    return ADMIN_REQUESTS[RequestCode[row.request]].changes


def changes_group(row: AdminRow, group: str, change: Changed) -> bool:
    """Whether a request changed something of a group."""
    return row.group == group and change in changes_of(row)


class Administrators(Watcher):
    """Collects acts of administrators."""

    def __init__(self) -> None:
        self.rows: list[AdminRow] = []
        """All acts, in order."""
        self._off: dict[tuple[str, str], Steps[bool]] = {}
        """Mapping group and brokerName -> whether consumption is switched off."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads acts of administrators."""
        return {ADMIN: self._read}

    def is_off(self, group: str, broker_name: str, t_ns: int) -> bool:
        """Whether an administrator had switched the consumption of a group off at a broker."""
        steps = self._off.get((group, broker_name))
        return steps is not None and steps.at(t_ns)

    def instants(self, group: str, broker_name: str) -> list[int]:
        """When the consumption of a group was switched off or on at a broker."""
        steps = self._off.get((group, broker_name))
        return [] if steps is None else list(steps.times_ns)

    def _read(self, row: AdminRow) -> None:
        self.rows.append(row)
        detail = json.loads(row.detail)
        enabled = detail.get("consumeEnable", detail.get("readable"))
        if row.group and enabled is not None:
            steps = self._off.setdefault((row.group, row.broker_name), Steps(initial=False))
            steps.set(row.seq, row.began_ns, enabled in _OFF)
