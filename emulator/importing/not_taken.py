"""What a container says that a scenario cannot: one line each, with what that changes.

Ports that are published outside, images of other releases, variables and arguments that no node reads, limits, probes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from emulator.importing.settings import ConfiguredNode, PublishedPort
from emulator.importing.startup import Startup, sets_nothing
from emulator.importing.yaml_files import YamlValue
from emulator.spec.model.addresses import broker_ports
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import RELEASE_OF_THE_TABLE
from nodes.fields import shown

_ON_HOST = (("network_mode", "host"), ("hostNetwork", "true"))
"""What makes a node one that lives outside, and reaches those in a private network."""
_RELEASE = re.compile(r":v?(\d+\.\d+[\w.-]*)$")
_NAMES_MAX = 12
_PRINTING = ("-p", "-m", "-h", "--printConfigItem", "--printImportantConfig", "--help")
_INSIDE = "every node has an address of its own, and only [[private_network]] keeps any other from it"
KEYS_OF_SERVICES: Mapping[str, str] = MappingProxyType(
    {
        "network_mode": _INSIDE,
        "networks": _INSIDE,
        "extra_hosts": _INSIDE,
        "env_file": "it is not read: name its variables under environment",
        "extends": "it is not read: import what `docker compose config` prints",
        "profiles": "every service is started",
        "restart": "a process that ends stays down until a fault of the scenario is over",
        "healthcheck": "no probe restarts a process",
        "mem_limit": "no limit of memory or processors slows a node down: slow-cpu does",
        "cpus": "no limit of memory or processors slows a node down: slow-cpu does",
        "ulimits": "no limit of files ends a node",
        "depends_on": "nodes start in the order of start_spread_s",
        "stop_grace_period": "a process that is stopped ends in its own time",
    }
)
"""Key of a service of docker-compose -> what the emulator does instead."""
KEYS_OF_PODS: Mapping[str, str] = MappingProxyType(
    {
        "hostNetwork": _INSIDE,
        "hostAliases": _INSIDE,
        "initContainers": "they are not started",
        "terminationGracePeriodSeconds": "a process that is stopped ends in its own time",
    }
)
KEYS_OF_CONTAINERS: Mapping[str, str] = MappingProxyType(
    {
        "livenessProbe": "no probe restarts a process",
        "readinessProbe": "a node that is not ready is reached, too",
        "startupProbe": "no probe restarts a process",
        "lifecycle": "no hook is called",
        "resources": "no limit of memory or processors slows a node down: slow-cpu does",
    }
)
_OUTSIDE: Mapping[FileKind, str] = MappingProxyType(
    {
        FileKind.NAMESRV: "the routes that it gives have addresses of brokers, which are not translated",
        FileKind.BROKER: "routes have the address and the port that it registers, its brokerIP1 and listenPort",
        FileKind.PROXY: "routes have the port of the proxy, unless useEndpointPortFromRequest is true",
        FileKind.CONTROLLER: "brokers reach it at its own port",
        FileKind.CONTAINER: "routes have the addresses and ports that its brokers register",
    }
)
"""Node -> what clients outside are given."""


def of_container(
    node: ConfiguredNode, startup: Startup, image: str, ports: Iterable[PublishedPort], variables: Iterable[str]
) -> Iterator[str]:
    """What a container says besides its own keys: image, ports, arguments and environment variables.

    Args:
        node: which the container starts.
        startup: how.
        image: of the container.
        ports: that are open outside.
        variables: names of environment variables that people have set.
    """
    yield from _of_image(image)
    yield from _of_ports(startup.kind, ports, node.text("listenPort") or "")
    yield from _of_arguments(startup.unread, startup.script)
    yield from _of_variables(name for name in variables if sets_nothing(name))


def _of_image(image: str) -> Iterator[str]:
    """The release of an image that is another one."""
    found = _RELEASE.search(image)
    if found is not None and "rocketmq" in image and found[1].partition("-")[0] != RELEASE_OF_THE_TABLE:
        yield f"image {shown(image)} is not taken: what is emulated is release {RELEASE_OF_THE_TABLE}"


def _of_ports(kind: FileKind, ports: Iterable[PublishedPort], listen_port: str) -> Iterator[str]:
    """Ports that have another number outside, or that nothing listens at.

    Args:
        kind: of the node.
        ports: of its container.
        listen_port: as its file sets it; empty: it does not.
    """
    for port in ports:
        if listen_port.isdecimal() and kind is FileKind.BROKER and not _listens(port.target, int(listen_port)):
            why = f"nothing listens at {port.target}, for listenPort is {listen_port}: clients outside reach no broker"
            yield f"{port.by}: {port.published}:{port.target} leads nowhere: {why}"
        elif port.published != port.target:
            why = f"clients outside dial {port.published}, and {_OUTSIDE.get(kind, 'are given the address inside')}"
            yield f"{port.by}: {port.published}:{port.target}: {why}"


def _listens(port: str, listen_port: int) -> bool:
    return port in map(str, broker_ports(listen_port))


def _of_variables(names: Iterable[str]) -> Iterator[str]:
    """Environment variables that set no option."""
    found = list(dict.fromkeys(names))
    if found:
        more = f" and {len(found) - _NAMES_MAX} more" if len(found) > _NAMES_MAX else ""
        listed = ", ".join(shown(name, 60) for name in found[:_NAMES_MAX])
        yield f"environment {listed}{more}: not taken: RocketMQ reads no option from them"


def _of_arguments(words: Sequence[str], script: str) -> Iterator[str]:
    """Words of a command that its script does not read."""
    for word in words:
        why = "with it a process prints, and ends" if word in _PRINTING else f"{script} does not read it"
        yield f"argument {shown(word, 60)} is not taken: {why}"


def of_service(service: YamlValue) -> Iterator[str]:
    """Keys of a service of docker-compose."""
    yield from _of_keys(service, KEYS_OF_SERVICES)
    yield from _of_keys(service.get("deploy"), {"resources": KEYS_OF_CONTAINERS["resources"]})


def of_pod(pod: YamlValue, container: YamlValue) -> Iterator[str]:
    """Keys of a pod, and of a container in it."""
    yield from _of_keys(pod, KEYS_OF_PODS)
    yield from _of_keys(container, KEYS_OF_CONTAINERS)


def _of_keys(value: YamlValue, known: Mapping[str, str]) -> Iterator[str]:
    for key, item in value.pairs():
        if key in known and (key, item.text.lower()) not in _ON_HOST:
            yield f"{key} is not taken: {known[key]}"
