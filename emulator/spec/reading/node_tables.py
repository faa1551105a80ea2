"""The tables of nodes, topics and groups in a scenario file: reading."""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from emulator.base.text import alike
from emulator.spec.model.networks import PrivateNetworkSpec
from emulator.spec.model.presets import Preset
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ConsumerMode, ProxySpec
from emulator.spec.model.scenario import (
    AddressServerSpec,
    BrokerSpec,
    ConsumerGroupSpec,
    ControllerSpec,
    DomainSpec,
    NameserverSpec,
    StatefulSetSpec,
    TopicSpec,
    numbered,
)
from emulator.spec.reading.applications import APPLICATION_KEYS, read_application
from emulator.spec.reading.namespaces import consumers_in_namespace, producer_in_namespace
from emulator.spec.rocketmq.known_options import is_emulated_at_brokers
from emulator.spec.tables.bounds import (
    BROKERS_MAX,
    CONSUMERS_MAX,
    CONTROLLERS_MAX,
    GROUP_NAME,
    NAMESERVERS_MAX,
    NODE_NAME,
    NODE_NAMES,
)
from emulator.spec.tables.mistakes import SpecError, require_known
from emulator.spec.tables.options import read_options
from emulator.spec.tables.section import Section, keys_of
from nodes.config import (
    BrokerConfig,
    ConsumerConfig,
    ControllerConfig,
    LitePullConsumerConfig,
    NameserverConfig,
    NameserverWithControllerConfig,
    ProducerConfig,
    PullConsumerConfig,
    StatefulSetConfig,
    options,
)
from nodes.config.accounts import PlainAccessConfig
from nodes.config.client5 import Consumer5Config, Producer5Config, PushConsumer5Config, SimpleConsumer5Config
from nodes.config.proxy import ProxyConfig
from nodes.fields import NAMES, SWITCH, TEXT, TEXTS, FieldError, Rule, checked, choice, flag, rule_of, shown, whole
from nodes.secret import is_secret_name

_HAS_CONTROLLER = ("enableControllerInNamesrv", "enable_controller_in_namesrv")
_OF_CONTROLLERS = tuple(
    name
    for option, field in options(NameserverWithControllerConfig).items()
    if option not in options(NameserverConfig)
    for name in (option, field.name)
)
"""Options that a nameserver without a controller does not have."""
_PORTS_APART = 10
"""Difference between the ports of brokers on one address."""
_NO_BROKER = "none"
"""Where a topic is if no broker could be read, which is a mistake of its own."""
_OPTIONS = Rule("a table of options", lambda value: isinstance(value, Mapping))
_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_OF_CLIENTS5: Mapping[str, type[Consumer5Config]] = MappingProxyType(
    {ConsumerMode.PUSH5: PushConsumer5Config, ConsumerMode.SIMPLE: SimpleConsumer5Config}
)
"""Mode of consumers of RocketMQ 5 -> the class of their options."""


@attrs.frozen
class ScenarioKeys:
    """Keys of `[scenario]` that are no fields of a scenario."""

    preset: Preset = choice(Preset, Preset.CLASSIC)
    """A bundle of options for what the file does not set itself."""


@attrs.frozen
class OptionsKeys:
    """Keys of every node with options."""

    options: Mapping[str, Any] = checked(_OPTIONS, _NO_OPTIONS)
    """The options of its role, under RocketMQ's names or in snake_case."""


@attrs.frozen
class NameserverKeys(OptionsKeys):
    """Keys of a `[nameserver]` that stands for several."""

    count: int = whole(2, minimum=1, limit=NAMESERVERS_MAX)
    """How many there are: `ns-1`, `ns-2`, ..."""


@attrs.frozen
class ControllerKeys(OptionsKeys):
    """Keys of a `[controller]` that stands for several."""

    count: int = whole(3, minimum=1, limit=CONTROLLERS_MAX)
    """How many there are: `controller-1`, `controller-2`, ..."""


@attrs.frozen
class BrokerKeys(OptionsKeys):
    """Keys of a `[[broker]]` that stands for several."""

    replicas: int = whole(1, minimum=1, limit=BROKERS_MAX)
    """Brokers of the group with the same options: a master, and slaves with the ids 1, 2, ..."""
    one_address: bool = flag(default=False)
    """With `replicas`: all of them have one IP address, and ports that are 10 apart."""


@attrs.frozen
class ConsumerKeys(OptionsKeys):
    """Keys of a `[[consumer]]` that say how many there are, and of which kind."""

    count: int = whole(1, minimum=1, limit=CONSUMERS_MAX)
    """How many there are, in place of `names`: `consumer-1`, `consumer-2`, ..., counted over all groups."""
    lite_pull: bool = flag(default=False)
    """They are lite pull consumers, with the options of these."""
    classic_pull: bool = flag(default=False)
    """They are classic pull consumers (`DefaultMQPullConsumer`), with the options of these."""


_REPLICAS, _SERVERS, _CONTROLLERS, _MEMBERS = (
    rule_of(field)
    for field in (
        attrs.fields(BrokerKeys).replicas,
        attrs.fields(NameserverKeys).count,
        attrs.fields(ControllerKeys).count,
        attrs.fields(ConsumerKeys).count,
    )
)


def read_preset(head: Section) -> Preset:
    """The preset of a scenario; in place of an unknown one that which is most like it."""
    name = head.get("preset", TEXT, Preset.CLASSIC)
    near = [*alike(name, list(Preset), 1), Preset.CLASSIC]
    head.attempt(lambda: require_known(head.at("preset"), "preset", name, list(Preset)), None)
    return Preset(name if name in list(Preset) else near[0])


def read_nameservers(root: Section, preset: Preset) -> tuple[NameserverSpec, ...]:
    """The nameservers: a table for each, or one that says how many there are."""
    given = preset.nameserver_options()
    if isinstance(root.values.get("nameserver"), list):
        tables = root.tables("nameserver", (*keys_of(NameserverSpec), *keys_of(OptionsKeys)))
        return tuple(
            root.parts(tables, lambda table: table.build(NameserverSpec, config=_read_nameserver_options(table, given)))
        )
    section = root.table("nameserver", keys_of(NameserverKeys))
    config = _read_nameserver_options(section, given)
    return tuple(NameserverSpec(name, config) for name in numbered("ns", section.get("count", _SERVERS, 2)))


def _read_nameserver_options(section: Section, preset: Mapping[str, Any]) -> NameserverConfig:
    """The options of a nameserver, and of the controller in its process if there is one."""
    given = section.values.get("options")
    names = list(given) if isinstance(given, Mapping) else []
    has_controller = isinstance(given, Mapping) and any(given.get(name) is True for name in _HAS_CONTROLLER)
    of_controllers = [name for name in names if name in _OF_CONTROLLERS]
    if not of_controllers and not has_controller:
        return read_options(section, NameserverConfig, preset)
    if not has_controller:
        problem = f"expected {_HAS_CONTROLLER[0]} = true: it is an option of controllers"
        section.add(SpecError(f"{section.at('options')}.{of_controllers[0]}", problem))
    return read_options(section, NameserverWithControllerConfig, preset)


def read_address_server(root: Section, nameservers: tuple[NameserverSpec, ...]) -> AddressServerSpec | None:
    """The address server; without a list it has that of all nameservers."""
    if "address_server" not in root.values:
        return None
    table = root.table("address_server", keys_of(AddressServerSpec))
    listed = table.attempt(lambda: table.get("nameservers", TEXTS, tuple(spec.name for spec in nameservers)), ())
    return table.build(AddressServerSpec, nameservers=listed)


def read_domains(root: Section) -> tuple[DomainSpec, ...]:
    """The domain names."""
    tables = root.tables("domain", keys_of(DomainSpec))
    return tuple(root.parts(tables, lambda table: table.build(DomainSpec)))


def read_private_networks(root: Section) -> tuple[PrivateNetworkSpec, ...]:
    """The private networks."""
    tables = root.tables("private_network", keys_of(PrivateNetworkSpec))
    return tuple(root.parts(tables, lambda table: table.build(PrivateNetworkSpec)))


def read_controllers(
    root: Section, preset: Preset, nameservers: tuple[NameserverSpec, ...]
) -> tuple[ControllerSpec, ...]:
    """The controllers that are nodes of their own: a table for each, or one that says how many there are.

    Without a table there are none, unless the preset elects masters and no nameserver has a controller.
    """
    if isinstance(root.values.get("controller"), list):
        tables = root.tables("controller", (*keys_of(ControllerSpec), *keys_of(OptionsKeys)))
        return tuple(
            root.parts(tables, lambda table: table.build(ControllerSpec, config=read_options(table, ControllerConfig)))
        )
    section = root.table("controller", keys_of(ControllerKeys))
    are_inside = any(spec.config.enable_controller_in_namesrv for spec in nameservers)
    if "controller" not in root.values and (are_inside or not preset.elects_masters):
        return ()
    config = read_options(section, ControllerConfig, {})
    return tuple(ControllerSpec(name, config) for name in numbered("controller", section.get("count", _CONTROLLERS, 3)))


def read_proxies(root: Section) -> tuple[ProxySpec, ...]:
    """The proxies."""
    tables = root.tables("proxy", (*keys_of(ProxySpec), *keys_of(OptionsKeys)))
    return tuple(root.parts(tables, lambda table: table.build(ProxySpec, config=read_options(table, ProxyConfig))))


def read_brokers(root: Section, preset: Preset) -> list[tuple[BrokerSpec, ...]]:
    """The brokers of each table that can be read.

    Raises:
        SpecError: there are too many.
    """
    tables = root.tables("broker", (*keys_of(BrokerSpec), *keys_of(BrokerKeys)))
    members: Counter[str] = Counter()
    for table, (name, replicas) in zip(tables, map(_name_and_replicas, tables), strict=True):
        members[name] += replicas
        if members.total() > BROKERS_MAX:
            root.lose(root.at("broker"))
            raise SpecError(table.path, f"expected {BROKERS_MAX} brokers at most in all")
    held: Counter[str] = Counter()
    """Container -> brokers so far."""

    def read(table: Section) -> tuple[BrokerSpec, ...]:
        name = table.attempt(lambda: table.get("name", NODE_NAME), "")
        options = dict(preset.broker_options(members[name]))
        container = table.get("container", NODE_NAME, "")
        if container:
            # Brokers of one process need ports of their own.
            options["listen_port"] = BrokerConfig().listen_port + held[container] * _PORTS_APART
            held[container] += 1
        return tuple(_read_replicas(table, options))

    return list(root.parts(tables, read))


def _name_and_replicas(table: Section) -> tuple[str, int]:
    name = table.attempt(lambda: table.get("name", NODE_NAME), "")
    replicas: int = table.get("replicas", _REPLICAS, 1)
    return name, replicas


def _read_replicas(section: Section, preset: Mapping[str, Any]) -> Iterator[BrokerSpec]:
    """The brokers of one table: one broker, or a master and slaves with the same options."""
    replicated = "replicas" in section.values
    for key in ("id", "node", "address_of"):
        if replicated and key in section.values:
            raise SpecError(section.at(key), f"expected only one of {key} and replicas")
    if not replicated and "one_address" in section.values:
        raise SpecError(section.at("one_address"), "expected only with replicas")
    if replicated and "container" in section.values:
        raise SpecError(section.at("container"), "expected only one of container and replicas: one process holds one")
    first = section.build(BrokerSpec, config=read_options(section, BrokerConfig, preset))
    _require_not_emulated(section, first.not_emulated)
    yield first
    for broker_id in range(1, section.get("replicas", _REPLICAS, 1)):
        if section.get("one_address", SWITCH, default=False):
            config = _on_port(section, first.config, first.config.listen_port + broker_id * _PORTS_APART)
            yield attrs.evolve(first, broker_id=broker_id, config=config, address_of=first.name)
        else:
            yield attrs.evolve(first, broker_id=broker_id)


def _require_not_emulated(section: Section, given: Mapping[str, str]) -> None:
    """Report options that belong elsewhere: emulated ones, and secrets."""
    for name in given:
        key = f"{section.at('not_emulated')}.{shown(name)}"
        if is_emulated_at_brokers(name):
            section.add(SpecError(key, "expected in options: it is emulated"))
        elif is_secret_name(name):
            section.add(SpecError(key, "expected none: its value is a secret"))
        elif not name.isprintable() or not name:
            section.add(SpecError(key, "expected the name of an option"))


def _on_port(section: Section, config: BrokerConfig, listen_port: int) -> BrokerConfig:
    try:
        return attrs.evolve(config, listen_port=listen_port)
    except FieldError as error:
        raise SpecError(section.at("replicas"), f"a port of a replica: {error.problem}") from None


def read_topics(root: Section, broker_names: tuple[str, ...]) -> tuple[TopicSpec, ...]:
    """The topics; without `brokers` a topic is on all of those that run at the start."""
    tables = root.tables("topic", keys_of(TopicSpec))
    names = broker_names or (_NO_BROKER,)
    return tuple(root.parts(tables, lambda table: table.build(TopicSpec, brokers=table.get("brokers", NAMES, names))))


def read_statefulsets(root: Section) -> tuple[StatefulSetSpec, ...]:
    """The StatefulSets."""
    tables = root.tables("statefulset", (*keys_of(StatefulSetSpec), *keys_of(OptionsKeys)))
    return tuple(
        root.parts(tables, lambda table: table.build(StatefulSetSpec, config=read_options(table, StatefulSetConfig)))
    )


def read_consumers(
    root: Section, preset: Preset, statefulsets: tuple[StatefulSetSpec, ...]
) -> tuple[ConsumerGroupSpec, ...]:
    """The consumer groups; names that a file does not give count on from group to group.

    Raises:
        SpecError: there are too many consumers.
    """
    pods = {spec.group: spec.pod_names() for spec in reversed(statefulsets)}
    tables = root.tables("consumer", (*keys_of(ConsumerGroupSpec), *keys_of(ConsumerKeys)))
    groups: list[ConsumerGroupSpec] = []
    names: list[str] = []
    for group in root.parts(tables, lambda table: _read_consumer(table, preset, pods, len(names) + 1)):
        names.extend(group.names)
        if len(names) >= CONSUMERS_MAX:
            path = root.retained("consumer")[len(groups)]
            root.lose(root.at("consumer"))
            raise SpecError(path, f"expected {CONSUMERS_MAX} consumers at most in all")
        groups.append(group)
    return tuple(groups)


def _read_consumer(
    table: Section, preset: Preset, pods: Mapping[str, tuple[str, ...]], first: int
) -> ConsumerGroupSpec:
    if "names" in table.values and "count" in table.values:
        raise SpecError(table.at("count"), "expected only one of count and names")
    for key in ("names", "count"):
        if table.values.get(key) and "share_process_with" in table.values:
            raise SpecError(table.at(key), f"expected only one of {key} and share_process_with")
    shares = "share_process_with" in table.values
    names = () if shares else table.attempt(lambda: _consumer_names(table, first, pods), ())
    mode = table.get("mode", TEXT, ConsumerMode.PULL)
    if mode in _OF_CLIENTS5:
        for key in ("lite_pull", "classic_pull"):
            if table.get(key, SWITCH, default=False):
                raise SpecError(table.at(key), f"expected none with mode = {mode}")
        config5 = read_options(table, _OF_CLIENTS5[mode])
        return table.build(ConsumerGroupSpec, names=names, mode=mode, config5=config5)
    config = _read_consumer_config(table, preset)
    return consumers_in_namespace(table.build(ConsumerGroupSpec, names=names, config=config, mode=mode))


def _read_consumer_config(table: Section, preset: Preset) -> ConsumerConfig:
    is_lite, is_classic = (table.get(key, SWITCH, default=False) for key in ("lite_pull", "classic_pull"))
    if is_lite and is_classic:
        raise SpecError(table.at("classic_pull"), "expected only one of lite_pull and classic_pull")
    if is_lite:
        return read_options(table, LitePullConsumerConfig)
    if is_classic:
        return read_options(table, PullConsumerConfig)
    return read_options(table, ConsumerConfig, _consumer_options(table, preset))


def _consumer_options(section: Section, preset: Preset) -> Mapping[str, Any]:
    """Options that the table need not set: a group that pops asks a broker for its queues."""
    pops = section.values.get("mode") == ConsumerMode.POP
    return {**preset.consumer_options(), **({"client_rebalance": False, "pinned_assigner": False} if pops else {})}


def _consumer_names(section: Section, first: int, pods: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if "names" in section.values:
        return tuple(section.get("names", NODE_NAMES))
    group = section.get("group", GROUP_NAME)
    if group in pods:
        if "count" in section.values:
            raise SpecError(section.at("count"), f"expected none: the StatefulSet of {group} has replicas")
        return pods[group]
    return numbered("consumer", section.get("count", _MEMBERS, 1), first)


def read_accounts(root: Section) -> tuple[PlainAccessConfig, ...]:
    """The accounts of ACL 1.0."""
    tables = root.tables("account", keys_of(PlainAccessConfig))
    return tuple(root.parts(tables, lambda table: table.build(PlainAccessConfig)))


def read_producers(root: Section) -> tuple[ProducerSpec, ...]:
    """The producers."""
    tables = root.tables("producer", (*keys_of(ProducerSpec), *keys_of(OptionsKeys), *APPLICATION_KEYS))
    return tuple(root.parts(tables, _read_producer))


def _read_producer(table: Section) -> ProducerSpec:
    number = int(table.path.rpartition("[")[2].removesuffix("]")) + 1
    name = table.get("name", NODE_NAME, f"producer-{number}")
    if table.values.get("endpoints"):
        config5 = read_options(table, Producer5Config)
        return table.build(ProducerSpec, name=name, config5=config5, **read_application(table))
    config = read_options(table, ProducerConfig)
    return producer_in_namespace(table.build(ProducerSpec, name=name, config=config, **read_application(table)))
