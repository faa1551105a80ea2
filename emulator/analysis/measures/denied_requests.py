"""Requests that brokers and proxies refuse by their users and permissions, for as long as the same is refused.

A client that is denied once, such as before its policy is there, is no complaint: what counts is the time from the
first denial to the last one, or until the same is allowed. Denials of the same that are more than a minute apart are
two, since no task of a client has a longer period than 30 s.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow
from emulator.trace.schema import BELIEFS, TraceTable
from nodes.beliefs import BeliefKind
from nodes.units import NS_PER_S

_APART_NS = 60 * NS_PER_S


@attrs.frozen
class DeniedRequests:
    """A broker or a proxy denied a client the same request again and again."""

    node: str
    """The broker or the proxy."""
    user: str
    """As the requests name it; empty: they name none."""
    client: str
    """Address of the client."""
    request: str
    """RocketMQ's name of the request code."""
    resource: str
    """What may not be accessed, such as `Topic:orders`; empty: the user is refused, or no resource is named."""
    actions: tuple[str, ...]
    """Of which one would have to be allowed, such as `Sub`."""
    start_ns: int
    """The first denial."""
    end_ns: int
    """The last one, or when the same was allowed."""
    denied: int
    """Requests that were refused."""
    reason: str
    """What it answered the last time."""
    subject: str
    """Of its belief `denied`, such as `billing/127.1.10.1/PULL_MESSAGE/Group:billing`."""


DENIED = FindingTable("denied_requests", DeniedRequests, "a client was denied the same request again and again")


class Denials(Watcher):
    """Follows what brokers deny."""

    settles_after_messages: ClassVar[bool] = False

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], DeniedRequests] = {}
        self._found: list[DeniedRequests] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs of brokers and proxies."""
        return {BELIEFS: self._belief}

    def found(self) -> tuple[DeniedRequests, ...]:
        """All denials, in order of time."""
        every = [*self._found, *self._open.values()]
        return tuple(sorted(every, key=lambda item: (item.start_ns, item.node, item.user, item.request, item.resource)))

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.DENIED:
            return
        key, value = (row.node, row.subject), json.loads(row.value)
        before = self._open.get(key)
        if before is not None and (value is None or row.t_ns - before.end_ns > _APART_NS):
            ended_ns = row.t_ns if value is None else before.end_ns
            self._found.append(attrs.evolve(self._open.pop(key), end_ns=ended_ns))
            before = None
        if value is None:
            return
        denied, reason = value["denied"] + (0 if before is None else before.denied), value["reason"]
        if before is None:
            names = (row.node, value["user"], value["ip"], value["request"], value["resource"])
            before = DeniedRequests(*names, tuple(value["actions"]), row.t_ns, row.t_ns, 0, "", row.subject)
        self._open[key] = attrs.evolve(before, end_ns=row.t_ns, denied=denied, reason=reason)
