"""Scenarios with a StatefulSet of consumers, and what their traces say about pods and messages."""

from typing import Any

import attrs

from emulator.spec.model import ConsumerGroupSpec, Scenario, StatefulSetSpec
from emulator.testing import GROUP, TOPIC, Trace, a_scenario
from nodes.config import AllocateStrategy, ConsumerConfig, StatefulSetConfig

ORDINAL = ConsumerConfig(allocate_message_queue_strategy=AllocateStrategy.ORDINAL)


def a_statefulset(
    replicas: int,
    *,
    config: StatefulSetConfig | None = None,
    consumer: ConsumerConfig = ORDINAL,
    consume_ms: int = 0,
    **options: Any,
) -> Scenario:
    """A small cluster whose group `g` consists of the pods `consumer-0`, `consumer-1`, ..."""
    spec = StatefulSetSpec(GROUP, replicas=replicas, config=config or StatefulSetConfig())
    group = ConsumerGroupSpec(GROUP, spec.pod_names(), (TOPIC,), consumer, consume_ms)
    base = a_scenario(**options)
    return attrs.evolve(base, consumers=(group,), statefulsets=(spec,))


def pods(trace: Trace) -> list[tuple[float, dict[str, str]]]:
    """When the API server believed what of the pods: (ms, pod -> phase)."""
    return [(row.at_ms, row.held["pods"]) for row in trace.select("beliefs", kind="pods")]


def ready_ms(trace: Trace, pod: str) -> float:
    """When a pod was ready for the first time."""
    return next(at_ms for at_ms, phases in pods(trace) if phases.get(pod) == "ready")
