"""Manifests of Kubernetes: StatefulSets, Deployments and Pods with their ConfigMaps, and the operator's resources.

Several documents may stand in a file, as Helm prints them. Of Services only the ports are taken that they publish;
claims and what else there is have no part in a scenario, since every emulated node finds every other one.
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

import attrs

from emulator.importing import not_taken
from emulator.importing.operator_resources import OPERATOR_KINDS, nodes_of_operator
from emulator.importing.property_files import settings_of_content
from emulator.importing.settings import ConfigurationError, ConfiguredNode, PublishedPort, Setting
from emulator.importing.startup import (
    Startup,
    in_process_note,
    settings_of_environment,
    startup_of,
    with_variables,
)
from emulator.importing.yaml_files import YamlValue
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.tables.bounds import BROKERS_MAX

_WITH_PODS = ("StatefulSet", "Deployment", "DaemonSet", "ReplicaSet", "Pod")
_NAMED_BY_NUMBER = ("StatefulSet",)
_CONFIG_MAP = "ConfigMap"
_LIST = "List"
_NETWORK = "kubernetes"
_SERVICE = "Service"
_NAME_OF_POD = "$(metadata.name)"
"""Stands for the name of the pod."""
_CHARS_PER_VISIT = 16
"""Texts that are made for each pod count as visits, too."""
_USUAL_FILES: Mapping[FileKind, tuple[str, ...]] = {
    FileKind.BROKER: ("broker.conf", "broker-common.conf"),
    FileKind.NAMESRV: ("namesrv.conf", "namesrv.properties", "nameserver.conf"),
    FileKind.CONTROLLER: ("controller.conf",),
    FileKind.CONTAINER: ("broker-container.conf",),
    FileKind.PROXY: ("rmq-proxy.json",),
}
"""Files that images read without a `-c` that names them."""


@attrs.frozen
class Manifests:
    """The resources of all files together: a ConfigMap may stand in another file than the pods that mount it."""

    resources: tuple[YamlValue, ...]

    def nodes(self) -> Iterator[ConfiguredNode]:
        """The nodes of RocketMQ, in the order of the files.

        Raises:
            ConfigurationError: a value cannot be used, or a file in a ConfigMap is no properties file.
        """
        maps = {name_of(item): item.get("data") for item in self.resources if item.get("kind").text == _CONFIG_MAP}
        services = [item for item in self.resources if item.get("kind").text == _SERVICE]
        for resource in self.resources:
            kind = resource.get("kind").text
            if kind in _WITH_PODS:
                yield from _nodes_of_pods(resource, maps, services)
            elif kind in OPERATOR_KINDS:
                yield from nodes_of_operator(resource, lambda volumes: _files_of_volumes(volumes, maps))


def resources_of(documents: Sequence[YamlValue]) -> tuple[YamlValue, ...]:
    """The resources of Kubernetes among documents, those of lists one by one."""
    found: list[YamlValue] = []
    for document in documents:
        if document.get("kind").text == _LIST:
            found += document.get("items").items()
        elif document.get("kind").text and document.get("apiVersion").text:
            found.append(document)
    return tuple(found)


def name_of(resource: YamlValue) -> str:
    """The name of a resource."""
    return resource.get("metadata", "name").text


def _nodes_of_pods(
    resource: YamlValue, maps: Mapping[str, YamlValue], services: Sequence[YamlValue]
) -> Iterator[ConfiguredNode]:
    kind = resource.get("kind").text
    pod = resource.get("spec") if kind == "Pod" else resource.get("spec", "template", "spec")
    wanted = resource.get("spec", "replicas")
    replicas = 1 if kind in ("Pod", "DaemonSet") else wanted.whole(1)
    if replicas > BROKERS_MAX:
        raise ConfigurationError(wanted.source, wanted.line, f"expected at most {BROKERS_MAX} pods")
    name = name_of(resource) or kind.lower()
    is_single = kind not in _NAMED_BY_NUMBER and replicas == 1
    hosts = (name,) if is_single else tuple(f"{name}-{number}" for number in range(replicas))
    labels = resource if kind == "Pod" else resource.get("spec", "template")
    selecting = [item for item in services if _selects(item, labels.get("metadata", "labels"))]
    for container in pod.get("containers").items():
        files = _mounted_files(container, pod, maps)
        ports = tuple(_ports(container, selecting))
        for nodes, same in groupby(hosts, partial(_on_host, pod, container, files, maps, ports)):
            of_hosts = tuple(same)
            on_host = pod.get("hostNetwork").text.lower() == "true"
            outside = () if on_host else ports
            for node in nodes:
                yield attrs.evolve(node, hosts=of_hosts, network=_NETWORK, is_on_host=on_host, ports=outside)


def _selects(service: YamlValue, labels: YamlValue) -> bool:
    """Whether a Service leads to pods with labels."""
    wanted = {name: value.text for name, value in service.get("spec", "selector").pairs()}
    return bool(wanted) and wanted.items() <= {name: value.text for name, value in labels.pairs()}.items()


def _ports(container: YamlValue, services: Sequence[YamlValue]) -> Iterator[PublishedPort]:
    """The ports of a container that are open outside of Kubernetes."""
    names = {item.get("name").text: item.get("containerPort").text for item in container.get("ports").items()}
    for item in container.get("ports").items():
        if item.get("hostPort").text:
            yield PublishedPort(item.get("hostPort").text, item.get("containerPort").text, "hostPort")
    for service in services:
        number = {"NodePort": "nodePort", "LoadBalancer": "port"}.get(service.get("spec", "type").text)
        for item in service.get("spec", "ports").items() if number is not None else ():
            target = item.get("targetPort").text or item.get("port").text
            if item.get(number or "").text:
                by = f"Service {name_of(service)}"
                yield PublishedPort(item.get(number or "").text, names.get(target, target), by)


def _on_host(
    pod: YamlValue,
    container: YamlValue,
    files: Mapping[str, YamlValue],
    maps: Mapping[str, YamlValue],
    ports: tuple[PublishedPort, ...],
    host: str,
) -> tuple[ConfiguredNode, ...]:
    """The nodes that a container starts in one pod, and what it sets there; none: it is no node of RocketMQ."""
    variables = _variables(container, host, maps)
    values = {name: value for name, value, _ in variables}
    items = [item for key in ("command", "args") for item in container.get(key).items()]
    words = [with_variables(item.text, values, item.source, item.line) for item in items]
    container.visits.add(sum(map(len, words)) // _CHARS_PER_VISIT)
    startup = startup_of(container.get("image").text, words, container.source, container.line)
    if startup is None:
        return ()
    node = ConfiguredNode(
        startup.kind, container.source, container.line, _settings(container, startup, files, variables)
    )
    notes = (
        *not_taken.of_container(
            node, startup, container.get("image").text, ports, (name for name, _, line in variables if line)
        ),
        *not_taken.of_pod(pod, container),
    )
    node, second = attrs.evolve(node, notes=notes), startup.in_process
    if second is None:
        return (node,)
    settings = _settings(container, second, files, variables)
    return node, attrs.evolve(node, kind=second.kind, settings=settings, notes=(in_process_note(second.kind),))


def _variables(container: YamlValue, host: str, maps: Mapping[str, YamlValue]) -> list[tuple[str, str, int]]:
    """(name, value, line) of each environment variable in a pod."""
    values, lines = {"HOSTNAME": host}, {"HOSTNAME": 0}
    for name, value, line in environment_of(container, maps):
        text = host if value == _NAME_OF_POD else with_variables(value, values, container.source, line)
        container.visits.add(len(text) // _CHARS_PER_VISIT)
        values[name], lines[name] = text, line
    return [(name, text, lines[name]) for name, text in values.items()]


def _settings(
    container: YamlValue,
    startup: Startup,
    files: Mapping[str, YamlValue],
    variables: Sequence[tuple[str, str, int]],
) -> tuple[Setting, ...]:
    """All that a container sets for its node: environment, then its file, then arguments."""
    before, after = settings_of_environment(variables, container.source)
    path = startup.config_path or next(
        (path for path in files if posixpath.basename(path) in _USUAL_FILES.get(startup.kind, ())), ""
    )
    file = next((value for mounted, value in files.items() if _is_same(mounted, path)), None) if path else None
    return (*before, *(() if file is None else settings_of_block(file)), *after, *startup.settings)


def _is_same(mounted: str, path: str) -> bool:
    """Whether a mounted file is the one of a path, which may be relative or begin with a variable."""
    return mounted == path or (not path.startswith("/") and posixpath.basename(mounted) == posixpath.basename(path))


def settings_of_block(value: YamlValue) -> tuple[Setting, ...]:
    """The options of a properties or JSON file that stands in a YAML file."""
    first = value.line + (1 if value.is_block else 0)
    return settings_of_content(value.text.encode(), value.source, first)


def environment_of(container: YamlValue, maps: Mapping[str, YamlValue]) -> Iterator[tuple[str, str, int]]:
    """(name, value, line) of each environment variable, those from ConfigMaps included; of Secrets nothing is read."""
    for source in container.get("envFrom").items():
        reference = source.get("configMapRef", "name").text
        for name, item in maps[reference].pairs() if reference in maps else ():
            yield name, item.text, item.line
    for variable in container.get("env").items():
        of_map = variable.get("valueFrom", "configMapKeyRef")
        value = variable.get("value")
        if variable.get("valueFrom", "fieldRef", "fieldPath").text == "metadata.name":
            yield variable.get("name").text, _NAME_OF_POD, variable.line
        if of_map.get("name").text in maps:
            value = maps[of_map.get("name").text].get(of_map.get("key").text)
        if not value.is_null:
            yield variable.get("name").text, value.text, value.line


def _mounted_files(container: YamlValue, pod: YamlValue, maps: Mapping[str, YamlValue]) -> dict[str, YamlValue]:
    """Mapping path in the container -> text of the file, for the files of ConfigMaps."""
    volumes = {volume.get("name").text: volume for volume in pod.get("volumes").items()}
    found: dict[str, YamlValue] = {}
    for mount in container.get("volumeMounts").items():
        volume = volumes.get(mount.get("name").text)
        files = _files_of_volumes((volume,), maps) if volume is not None else {}
        path, part = mount.get("mountPath").text, mount.get("subPath").text
        if part:
            found |= {path: files[part]} if part in files else {}
        else:
            found |= {posixpath.join(path, name): value for name, value in files.items()}
    return found


def _files_of_volumes(volumes: Sequence[YamlValue], maps: Mapping[str, YamlValue]) -> dict[str, YamlValue]:
    """Mapping name of a file -> its text, for volumes of ConfigMaps, projected ones included."""
    found: dict[str, YamlValue] = {}
    for volume in volumes:
        parts = [volume, *volume.get("projected", "sources").items()]
        for part in (item.get("configMap") for item in parts):
            data = maps.get(part.get("name").text)
            if data is None:
                continue
            files = dict(data.pairs())
            renamed = {item.get("key").text: item.get("path").text for item in part.get("items").items()}
            names = renamed or {name: name for name in files}
            found |= {path: files[name] for name, path in names.items() if name in files}
    return found
