"""What the planned restarts of a scenario change, node by node."""

from collections.abc import Iterator

import attrs

from emulator.spec.model.scenario import Scenario
from emulator.spec.refusals.restarts import changed_configs, hit_by, rolling_order
from faults.plan import TimedFault
from faults.reconfigure import Reconfigure, Upgrade
from faults.target import NodePool
from nodes.config import Config


@attrs.frozen
class RestartChange:
    """The options of a node, or of one of the consumers of its process, change with a restart."""

    at_ms: int
    node: str
    group: str
    """Consumer group; empty for other roles."""
    before: Config
    after: Config
    key: str
    """Path of the fault's table."""


def changes(scenario: Scenario) -> tuple[RestartChange, ...]:
    """The changes of a scenario in order of time.

    Nodes that the seed draws are left out, and so are nemeses.
    """
    now: dict[str, tuple[tuple[str, Config], ...]] = {}
    found: list[RestartChange] = []
    for at_ms, node, key, fault in sorted(_steps(scenario), key=lambda step: step[0]):
        before = now.get(node) or scenario.configs_of(node)
        now[node] = changed_configs(before, node, fault.options, key)
        pairs = zip(before, now[node], strict=True)
        found += [RestartChange(at_ms, node, group, old, new, key) for (group, old), (_, new) in pairs]
    return tuple(found)


def _restarts(scenario: Scenario) -> list[tuple[int, TimedFault]]:
    faults = enumerate(scenario.faults.faults)
    return [(i, fault) for i, fault in faults if isinstance(fault.fault, Reconfigure | Upgrade) and fault.fault.options]


def _steps(scenario: Scenario) -> Iterator[tuple[int, str, str, Reconfigure | Upgrade]]:
    """(instant, node, path of the fault's table, fault) of each planned restart with other options."""
    for i, timed in _restarts(scenario):
        fault = timed.fault
        assert isinstance(fault, Reconfigure | Upgrade)
        for _, target in fault.scope.targets():
            if isinstance(target, NodePool) and target.share is not None:
                continue
            names = hit_by(scenario, target)
            apart_ms = fault.apart_ms if isinstance(fault, Upgrade) else 0
            if isinstance(fault, Upgrade):
                names = rolling_order(scenario, names, fault.order)
            for number, node in enumerate(names):
                at_ms = timed.at_ms + number * apart_ms
                if at_ms < min(scenario.run_for_ms, timed.end_ms or scenario.run_for_ms):
                    yield at_ms, node, f"fault[{i}]", fault
