"""StatefulSets of Kubernetes whose pods are consumers: replicas, policies, probes, and the partitions of the design."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import attrs

from emulator.importing.manifests import environment_of, name_of
from emulator.importing.settings import ConfigurationError
from emulator.importing.yaml_files import YamlValue
from emulator.spec.model.bounds import NODE_NAME
from faults.scale import MEMBERS_MAX
from nodes.config.statefulset import PodManagementPolicy, UpdateStrategy
from nodes.fields import shown
from nodes.protocol.headers_statefulset import ProbePath

PARTITIONS_MAX = 1_000
_TOPIC = "orders"
_PROBE_KEYS = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold")


@attrs.frozen
class ImportedStatefulSet:
    """A StatefulSet and the group of its pods, as tables of a scenario."""

    table: Mapping[str, Any]
    options: Mapping[str, Any]
    places: Mapping[str, str]
    """Option -> `FILE:LINE` that sets it."""
    topics: tuple[str, ...]
    consumer_options: Mapping[str, Any]
    source: str
    line: int
    notes: tuple[str, ...]
    """What else a reader should know."""


def statefulsets_of(resources: Sequence[YamlValue]) -> Iterator[ImportedStatefulSet]:
    """The StatefulSets among resources; their pods are taken for consumers.

    Raises:
        ConfigurationError: a value cannot be used.
    """
    for resource in resources:
        if resource.get("kind").text == "StatefulSet":
            yield _statefulset(resource)


def _statefulset(resource: YamlValue) -> ImportedStatefulSet:
    spec, name = resource.get("spec"), name_of(resource)
    if not NODE_NAME.holds(name):
        raise ConfigurationError(resource.source, resource.line, f"metadata.name: {NODE_NAME.problem(name)}")
    replicas = spec.get("replicas").whole(1)
    if not 0 <= replicas <= MEMBERS_MAX:
        line = spec.get("replicas").line
        raise ConfigurationError(resource.source, line, f"spec.replicas: expected 0 to {MEMBERS_MAX}, not {replicas}")
    found = {option: value for option, value in _options(spec) if not value[0].is_null}
    topics, consumer_options, notes = _partitions(spec)
    return ImportedStatefulSet(
        {"name": name, "group": name, "replicas": replicas},
        {option: value for option, (_, value) in found.items()},
        {option: f"{item.source}:{item.line}" for option, (item, _) in found.items()},
        topics,
        {"allocateMessageQueueStrategy": "ORDINAL", **consumer_options},
        resource.source,
        resource.line,
        notes,
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


def _partitions(spec: YamlValue) -> tuple[tuple[str, ...], Mapping[str, Any], tuple[str, ...]]:
    """Topics, options of the consumers, and notes: the variables of the design name its partitions."""
    containers = list(spec.get("template", "spec", "containers").items())[:1]
    variables = {name: (text, line) for item in containers for name, text, line in environment_of(item, {})}
    count, line = variables.get("PartitionCount", ("", 0))
    prefix = variables.get("PartitionQueuePrefix", (_TOPIC, 0))[0]
    if not count:
        return (_TOPIC,), {}, ("The manifest names no partitions: the queues of one topic stand for them.",)
    if not count.isdigit() or not 1 <= int(count) <= PARTITIONS_MAX:
        problem = f"PartitionCount: expected 1 to {PARTITIONS_MAX}, not {shown(count)}"
        raise ConfigurationError(spec.source, line, problem)
    topics = tuple(f"{prefix}{number}" for number in range(int(count)))
    return topics, {"partitionPrefix": prefix, "partitionCount": int(count)}, ()
