"""Whether what a fault hits can have started: the earliest start of each node, and the faults that come before it.

Nodes start kind by kind; `emulator.cluster.starting` does it, and a test compares the two.
"""

from collections.abc import Iterator

from emulator.spec.model.scenario import Scenario
from emulator.spec.refusals.restarts import hit_by
from emulator.spec.tables.mistakes import SpecError
from faults.consume_mode import SetConsumeMode
from faults.fault import Fault
from faults.rebalance import RebalanceFault
from faults.scale import Scale
from faults.target import Lead, Leading, Target
from nodes.protocol.model import MASTER_ID


def earliest_starts_ms(scenario: Scenario) -> dict[str, int]:
    """Mapping node -> earliest instant of its planned start, whatever the seed, in ms since the run began.

    Each kind starts when the previous one is ready and its spread is over.
    """
    spread_ms = scenario.nameserver_start_spread_ms
    found = dict.fromkeys((spec.name for spec in scenario.nameservers), 0)
    found |= dict.fromkeys(scenario.by_role()["address-server"], 0)
    found |= dict.fromkeys((spec.name for spec in scenario.controllers), spread_ms)
    servers_ms = spread_ms * (2 if scenario.controllers else 1)
    after_ms: dict[str, int] = {}
    for spec in scenario.brokers:
        machine = spec.container or spec.name
        after_ms.setdefault(machine, spec.start_after_ms)  # a container starts with the first of its brokers
        found[machine] = found[spec.name] = servers_ms + after_ms[machine]
    found |= dict.fromkeys(scenario.added_later(), scenario.run_for_ms) | _started_by_acts_ms(scenario)
    window_ms = max(after_ms.values(), default=0) + scenario.broker_start_spread_ms + scenario.broker_boot_spread_ms
    clients_ms = servers_ms + window_ms
    late_ms = {name: spec.start_after_ms for spec in scenario.consumers for name in spec.names}
    late_ms |= {spec.name: spec.start_after_ms for spec in scenario.producers}
    others = (name for name in scenario.node_names() if name not in found)
    return found | {name: clients_ms + late_ms.get(name, 0) for name in others}


def _started_by_acts_ms(scenario: Scenario) -> dict[str, int]:
    """Mapping node that is added later -> instant of the first act that starts it."""
    later = scenario.added_later()
    acts = sorted(scenario.acts, key=lambda timed: -timed.at_ms)
    started = ((timed, timed.act.concerns()) for timed in acts if timed.act.kind in ("start_node", "add_broker"))
    return {name: timed.at_ms for timed, of in started if (name := of.process or of.contained) in later}


def faults_before_the_start(scenario: Scenario) -> Iterator[SpecError]:
    """The faults that can hit nothing, since nothing of what they need can have started when they begin."""
    starts_ms = earliest_starts_ms(scenario)
    for i, timed in enumerate(scenario.faults.faults):
        for nodes in filter(None, _needed_at_begin(scenario, timed.fault)):
            first = min(nodes, key=lambda name: starts_ms.get(name, 0))
            if timed.at_ms < starts_ms.get(first, 0):
                yield SpecError(
                    f"fault[{i}].at_ms",
                    f"expected an instant not before {starts_ms[first]} ms, the earliest start of {first}: "
                    f"{timed.fault.kind.replace('_', ' ')} hits what has started",
                )
                break


def _needed_at_begin(scenario: Scenario, fault: Fault) -> Iterator[tuple[str, ...]]:
    """Nodes of which one at least must have started when a fault begins, for each condition."""
    masters = [spec for spec in scenario.brokers if spec.broker_id == MASTER_ID]
    match fault:
        case RebalanceFault():
            yield tuple(spec.name for spec in scenario.brokers)
        case SetConsumeMode():
            yield tuple(spec.name for spec in masters if fault.broker in (None, spec.broker_name))
        case Scale():
            statefulset = scenario.statefulset_of(fault.scope.group)
            yield () if statefulset is None else (statefulset.api,)
        case _:
            for _, target in fault.scope.targets():
                if isinstance(target, Leading) or fault.hits_only_at_begin:
                    yield _candidates(scenario, target)


def _candidates(scenario: Scenario, target: Target) -> tuple[str, ...]:
    if isinstance(target, Leading) and target.lead in (Lead.ACTING_MASTER, Lead.MASTER, Lead.SLAVES):
        return tuple(spec.name for spec in scenario.brokers if spec.broker_name == target.of)
    return hit_by(scenario, target)
