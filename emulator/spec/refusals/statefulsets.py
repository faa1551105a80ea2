"""Whether the StatefulSets of a scenario fit its consumer groups, and whether these can be exclusive."""

from collections.abc import Iterator, Mapping, Sequence

from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario, StatefulSetSpec
from emulator.spec.tables.mistakes import NameMistakeError, SpecError, suggestion
from nodes.config import (
    AllocateStrategy,
    Exclusivity,
    LitePullConsumerConfig,
    LockServiceKind,
    PullConsumerConfig,
)
from nodes.fields import shown
from nodes.protocol.model import MessageModel


def violations_of_statefulsets(scenario: Scenario) -> Iterator[SpecError]:
    """StatefulSets without a group, pods that are no push consumers, and exclusivity that cannot be."""
    by_group: dict[str, int] = {}
    by_name: dict[str, int] = {}
    groups = {group.group: place for place, group in reversed(list(enumerate(scenario.consumers)))}
    for i, spec in enumerate(scenario.statefulsets):
        key = f"statefulset[{i}]"
        if spec.group in by_group:
            yield SpecError(f"{key}.group", f"expected a group of its own, {spec.group} has one already")
        if spec.name in by_name:
            yield SpecError(f"{key}.name", f"expected a name of its own, {spec.name} is taken")
        yield from _violations_of_names(scenario, i)
        if spec.group not in groups:
            problem = f'unknown group "{shown(spec.group)}"; {suggestion(spec.group, list(groups))}'
            yield NameMistakeError(f"{key}.group", problem, "group")
        elif spec.group not in by_group and spec.name not in by_name:
            place = groups[spec.group]
            yield from _violations_of_pods(place, scenario.consumers[place], spec, scenario.consumers)
        by_group[spec.group] = by_name[spec.name] = i
    if all(spec.group in groups for spec in scenario.statefulsets):
        yield from _violations_of_strategies(scenario.consumers, by_group)
    yield from _violations_of_exclusivity(scenario.consumers)
    yield from _violations_of_lock_services(scenario.consumers)


def _violations_of_names(scenario: Scenario, place: int) -> Iterator[SpecError]:
    spec, key = scenario.statefulsets[place], f"statefulset[{place}]"
    taken = [name for name in scenario.node_names() if spec.is_pod(name) and name not in spec.pod_names()]
    if taken:
        problem = f"expected a name whose pods are no other nodes: {taken[0]} is one"
        yield NameMistakeError(f"{key}.name", problem, "node")
    sharing = (
        []
        if spec.scaler is None
        else [statefulset for statefulset in scenario.statefulsets[:place] if statefulset.scaler == spec.scaler]
    )
    if any(other.api != spec.api for other in sharing):
        yield SpecError(f"{key}.scaler", f"expected a scaler of its own: {spec.scaler} asks {sharing[0].api}")


def _violations_of_pods(
    place: int, group: ConsumerGroupSpec, spec: StatefulSetSpec, groups: Sequence[ConsumerGroupSpec]
) -> Iterator[SpecError]:
    key = f"consumer[{place}]"
    if group.share_process_with is not None or any(item.share_process_with == group.group for item in groups):
        yield SpecError(f"{key}.share_process_with", "expected none in a StatefulSet: a pod consumes for one group")
    if group.names != spec.pod_names():
        text = ", ".join(spec.pod_names()[:2]) or "none"
        problem = f"expected the names of the pods of {spec.name}, which begin with {text}"
        yield NameMistakeError(f"{key}.names", problem, "statefulset")
    if isinstance(group.config, LitePullConsumerConfig):
        yield SpecError(f"{key}.lite_pull", "expected false in a StatefulSet: its pods are push consumers")
    if isinstance(group.config, PullConsumerConfig):
        yield SpecError(f"{key}.classic_pull", "expected false in a StatefulSet: its pods are push consumers")
    if group.start_after_ms:
        yield SpecError(f"{key}.start_after_ms", "expected none in a StatefulSet: its API server starts the pods")
    if group.one_address:
        yield SpecError(f"{key}.one_address", "expected false in a StatefulSet: each pod has an address")


def _violations_of_strategies(groups: Sequence[ConsumerGroupSpec], by_group: Mapping[str, int]) -> Iterator[SpecError]:
    for place, group in enumerate(groups):
        key, config = f"consumer[{place}].options", group.config
        if config.allocate_message_queue_strategy is not AllocateStrategy.ORDINAL:
            continue
        if group.group not in by_group:
            problem = f"expected a [[statefulset]] of {group.group} with ORDINAL: only its pods have ordinals"
            yield NameMistakeError(f"{key}.allocateMessageQueueStrategy", problem, "statefulset")
        if config.message_model is MessageModel.BROADCASTING:
            yield SpecError(f"{key}.messageModel", "expected CLUSTERING with ORDINAL: broadcasting allocates no queues")
        if config.partition_prefix is not None:
            names = (f"{config.partition_prefix}{number}" for number in range(config.partition_count))
            missing = next((name for name in names if name not in group.topics), None)
            if missing is not None:
                yield SpecError(f"consumer[{place}].topics", f"expected each partition, {missing} is missing")
        if not config.client_rebalance:
            yield SpecError(f"{key}.clientRebalance", "expected true with ORDINAL: no broker knows ordinals")


_BLOB_LEASE_MS = (15_000, 60_000)
"""What Azure Storage lends a blob for; endless leases are not emulated."""


def _violations_of_lock_services(groups: Sequence[ConsumerGroupSpec]) -> Iterator[SpecError]:
    leasing = [place for place, group in enumerate(groups) if group.config.exclusivity is Exclusivity.LEASE]
    for place in leasing:
        key, config, first = f"consumer[{place}].options", groups[place].config, groups[leasing[0]]
        if config.lock_service is not first.config.lock_service:
            problem = f"expected {first.config.lock_service}, as {first.group} has: a scenario has one lock service"
            yield SpecError(f"{key}.lockService", problem)
        if config.fencing and config.lock_service is LockServiceKind.REDLOCK:
            problem = "expected false with redlock: its nodes have no number that grows from holder to holder"
            yield SpecError(f"{key}.fencing", problem)
        low, high = _BLOB_LEASE_MS
        if config.lock_service is LockServiceKind.BLOB and not low <= config.lease_duration_ms <= high:
            yield SpecError(f"{key}.leaseDurationMs", f"expected {low} to {high} ms with blob")
    for place in (number for number in range(len(groups)) if number not in leasing):
        if groups[place].config.fencing:
            problem = 'expected false without exclusivity = "lease": there is no lock whose number could be sent'
            yield SpecError(f"consumer[{place}].options.fencing", problem)


def _violations_of_exclusivity(groups: Sequence[ConsumerGroupSpec]) -> Iterator[SpecError]:
    shared = [group.share_process_with for group in groups]
    for place, group in enumerate(groups):
        key, config = f"consumer[{place}].options", group.config
        if config.lease_duration_ms <= config.lease_renew_interval_ms:
            expected = f"expected more than leaseRenewIntervalMs, {config.lease_renew_interval_ms} ms"
            yield SpecError(f"{key}.leaseDurationMs", f"{expected}: a lease would end before it is renewed")
        if config.exclusivity is Exclusivity.NONE:
            continue
        if config.message_model is MessageModel.BROADCASTING:
            yield SpecError(f"{key}.exclusivity", "expected none with BROADCASTING: every member consumes all queues")
        if config.consume_orderly:
            yield SpecError(f"{key}.exclusivity", "expected none with consumeOrderly: brokers lock its queues")
        if group.share_process_with is not None or group.group in shared:
            yield SpecError(f"{key}.exclusivity", "expected none in a process that consumes for several groups")
