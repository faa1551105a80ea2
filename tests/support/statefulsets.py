"""Scenarios with a StatefulSet of consumers, and what their traces say about pods and messages."""

from typing import Any

import attrs

from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario, StatefulSetSpec
from emulator.testing import GROUP, TOPIC, Trace, a_scenario
from nodes.config import AllocateStrategy, ConsumerConfig, StatefulSetConfig

ORDINAL = ConsumerConfig(allocate_message_queue_strategy=AllocateStrategy.ORDINAL)


def a_statefulset(
    replicas: int,
    *,
    config: StatefulSetConfig | None = None,
    consumer: ConsumerConfig = ORDINAL,
    consume_ms: int = 0,
    scaler: str | None = None,
    **options: Any,
) -> Scenario:
    """A small cluster whose group `g` consists of the pods `consumer-0`, `consumer-1`, ..."""
    spec = StatefulSetSpec(GROUP, replicas=replicas, config=config or StatefulSetConfig(), scaler=scaler)
    base = a_scenario(**options)
    topics = tuple(topic.name for topic in base.topics)
    group = ConsumerGroupSpec(GROUP, spec.pod_names(), topics, consumer, consume_ms)
    return attrs.evolve(base, consumers=(group,), statefulsets=(spec,))


def pods(trace: Trace) -> list[tuple[float, dict[str, str]]]:
    """When the API server believed what of the pods: (ms, pod -> phase)."""
    return [(row.at_ms, row.held["pods"]) for row in trace.select("beliefs", kind="pods")]


def ready_ms(trace: Trace, pod: str) -> float:
    """When a pod was ready for the first time."""
    return next(at_ms for at_ms, phases in pods(trace) if phases.get(pod) == "ready")


@attrs.frozen
class Processed:
    """A message that a listener had, from one instant to another."""

    node: str
    queue_id: int
    offset: int
    begin_ms: float
    end_ms: float

    def meets(self, other: "Processed") -> bool:
        """Whether both were in process at one instant."""
        return self.begin_ms < other.end_ms and other.begin_ms < self.end_ms


def processed(trace: Trace, consume_ms: int) -> list[Processed]:
    """What listeners had; what returns when a process is resumed was in process since it was suspended, at least."""
    suspended_ms: dict[tuple[str, float], float] = {}
    last: dict[str, float] = {}
    for row in trace.rows["lifecycle"]:
        if row.event == "suspended":
            last[row.node] = row.at_ms
        elif row.event == "resumed":
            suspended_ms[row.node, row.at_ms] = last[row.node]
    return [
        Processed(
            row.node,
            row.queue_id,
            row.offset,
            suspended_ms.get((row.node, row.at_ms), row.at_ms - consume_ms),
            row.at_ms,
        )
        for row in trace.select("messages", event="consumed", topic=TOPIC)
    ]


def at_once(done: list[Processed]) -> list[tuple[Processed, Processed]]:
    """Pairs of messages of one queue that two consumers had at the same time."""
    pairs = ((a, b) for i, a in enumerate(done) for b in done[i + 1 :] if a.queue_id == b.queue_id)
    return [(a, b) for a, b in pairs if a.node != b.node and a.meets(b)]


def twice_at_once(done: list[Processed]) -> list[tuple[Processed, Processed]]:
    """Pairs of the same message that two consumers had at the same time."""
    return [(a, b) for a, b in at_once(done) if a.offset == b.offset]
