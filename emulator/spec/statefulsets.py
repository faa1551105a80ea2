"""Whether the StatefulSets of a scenario fit its consumer groups, and whether these can be exclusive."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from emulator.spec.section import SpecError, expect_known
from nodes.config import AllocateStrategy, ConsumerConfig, Exclusivity, LitePullConsumerConfig
from nodes.protocol.model import MessageModel


class _StatefulSet(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def api(self) -> str: ...
    @property
    def scaler(self) -> str | None: ...
    def pod_names(self) -> tuple[str, ...]: ...
    def is_pod(self, node: str) -> bool: ...


class _Group(Protocol):
    @property
    def group(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def config(self) -> ConsumerConfig: ...
    @property
    def share_process_with(self) -> str | None: ...
    @property
    def one_address(self) -> bool: ...


class _Scenario(Protocol):
    @property
    def consumers(self) -> Sequence[_Group]: ...
    @property
    def statefulsets(self) -> Sequence[_StatefulSet]: ...
    def node_names(self) -> tuple[str, ...]: ...


def check_statefulsets(scenario: _Scenario) -> None:
    """Refuse StatefulSets without a group, pods that are no push consumers, and exclusivity that cannot be.

    Raises:
        SpecError: the first mistake.
    """
    by_group: dict[str, int] = {}
    by_name: dict[str, int] = {}
    groups = {group.group: place for place, group in reversed(list(enumerate(scenario.consumers)))}
    for i, spec in enumerate(scenario.statefulsets):
        expect_known(f"statefulset[{i}].group", "group", spec.group, list(groups))
        if spec.group in by_group:
            raise SpecError(f"statefulset[{i}].group", f"expected a group of its own, {spec.group} has one already")
        if spec.name in by_name:
            raise SpecError(f"statefulset[{i}].name", f"expected a name of its own, {spec.name} is taken")
        by_group[spec.group] = by_name[spec.name] = i
        taken = [name for name in scenario.node_names() if spec.is_pod(name) and name not in spec.pod_names()]
        if taken:
            raise SpecError(
                f"statefulset[{i}].name", f"expected a name whose pods are no other nodes: {taken[0]} is one"
            )
        sharing = [] if spec.scaler is None else [it for it in scenario.statefulsets[:i] if it.scaler == spec.scaler]
        if any(other.api != spec.api for other in sharing):
            what = f"expected a scaler of its own: {spec.scaler} asks {sharing[0].api}"
            raise SpecError(f"statefulset[{i}].scaler", what)
        _check_pods(groups[spec.group], scenario.consumers[groups[spec.group]], spec, scenario.consumers)
    _check_strategies(scenario.consumers, by_group)
    _check_exclusivity(scenario.consumers)


def _check_pods(place: int, group: _Group, spec: _StatefulSet, groups: Sequence[_Group]) -> None:
    key = f"consumer[{place}]"
    if group.share_process_with is not None or any(it.share_process_with == group.group for it in groups):
        raise SpecError(f"{key}.share_process_with", "expected none in a StatefulSet: a pod consumes for one group")
    if group.names != spec.pod_names():
        told = ", ".join(spec.pod_names()[:2]) or "none"
        raise SpecError(f"{key}.names", f"expected the names of the pods of {spec.name}, which begin with {told}")
    if isinstance(group.config, LitePullConsumerConfig):
        raise SpecError(f"{key}.lite_pull", "expected false in a StatefulSet: its pods are push consumers")
    if group.one_address:
        raise SpecError(f"{key}.one_address", "expected false in a StatefulSet: each pod has an address")


def _check_strategies(groups: Sequence[_Group], by_group: Mapping[str, int]) -> None:
    for place, group in enumerate(groups):
        key, config = f"consumer[{place}].options", group.config
        if config.allocate_message_queue_strategy is not AllocateStrategy.ORDINAL:
            continue
        if group.group not in by_group:
            raise SpecError(
                f"{key}.allocateMessageQueueStrategy",
                f"expected a [[statefulset]] of {group.group} with ORDINAL: only its pods have ordinals",
            )
        if config.message_model is MessageModel.BROADCASTING:
            raise SpecError(f"{key}.messageModel", "expected CLUSTERING with ORDINAL: broadcasting divides no queues")
        if config.partition_prefix is not None:
            names = (f"{config.partition_prefix}{number}" for number in range(config.partition_count))
            missing = next((name for name in names if name not in group.topics), None)
            if missing is not None:
                raise SpecError(f"consumer[{place}].topics", f"expected each partition, {missing} is missing")
        if not config.client_rebalance:
            raise SpecError(f"{key}.clientRebalance", "expected true with ORDINAL: no broker knows ordinals")


def _check_exclusivity(groups: Sequence[_Group]) -> None:
    shared = [group.share_process_with for group in groups]
    for place, group in enumerate(groups):
        key, config = f"consumer[{place}].options", group.config
        if config.lease_duration_ms <= config.lease_renew_interval_ms:
            expected = f"expected more than leaseRenewIntervalMs, {config.lease_renew_interval_ms} ms"
            raise SpecError(f"{key}.leaseDurationMs", f"{expected}: a lease would end before it is renewed")
        if config.exclusivity is Exclusivity.NONE:
            continue
        if config.message_model is MessageModel.BROADCASTING:
            raise SpecError(f"{key}.exclusivity", "expected none with BROADCASTING: every member consumes all queues")
        if config.consume_orderly:
            raise SpecError(f"{key}.exclusivity", "expected none with consumeOrderly: brokers lock its queues")
        if group.share_process_with is not None or group.group in shared:
            raise SpecError(f"{key}.exclusivity", "expected none in a process that consumes for several groups")
