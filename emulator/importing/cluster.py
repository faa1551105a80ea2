"""The cluster that configured nodes make together: names, ids, numbers of nameservers and controllers, containers."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from emulator.importing.accounts import ImportedAccount
from emulator.importing.published import (
    BROKER_IP1,
    Published,
    elsewhere,
    numbered,
    own_ports,
    private_networks,
    registered,
)
from emulator.importing.settings import ConfigurationError, ConfiguredNode, Setting
from emulator.importing.statefulsets import ImportedStatefulSet
from emulator.importing.verdicts import Fate, Verdict, has_controller, verdicts_of
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.tables.bounds import BROKERS_MAX, CONTROLLERS_MAX, NAMESERVERS_MAX, NODE_NAME, PROXIES_MAX
from nodes.config.controller import CONTROLLER_PORT
from nodes.config.java_values import UnreadValueError, read_whole
from nodes.fields import INT_MAX, LONG_MAX, TEXT, shown

_ADDRESSES = re.compile(r"[;,]")
_PORT_FROM_REQUEST = "useEndpointPortFromRequest"
_DEFAULT_CLUSTER = "DefaultCluster"
OTHER_DEFAULTS = {"flushDiskType": "ASYNC_FLUSH"}
"""Options of a broker with another default here: what a file leaves out is RocketMQ's default."""


@attrs.frozen
class ImportedNode:
    """A node of the scenario, and the account of what was set for it."""

    kind: FileKind
    table: Mapping[str, Any]
    """Keys of its table."""
    options: Mapping[str, Any]
    verdicts: tuple[Verdict, ...]
    source: str
    line: int = 0
    notes: tuple[str, ...] = ()
    """What else a reader should know."""
    configured: ConfiguredNode | None = None
    """From what it was made."""

    @property
    def name(self) -> str:
        """Name of the node of the scenario; empty: it has none yet."""
        name, number = str(self.table.get("name", "")), self.table.get("id", 0)
        return f"{name}-s{number}" if number else name


@attrs.frozen
class ImportedCluster:
    """What files describe together."""

    nodes: tuple[ImportedNode, ...]
    """In the order of the tables of a scenario."""
    nameservers: int
    """How many; those without a file included."""
    controllers: int
    """How many have processes of their own."""
    statefulsets: tuple[ImportedStatefulSet, ...] = ()
    """Those whose pods are consumers."""
    accounts: tuple[ImportedAccount, ...] = ()
    """Of ACL 1.0."""
    white_addresses: tuple[str, ...] = ()
    """That need no account, by ACL 1.0."""
    private_networks: tuple[Mapping[str, Any], ...] = ()
    """Tables of those that publish ports."""

    def of(self, kind: FileKind) -> tuple[ImportedNode, ...]:
        """The nodes of a kind."""
        return tuple(node for node in self.nodes if node.kind is kind)


def cluster_of(configured: Sequence[ConfiguredNode]) -> ImportedCluster:
    """The cluster of all nodes.

    Raises:
        ConfigurationError: RocketMQ would not start one of them, two brokers have one name and id, or there are too
            many.
    """
    namesrvs = tuple(_numbered_nodes(configured, FileKind.NAMESRV, "ns"))
    controllers = tuple(_numbered_nodes(configured, FileKind.CONTROLLER, "controller"))
    containers = tuple(_numbered_nodes(configured, FileKind.CONTAINER, "container"))
    brokers = tuple(_brokers(configured, containers))
    _require_distinct(brokers)
    clients = tuple(_single(node) for node in configured if node.kind is FileKind.CLIENT)
    proxies = tuple(map(_with_own_ports, _numbered_nodes(configured, FileKind.PROXY, "proxy")))
    _bounded(len(proxies), PROXIES_MAX, "proxies")
    nodes = (*namesrvs, *controllers, *containers, *brokers, *clients, *proxies)
    published = tuple(_published(nodes))
    networks = private_networks(published)
    return ImportedCluster(
        nodes=tuple(_in_networks(nodes, published, networks)),
        private_networks=networks,
        nameservers=_bounded(_nameservers(configured, namesrvs), NAMESERVERS_MAX, "nameservers"),
        controllers=_bounded(_controllers(configured, namesrvs, controllers), CONTROLLERS_MAX, "controllers"),
    )


def _bounded(number: int, maximum: int, things: str) -> int:
    if number > maximum:
        raise ConfigurationError("all files", 0, f"expected at most {maximum} {things}, not {number}")
    return number


def _nameservers(configured: Sequence[ConfiguredNode], namesrvs: Sequence[ImportedNode]) -> int:
    """At least one, those of the files, as many as an address list has, and one for each controller in a process."""
    plugin = max((_addresses(node, "controllerDLegerPeers") for node in configured if has_controller(node)), default=0)
    addresses = 0 if namesrvs else max((_addresses(node, "namesrvAddr") for node in configured), default=0)
    return max(1, len(namesrvs), addresses, plugin)


def _controllers(
    configured: Sequence[ConfiguredNode], namesrvs: Sequence[ImportedNode], controllers: Sequence[ImportedNode]
) -> int:
    """Those of the files, and their peers; without a file, as many as brokers in controller mode look for."""
    if controllers:
        own = [node for node in configured if node.kind is FileKind.CONTROLLER]
        return max(len(controllers), *(_addresses(node, "controllerDLegerPeers") for node in own))
    if any(node.options.get("enableControllerInNamesrv") is True for node in namesrvs):
        return 0
    seekers = [node for node in configured if node.kind is FileKind.BROKER and _is_on(node, "enableControllerMode")]
    return max((max(1, _addresses(node, "controllerAddr")) for node in seekers), default=0)


def _addresses(node: ConfiguredNode, option: str) -> int:
    return len([address for address in _ADDRESSES.split(node.text(option) or "") if address.strip()])


def _is_on(node: ConfiguredNode, option: str) -> bool:
    return (node.text(option) or "").lower() == "true"


def _taken(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {item.setting.name: item.value for item in verdicts if item.fate is Fate.TAKEN}


def _single(node: ConfiguredNode) -> ImportedNode:
    verdicts = verdicts_of(node)
    return ImportedNode(node.kind, {}, _taken(verdicts), verdicts, node.source, node.line, node.notes, node)


def _published(nodes: Sequence[ImportedNode]) -> Iterator[Published]:
    """What is known of the addresses of nodes; a port of a process belongs to the node that listens there."""
    in_process: dict[tuple[str, int], dict[FileKind, ConfiguredNode]] = {}
    for node in nodes:
        if node.configured is not None and node.line:
            in_process.setdefault((node.source, node.line), {})[node.kind] = node.configured
    for node in nodes:
        of = node.configured
        if of is None or not node.name:
            continue
        others = [item for item in in_process.get((node.source, node.line), {}).values() if item.kind is not of.kind]
        own = own_ports(of.kind, _texts(of))
        of_others = [port for other in others for port in own_ports(other.kind, _texts(other))]
        ports = tuple(
            attrs.evolve(item, published=str(outside), target=str(inside))
            for item in of.ports
            for outside, inside in numbered((item,))
            if inside in own or inside not in of_others
        )
        ip = (of.text(BROKER_IP1) or "").strip() if of.kind is FileKind.BROKER else ""
        yield Published(node.name, of.kind, of.network, of.is_on_host, ports, ip)


def _texts(node: ConfiguredNode) -> dict[str, str]:
    return {setting.name: setting.value for setting in node.settings}


def _in_networks(
    nodes: Sequence[ImportedNode], published: Sequence[Published], networks: Sequence[Mapping[str, Any]]
) -> Iterator[ImportedNode]:
    """The nodes, of which brokers in private networks register what their files say."""
    hosts = {node: next(iter(table["publish"])).rpartition(":")[0] for table in networks for node in table["nodes"]}
    notes = elsewhere(published, networks)
    known: dict[int, tuple[Verdict, ...]] = {}
    for node in nodes:
        noted = attrs.evolve(node, notes=(*node.notes, *notes.get(node.name, ())))
        if node.kind is FileKind.BROKER and node.name in hosts:
            verdicts = known.setdefault(id(node.verdicts), registered(node.verdicts, hosts[node.name]))
            options = {name: value for name, value in _taken(verdicts).items() if name == BROKER_IP1}
            noted = attrs.evolve(noted, verdicts=verdicts, options={**options, **node.options})
        yield noted


def _numbered_nodes(configured: Sequence[ConfiguredNode], kind: FileKind, stem: str) -> Iterator[ImportedNode]:
    """The nodes of a kind that has no names in RocketMQ."""
    number = 0
    for node in configured:
        if node.kind is not kind:
            continue
        verdicts = verdicts_of(node)
        options, notes = _taken(verdicts), list(node.notes)
        if has_controller(node) and options.get("listenPort") == CONTROLLER_PORT:
            del options["listenPort"]
            notes.append(f"listenPort is left out: {CONTROLLER_PORT} is the port of the controller in the process")
        for _ in node.hosts or ("",):
            number += 1
            table = {"name": f"{stem}-{number}"}
            yield ImportedNode(kind, table, options, verdicts, node.source, node.line, tuple(notes), node)


def _with_own_ports(proxy: ImportedNode) -> ImportedNode:
    """RocketMQ's default: routes have the port of the proxy that answers."""
    return attrs.evolve(proxy, options={_PORT_FROM_REQUEST: False, **proxy.options})


def _brokers(configured: Sequence[ConfiguredNode], containers: Sequence[ImportedNode]) -> Iterator[ImportedNode]:
    of_file = {path: name for name, paths in _paths(configured, containers) for path in paths}
    ids: Counter[str] = Counter()
    made = 0
    for node in configured:
        if node.kind is not FileKind.BROKER:
            continue
        container = of_file.get(posixpath.basename(node.source))
        node = attrs.evolve(node, is_in_container=container is not None)  # noqa: PLW2901 - from here on it is known
        part = attrs.evolve(_single(node), table={} if container is None else {"container": container})
        for host in node.hosts or ("",):
            for number in range(1 + node.slaves):
                made += 1
                _bounded(made, BROKERS_MAX, "brokers")
                yield _broker(node, part, host, number, ids)


def _paths(
    configured: Sequence[ConfiguredNode], containers: Sequence[ImportedNode]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name of each container, and the names of the files of its brokers."""
    of_kind = [node for node in configured if node.kind is FileKind.CONTAINER]
    for node, container in zip(of_kind, containers, strict=False):
        paths = (node.text("brokerConfigPaths") or "").split(":")
        yield container.table["name"], tuple(posixpath.basename(path.strip()) for path in paths)


def _broker(node: ConfiguredNode, part: ImportedNode, host: str, number: int, ids: Counter[str]) -> ImportedNode:
    """One broker.

    Args:
        node: what the files set.
        part: options, verdicts, and the container, if there is one.
        host: name of its host, if it is known.
        number: 0, or that of a slave that an operator makes.
        ids: mapping brokerName -> ids given so far, for modes in which RocketMQ gives them.
    """
    notes = list(node.notes)
    name = _broker_name(node, host, notes)
    broker_id = _broker_id(node, name, ids, notes)
    broker_id = number if node.slaves and not _is_on(node, "enableControllerMode") else broker_id
    cluster = (node.text("brokerClusterName") or "").strip() or _DEFAULT_CLUSTER
    if not TEXT.holds(cluster):
        raise ConfigurationError(*_place(node, "brokerClusterName"), TEXT.problem(shown(cluster, 60)))
    options = {name: value for name, value in part.options.items() if name != "brokerRole" or not broker_id}
    options = {**options, **{name: value for name, value in OTHER_DEFAULTS.items() if name not in options}}
    table = {
        "name": name,
        **({"id": broker_id} if broker_id else {}),
        **({"cluster": cluster} if cluster != _DEFAULT_CLUSTER else {}),
        **part.table,
    }
    return attrs.evolve(part, table=table, options=options, notes=tuple(notes))


def _broker_name(node: ConfiguredNode, host: str, notes: list[str]) -> str:
    name = (node.text("brokerName") or "").strip()
    stem = posixpath.basename(node.source).partition(".")[0]
    if name and "$" not in name:
        if not NODE_NAME.holds(name):
            raise ConfigurationError(*_place(node, "brokerName"), NODE_NAME.problem(shown(name, 60)))
        return name
    reason = f"brokerName is {shown(name, 60)}, which a script replaces" if name else "brokerName is not given"
    found = host if NODE_NAME.holds(host) else stem if NODE_NAME.holds(stem) else "broker"
    notes.append(f"{reason}: RocketMQ takes the name of the host" if host or not name else reason)
    return found


def _broker_id(node: ConfiguredNode, name: str, ids: Counter[str], notes: list[str]) -> int:
    """The id of a broker, as `BrokerStartup` decides it.

    Raises:
        ConfigurationError: RocketMQ does not start it.
    """
    if _is_on(node, "enableDLegerCommitLog"):
        return _member_number(node, notes)
    if _is_on(node, "enableControllerMode"):
        given = ids[name]
        ids[name] += 1
        notes.append("its id is given in the order of files: the controller gives it, whatever brokerId is")
        return given
    text = node.text("brokerId")
    try:
        read = 0 if text is None else read_whole(text, LONG_MAX)
    except UnreadValueError:
        read = 0  # the verdict on it has the reason
    if (node.text("brokerRole") or "").strip() != "SLAVE":
        if read:
            notes.append(f"a master has id 0: RocketMQ ignores brokerId = {read}")
        return 0
    if read <= 0:
        raise ConfigurationError(*_place(node, "brokerId"), "brokerRole = SLAVE needs brokerId > 0, or RocketMQ ends")
    return read


def _member_number(node: ConfiguredNode, notes: list[str]) -> int:
    """The number of a member of a group with a DLedger log, which is its id in a scenario.

    Raises:
        ConfigurationError: it has none, and RocketMQ does not start it.
    """
    self_id = (node.text("dLegerSelfId") or "").strip()
    try:
        number = read_whole(self_id[1:], INT_MAX)
    except UnreadValueError:
        number = -1
    if number < 0:
        problem = f"expected a letter and a number, such as n0, not {shown(self_id, 60)!r}"
        raise ConfigurationError(*_place(node, "dLegerSelfId"), problem)
    peers = _addresses(node, "dLegerPeers")
    notes.append(f"its id is the number in dLegerSelfId = {self_id}, whatever brokerId is; {peers} members are peers")
    return number


def _place(node: ConfiguredNode, option: str) -> tuple[str, int]:
    found: Setting | None = next((item for item in reversed(node.settings) if item.name == option), None)
    return (node.source, node.line) if found is None else (found.source, found.line)


def _require_distinct(brokers: Sequence[ImportedNode]) -> None:
    """Refuse two brokers with one name and id.

    Raises:
        ConfigurationError: there are two.
    """
    seen: dict[tuple[str, int], ImportedNode] = {}
    for broker in brokers:
        key = (broker.table["name"], broker.table.get("id", 0))
        other = seen.setdefault(key, broker)
        if other is not broker:
            place = f"{other.source}:{other.line}" if other.line else other.source
            problem = f"broker {shown(key[0], 60)} with id {key[1]} is there twice, first in {place}"
            raise ConfigurationError(broker.source, broker.line, f"{problem}: one would replace the other")
