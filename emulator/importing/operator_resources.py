"""Resources of RocketMQ's operator for Kubernetes: NameService, Broker and Controller.

Its image writes the broker.conf of each pod: brokerName, brokerClusterName and brokerId are its own, whatever the file
in the ConfigMap has, and every broker but the first of a group is a slave.
"""

from collections.abc import Callable, Iterator, Sequence

from emulator.importing.property_files import settings_of_properties
from emulator.importing.settings import ConfigurationError, ConfiguredNode, Setting
from emulator.importing.yaml_files import YamlValue
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.tables.bounds import BROKERS_MAX, CONTROLLERS_MAX, NAMESERVERS_MAX

OPERATOR_KINDS = ("NameService", "Broker", "Controller")
_FILE = "broker-common.conf"
_ITS_OWN = ("brokerName", "brokerClusterName", "brokerId")

FilesOfVolumes = Callable[[Sequence[YamlValue]], dict[str, YamlValue]]


def nodes_of_operator(resource: YamlValue, files_of: FilesOfVolumes) -> Iterator[ConfiguredNode]:
    """The nodes that the operator makes of a resource.

    Args:
        resource: one of `OPERATOR_KINDS`.
        files_of: mapping name -> text of the files of volumes.

    Raises:
        ConfigurationError: a value cannot be used.
    """
    name = resource.get("metadata", "name").text
    size = resource.get("spec", "size")
    if resource.get("kind").text == "Broker":
        yield from _brokers(resource, name, files_of)
    elif resource.get("kind").text == "NameService":
        hosts = _numbered(name, _at_most(size, NAMESERVERS_MAX))
        yield ConfiguredNode(FileKind.NAMESRV, resource.source, resource.line, (), hosts)
    else:
        hosts = _numbered(name, _at_most(size, CONTROLLERS_MAX))
        yield ConfiguredNode(FileKind.CONTROLLER, resource.source, resource.line, (), hosts)


def _brokers(resource: YamlValue, name: str, files_of: FilesOfVolumes) -> Iterator[ConfiguredNode]:
    spec = resource.get("spec")
    groups = _at_most(spec.get("size"), BROKERS_MAX)
    slaves = spec.get("replicaPerGroup").whole(0)
    if groups * (1 + slaves) > BROKERS_MAX:
        problem = f"expected at most {BROKERS_MAX} brokers, replicas included"
        raise ConfigurationError(resource.source, spec.get("replicaPerGroup").line, problem)
    file = files_of(tuple(spec.get("volumes").items())).get(_FILE)
    for group in range(groups):
        settings = [*_of_spec(resource, f"{name}-{group}"), *(() if file is None else _of_file(file))]
        yield ConfiguredNode(
            FileKind.BROKER, resource.source, resource.line, tuple(settings), (f"{name}-{group}",), slaves=slaves
        )


def _of_spec(resource: YamlValue, group: str) -> Iterator[Setting]:
    """What the resource itself sets."""
    spec = resource.get("spec")
    yield Setting("brokerName", group, resource.source, resource.line, "the operator")
    cluster = resource.get("metadata", "name")
    yield Setting("brokerClusterName", cluster.text or "DefaultCluster", resource.source, cluster.line, "metadata.name")
    servers = spec.get("nameServers")
    if servers.text:
        yield Setting("namesrvAddr", servers.text, servers.source, servers.line, "nameServers")
    mode = spec.get("clusterMode")
    if mode.text == "CONTROLLER":
        yield Setting("enableControllerMode", "true", mode.source, mode.line, "clusterMode")
    replication = spec.get("replicationMode")
    if replication.text:
        yield Setting(
            "brokerRole", f"{replication.text}_MASTER", replication.source, replication.line, "replicationMode"
        )


def _of_file(file: YamlValue) -> Iterator[Setting]:
    first = file.line + (1 if file.is_block else 0)
    for setting in settings_of_properties(file.text.encode(), file.source, first):
        if setting.name not in _ITS_OWN:
            yield setting


def _at_most(size: YamlValue, maximum: int) -> int:
    number = size.whole(1)
    if number > maximum:
        raise ConfigurationError(size.source, size.line, f"expected at most {maximum}")
    return number


def _numbered(name: str, size: int) -> tuple[str, ...]:
    return tuple(f"{name}-{number}" for number in range(size))
