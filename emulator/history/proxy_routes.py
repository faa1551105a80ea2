"""Routes of clients of RocketMQ 5: which proxies a client calls, as the route that a proxy gave it says."""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import BeliefRow
from emulator.history.steps import Steps
from emulator.trace.schema import BELIEFS, TraceTable
from nodes.beliefs import BeliefKind


class ProxyRoutes(Watcher):
    """Collects the endpoints of routes.

    Args:
        node_of: the node of an address.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, node_of: Callable[[str], str]) -> None:
        self._node_of = node_of
        self._proxies: dict[str, Steps[tuple[str, ...]]] = {}
        """Mapping client -> the proxies of its newest route."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs."""
        return {BELIEFS: self._belief}

    def proxies_of(self, node: str, t_ns: int) -> tuple[str, ...]:
        """The proxies that a client called at an instant; none: it calls brokers, or has no route."""
        steps = self._proxies.get(node)
        return () if steps is None else steps.at(t_ns)

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.PROXY_ROUTE:
            return
        route: dict[str, Any] = json.loads(row.value) if row.value_hash else {}
        addresses = dict.fromkeys(address for entry in route.values() for address in entry["endpoints"])
        proxies = tuple(dict.fromkeys(map(self._node_of, addresses)))
        self._proxies.setdefault(row.node, Steps(())).set(row.seq, row.t_ns, proxies)
