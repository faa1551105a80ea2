"""StatefulSets of Kubernetes whose pods are consumers: replicas, policies, probes, and the partitions of the design.

The design is a blog post's: queues are partitions, a message goes to one of them by the hash of its key, and a queue
has one consumer at a time. `PartitionCount` and `PartitionQueuePrefix` in the environment name the queues.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import attrs

from emulator.importing.manifests import environment_of, name_of
from emulator.importing.settings import ConfigurationError
from emulator.importing.yaml_files import YamlValue
from emulator.spec.tables.bounds import NODE_NAME
from faults.scale import MEMBERS_MAX
from nodes.client.producer.keys import PARTITIONS_MAX, TopicPartitions
from nodes.client.tables.queue_selectors import KeyHash
from nodes.config import Exclusivity
from nodes.config.statefulset import PodManagementPolicy, UpdateStrategy
from nodes.fields import shown
from nodes.protocol.headers_statefulset import ProbePath

_TOPIC = "orders"
_LOAD = {"group": "load", "rate_per_s": 10}
_ORDINAL = {"allocateMessageQueueStrategy": "ORDINAL"}
_KEYS = 1_000
_SENDING = ("Deployment", "ReplicaSet", "DaemonSet", "Pod")
_COUNT, _PREFIX = "PartitionCount", "PartitionQueuePrefix"
_PROBE_KEYS = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold")


@attrs.frozen
class ImportedDesign:
    """What pods consume, how they share it, and what sends it, as tables of a scenario."""

    topics: tuple[Mapping[str, Any], ...]
    consumer_options: Mapping[str, Any]
    consumer_note: str
    producer: Mapping[str, Any]
    producer_notes: tuple[str, ...] = ()


@attrs.frozen
class ImportedStatefulSet:
    """A StatefulSet and the group of its pods, as tables of a scenario."""

    table: Mapping[str, Any]
    options: Mapping[str, Any]
    places: Mapping[str, str]
    """Option -> `FILE:LINE` that sets it."""
    design: ImportedDesign
    source: str
    line: int


def statefulsets_of(resources: Sequence[YamlValue]) -> Iterator[ImportedStatefulSet]:
    """The StatefulSets among resources; their pods are taken for consumers.

    Raises:
        ConfigurationError: a value cannot be used.
    """
    senders = [resource for resource in resources if resource.get("kind").text in _SENDING]
    for resource in resources:
        if resource.get("kind").text == "StatefulSet":
            yield _statefulset(resource, senders)


def _statefulset(resource: YamlValue, senders: Sequence[YamlValue]) -> ImportedStatefulSet:
    spec, name = resource.get("spec"), name_of(resource)
    if not NODE_NAME.holds(name):
        raise ConfigurationError(resource.source, resource.line, f"metadata.name: {NODE_NAME.problem(name)}")
    replicas = spec.get("replicas").whole(1)
    if not 0 <= replicas <= MEMBERS_MAX:
        line = spec.get("replicas").line
        raise ConfigurationError(resource.source, line, f"spec.replicas: expected 0 to {MEMBERS_MAX}, not {replicas}")
    found = {option: value for option, value in _options(spec) if not value[0].is_null}
    partitions = _partitions(spec.get("template", "spec"))
    design = _without_partitions() if partitions is None else _with_partitions(partitions, senders)
    return ImportedStatefulSet(
        {"name": name, "group": name, "replicas": replicas},
        {option: value for option, (_, value) in found.items()},
        {option: f"{item.source}:{item.line}" for option, (item, _) in found.items()},
        design,
        resource.source,
        resource.line,
    )


def _options(spec: YamlValue) -> Iterator[tuple[str, tuple[YamlValue, Any]]]:
    """(option of a StatefulSet here, (where it stands, its value)); where nothing stands, null."""
    policy, strategy = spec.get("podManagementPolicy"), spec.get("updateStrategy", "type")
    partition = spec.get("updateStrategy", "rollingUpdate", "partition")
    grace = spec.get("template", "spec", "terminationGracePeriodSeconds")
    yield "podManagementPolicy", (policy, _one_of(policy, "podManagementPolicy", PodManagementPolicy))
    yield "updateStrategy", (strategy, _one_of(strategy, "updateStrategy.type", UpdateStrategy))
    yield "partition", (partition, partition.whole(0))
    yield "terminationGracePeriodSeconds", (grace, grace.whole(30))
    for container in list(spec.get("template", "spec", "containers").items())[:1]:
        for kind in ("liveness", "readiness"):
            yield from _probe(kind, container.get(f"{kind}Probe"))


def _probe(kind: str, probe: YamlValue) -> Iterator[tuple[str, tuple[YamlValue, Any]]]:
    path = probe.get("httpGet", "path")
    if path.text in tuple(ProbePath):
        yield f"{kind}ProbePath", (path, path.text)
    for key in _PROBE_KEYS:
        value = probe.get(key)
        yield f"{kind}Probe{key[0].upper()}{key[1:]}", (value, value.whole(0))


def _one_of(value: YamlValue, key: str, kind: type[StrEnum]) -> str:
    if not value.is_null and value.text not in tuple(kind):
        problem = f"spec.{key}: expected one of {', '.join(kind)}, not {shown(value.text)}"
        raise ConfigurationError(value.source, value.line, problem)
    return value.text


def _without_partitions() -> ImportedDesign:
    return ImportedDesign(
        ({"name": _TOPIC},),
        _ORDINAL,
        "The manifest names no partitions: the queues of one topic stand for them.",
        {**_LOAD, "topic": _TOPIC},
    )


def _with_partitions(partitions: TopicPartitions, senders: Sequence[YamlValue]) -> ImportedDesign:
    """A topic of one queue for each partition: what has one order in the design has one here."""
    sender, notes = _sender(partitions, senders)
    exclusive = {"exclusivity": str(Exclusivity.SINGLE_ACTIVE)}
    by_key = {"keys": {"count": _KEYS}, "partitions": {**attrs.asdict(partitions), "by": str(partitions.by)}}
    return ImportedDesign(
        tuple({"name": topic, "queues": 1} for topic in partitions.topics),
        {**_ORDINAL, "partitionPrefix": partitions.prefix, "partitionCount": partitions.count, **exclusive},
        "A partition has one consumer at a time, as with RabbitMQ's x-single-active-consumer.",
        {**sender, **_LOAD, **by_key},
        notes,
    )


def _partitions(pod: YamlValue) -> TopicPartitions | None:
    """The partitions that the variables of the design name.

    Raises:
        ConfigurationError: their number cannot be used.
    """
    containers = list(pod.get("containers").items())[:1]
    variables = {name: (text, line) for item in containers for name, text, line in environment_of(item, {})}
    count, line = variables.get(_COUNT, ("", 0))
    if not count:
        return None
    if not count.isdigit() or not 1 <= int(count) <= PARTITIONS_MAX:
        raise ConfigurationError(pod.source, line, f"{_COUNT}: expected 1 to {PARTITIONS_MAX}, not {shown(count)}")
    return TopicPartitions(variables.get(_PREFIX, ("", 0))[0] or _TOPIC, int(count), KeyHash.MD5)


def _sender(partitions: TopicPartitions, senders: Sequence[YamlValue]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The name of what sends to partitions, where a resource has the same variables, and notes."""
    note = "The first 32 bits of the key's MD5, modulo the number of partitions, decide where a message goes."
    for resource in senders:
        kind, name = resource.get("kind").text, name_of(resource)
        pod = resource.get("spec") if kind == "Pod" else resource.get("spec", "template", "spec")
        if NODE_NAME.holds(name) and _partitions(pod) == partitions:
            place = f"{kind} {name}, {resource.source}:{resource.line}"
            return {"name": name}, (f"{place}: one producer stands for all of its pods.", note)
    return {}, (note,)
