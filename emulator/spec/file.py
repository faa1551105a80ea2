"""Scenario files: reading TOML or plain values, and writing plain values for the manifest of a run.

`examples/half_seen_consumer.toml` shows the format. Options have RocketMQ's
camelCase names; snake_case is accepted, too.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from emulator.base.files import UnreadableError, read_text
from emulator.spec.applications import APPLICATION_KEYS, read_application, write_application
from emulator.spec.bounds import (
    BROKERS_MOST,
    CONSUMERS_MOST,
    FILE_BYTES_MOST,
    GROUP_NAME,
    NAMESERVERS_MOST,
    NODE_NAME,
    NODE_NAMES,
)
from emulator.spec.faults import read_nemeses, read_plan, write_nemeses, write_plan
from emulator.spec.guest_limits import GuestLimits
from emulator.spec.model import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Network,
    ProducerSpec,
    Scenario,
    StatefulSetSpec,
    TopicSpec,
    numbered,
)
from emulator.spec.options import read_options, write_options
from emulator.spec.presets import Preset
from emulator.spec.section import Section, SpecError, expect_known, keys_of, written
from emulator.spec.user_functions import with_user_functions
from faults.consume_mode import ConsumeMode
from nodes.config import (
    BrokerConfig,
    ConsumerConfig,
    LitePullConsumerConfig,
    NameserverConfig,
    ProducerConfig,
    StatefulSetConfig,
)
from nodes.fields import NAMES, SWITCH, TEXT, FieldError, Rule, shown, whole_rule

_NODES = ("nameserver", "broker", "topic", "consumer", "producer", "statefulset")
SCENARIO_TABLES = ("scenario", "network", "guest_limits", *_NODES, "fault", "nemesis")
"""What a scenario file may have at its top."""
_PARSER_MOST = 200
"""Most characters of a message of the TOML parser, which quotes what it found."""
_PORTS_APART = 10
"""Difference between the ports of brokers on one address."""


def load(path: str | Path) -> Scenario:
    """Read a scenario file.

    Raises:
        SpecError: the file cannot be read, is not TOML, or describes an invalid scenario.
    """
    return playable(read_tables(Path(path)), str(path))


def loads(text: str, name: str) -> Scenario:
    """Read a scenario from the text of a file.

    Args:
        name: origin of the text, for messages.

    Raises:
        SpecError: the text is not TOML, or describes an invalid scenario.
    """
    return playable(_parsed(text, name), name)


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, unchecked.

    Raises:
        SpecError: the file cannot be read, or is not TOML.
    """
    try:
        text = read_text(path, FILE_BYTES_MOST)
    except UnreadableError as error:
        raise SpecError("file", f"cannot be read: {error}", str(path)) from None
    return _parsed(text, str(path))


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError("file", f"not TOML: {shown(str(error), _PARSER_MOST)}", name) from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise SpecError("file", "a number has too many digits", name) from None
    except RecursionError:
        raise SpecError("file", "values are nested too deep", name) from None


def from_dict(tables: Mapping[str, Any], name: str = "scenario") -> Scenario:
    """Build a scenario from plain values: those of a parsed file, or of `to_dict`.

    Args:
        tables: a scenario file as the TOML parser returns it.
        name: origin of the values, for messages.

    Raises:
        SpecError: they describe an invalid scenario.
    """
    try:
        return _read(Section.of("", tables, SCENARIO_TABLES))
    except SpecError as error:
        raise error.within(name) from None


def playable(tables: Mapping[str, Any], name: str) -> Scenario:
    """As `from_dict`; the functions that the scenario names are imported, too.

    Raises:
        SpecError: they describe an invalid scenario, or a function cannot be imported.
    """
    scenario = from_dict(tables, name)
    try:
        return with_user_functions(scenario)
    except SpecError as error:
        raise error.within(name) from None


def to_dict(scenario: Scenario) -> dict[str, Any]:
    """The canonical form of a scenario: plain values from which `from_dict` builds an equal one.

    Times are milliseconds and every node has a name; options are included only where
    they differ from the default.
    """
    return {
        "scenario": written(scenario),
        "network": written(scenario.network),
        **({"guest_limits": written(scenario.guest_limits)} if scenario.guest_limits != GuestLimits() else {}),
        "nameserver": [_with_options(it) for it in scenario.nameservers],
        "broker": [_with_options(it) for it in scenario.brokers],
        "topic": [written(it) for it in scenario.topics],
        "consumer": [_consumers(it, scenario.statefulset_of(it.group)) for it in scenario.consumers],
        "producer": [{**_with_options(it), **write_application(it)} for it in scenario.producers],
        **({"statefulset": [_with_options(it) for it in scenario.statefulsets]} if scenario.statefulsets else {}),
        "fault": write_plan(scenario.faults),
        **({"nemesis": write_nemeses(scenario.nemeses)} if scenario.nemeses else {}),
    }


def _with_options(
    spec: NameserverSpec | BrokerSpec | ConsumerGroupSpec | ProducerSpec | StatefulSetSpec,
) -> dict[str, Any]:
    return {**written(spec), "options": write_options(spec.config)}


def _consumers(group: ConsumerGroupSpec, statefulset: StatefulSetSpec | None) -> dict[str, Any]:
    table = {**_with_options(group), **({"lite_pull": True} if group.lite_pull else {})}
    if statefulset is not None:
        table.pop("names", None)  # they follow from its replicas
    return table


def _read(root: Section) -> Scenario:
    head = root.table("scenario", (*keys_of(Scenario), "preset"))
    preset = _read_preset(head)
    brokers = _read_brokers(root, preset)
    statefulsets = _read_statefulsets(root)
    return head.build(
        Scenario,
        network=root.table("network", keys_of(Network)).build(Network),
        guest_limits=root.table("guest_limits", keys_of(GuestLimits)).build(GuestLimits),
        nameservers=_read_nameservers(root, preset),
        brokers=brokers,
        topics=_read_topics(root, tuple(dict.fromkeys(broker.broker_name for broker in brokers))),
        consumers=_read_consumers(root, preset, statefulsets),
        producers=_read_producers(root),
        statefulsets=statefulsets,
        faults=read_plan(root),
        nemeses=read_nemeses(root),
    )


def _count(most: int) -> Rule:
    return whole_rule(least=1, limit=most)


def _read_preset(head: Section) -> Preset:
    name = head.get("preset", TEXT, Preset.CLASSIC)
    expect_known(head.at("preset"), "preset", name, list(Preset))
    return Preset(name)


def _read_nameservers(root: Section, preset: Preset) -> tuple[NameserverSpec, ...]:
    given = preset.nameserver_options()
    if isinstance(root.values.get("nameserver"), list):
        return tuple(
            section.build(NameserverSpec, config=read_options(section, NameserverConfig, given))
            for section in root.tables("nameserver", (*keys_of(NameserverSpec), "options"))
        )
    section = root.table("nameserver", ("count", "options"))
    config = read_options(section, NameserverConfig, given)
    return tuple(
        NameserverSpec(name, config) for name in numbered("ns", section.get("count", _count(NAMESERVERS_MOST), 2))
    )


def _read_brokers(root: Section, preset: Preset) -> tuple[BrokerSpec, ...]:
    sections = list(root.tables("broker", (*keys_of(BrokerSpec), "replicas", "one_address", "options")))
    members: Counter[str] = Counter()
    for section in sections:
        members[section.get("name", NODE_NAME)] += section.get("replicas", _count(BROKERS_MOST), 1)
        if members.total() > BROKERS_MOST:
            raise SpecError(section.path, f"expected {BROKERS_MOST} brokers at most in all")
    held: Counter[str] = Counter()
    """Container -> brokers so far."""
    brokers: list[BrokerSpec] = []
    for section in sections:
        options = dict(preset.broker_options(members[section.get("name", NODE_NAME)]))
        container = section.get("container", NODE_NAME, "")
        if container:
            # Brokers of one process need ports of their own.
            options["listen_port"] = BrokerConfig().listen_port + held[container] * _PORTS_APART
            held[container] += 1
        brokers += _read_replicas(section, options)
    return tuple(brokers)


def _read_replicas(section: Section, preset: Mapping[str, Any]) -> Iterator[BrokerSpec]:
    """The brokers of one table: one broker, or a master and slaves with the same options."""
    replicated = "replicas" in section.values
    for key in ("id", "node", "address_of"):
        if replicated and key in section.values:
            raise SpecError(section.at(key), f"expected only one of {key} and replicas")
    if not replicated and "one_address" in section.values:
        raise SpecError(section.at("one_address"), "expected only beside replicas")
    if replicated and "container" in section.values:
        raise SpecError(section.at("container"), "expected only one of container and replicas: one process holds one")
    first = section.build(BrokerSpec, config=read_options(section, BrokerConfig, preset))
    yield first
    for broker_id in range(1, section.get("replicas", _count(BROKERS_MOST), 1)):
        if section.get("one_address", SWITCH, default=False):
            config = _on_port(section, first.config, first.config.listen_port + broker_id * _PORTS_APART)
            yield attrs.evolve(first, broker_id=broker_id, config=config, address_of=first.name)
        else:
            yield attrs.evolve(first, broker_id=broker_id)


def _on_port(section: Section, config: BrokerConfig, listen_port: int) -> BrokerConfig:
    try:
        return attrs.evolve(config, listen_port=listen_port)
    except FieldError as error:
        raise SpecError(section.at("replicas"), f"a port of a replica: {error.problem}") from None


def _read_topics(root: Section, broker_names: tuple[str, ...]) -> tuple[TopicSpec, ...]:
    return tuple(
        section.build(TopicSpec, brokers=section.get("brokers", NAMES, broker_names))
        for section in root.tables("topic", keys_of(TopicSpec))
    )


def _read_statefulsets(root: Section) -> tuple[StatefulSetSpec, ...]:
    return tuple(
        section.build(StatefulSetSpec, config=read_options(section, StatefulSetConfig))
        for section in root.tables("statefulset", (*keys_of(StatefulSetSpec), "options"))
    )


def _read_consumers(
    root: Section, preset: Preset, statefulsets: tuple[StatefulSetSpec, ...]
) -> tuple[ConsumerGroupSpec, ...]:
    pods = {spec.group: spec.pod_names() for spec in reversed(statefulsets)}
    groups: list[ConsumerGroupSpec] = []
    first = 1
    for section in root.tables("consumer", (*keys_of(ConsumerGroupSpec), "count", "lite_pull", "options")):
        if "names" in section.values and "count" in section.values:
            raise SpecError(section.at("count"), "expected only one of count and names")
        for key in ("names", "count"):
            if section.values.get(key) and "share_process_with" in section.values:
                raise SpecError(section.at(key), f"expected only one of {key} and share_process_with")
        is_lite_pull = section.get("lite_pull", SWITCH, default=False)
        names = () if "share_process_with" in section.values else _consumer_names(section, first, pods)
        first += len(names)
        if first > CONSUMERS_MOST:
            raise SpecError(section.path, f"expected {CONSUMERS_MOST} consumers at most in all")
        config = (
            read_options(section, LitePullConsumerConfig)
            if is_lite_pull
            else read_options(section, ConsumerConfig, _consumer_options(section, preset))
        )
        mode = section.get("mode", TEXT, ConsumeMode.PULL)
        groups.append(section.build(ConsumerGroupSpec, names=names, config=config, mode=mode))
    return tuple(groups)


def _consumer_options(section: Section, preset: Preset) -> Mapping[str, Any]:
    """Options that the table need not set: a group that pops asks a broker for its queues."""
    pops = section.values.get("mode") == ConsumeMode.POP
    return {**preset.consumer_options(), **({"client_rebalance": False, "pinned_assigner": False} if pops else {})}


def _consumer_names(section: Section, first: int, pods: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if "names" in section.values:
        return tuple(section.get("names", NODE_NAMES))
    group = section.get("group", GROUP_NAME)
    if group in pods:
        if "count" in section.values:
            raise SpecError(section.at("count"), f"expected none: the StatefulSet of {group} has replicas")
        return pods[group]
    return numbered("consumer", section.get("count", _count(CONSUMERS_MOST), 1), first)


def _read_producers(root: Section) -> tuple[ProducerSpec, ...]:
    return tuple(
        section.build(
            ProducerSpec,
            name=section.get("name", NODE_NAME, f"producer-{number}"),
            config=read_options(section, ProducerConfig),
            **read_application(section),
        )
        for number, section in enumerate(
            root.tables("producer", (*keys_of(ProducerSpec), "options", *APPLICATION_KEYS)),
            start=1,
        )
    )
