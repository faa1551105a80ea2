"""Scenarios as files: from TOML, from plain values, and back to plain values for the manifest of a run.

The form of a file is shown by `examples/half_seen_consumer.toml`. Options
stand under RocketMQ's camelCase names; snake_case is understood, too.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from emulator.spec_faults import read_nemeses, read_plan, write_nemeses, write_plan
from emulator.spec_model import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Network,
    ProducerSpec,
    Scenario,
    TopicSpec,
    numbered,
)
from emulator.spec_options import read_options, write_options
from emulator.spec_presets import Preset
from emulator.spec_section import Section, SpecError, expect_known
from emulator.spec_transactions import TRANSACTION_KEYS, read_transactions, write_transactions
from nodes.config import (
    BrokerConfig,
    ConfigError,
    ConsumerConfig,
    LitePullConsumerConfig,
    NameserverConfig,
    ProducerConfig,
)

__all__ = [
    "BrokerSpec",
    "ConsumerGroupSpec",
    "NameserverSpec",
    "Network",
    "Preset",
    "ProducerSpec",
    "Scenario",
    "SpecError",
    "TopicSpec",
    "from_dict",
    "load",
    "loads",
    "to_dict",
]

_TOP = ("scenario", "network", "nameserver", "broker", "topic", "consumer", "producer", "fault", "nemesis")
_HEAD = (
    *("name", "seed", "preset", "run_for_s", "run_for_ms", "start_spread_s", "start_spread_ms"),
    *("nameserver_start_spread_s", "nameserver_start_spread_ms", "broker_start_spread_s", "broker_start_spread_ms"),
    *("even_starts", "broker_boot_spread_s", "broker_boot_spread_ms", "guests"),
)
_BROKER = (
    *("name", "id", "replicas", "one_address", "node", "address_of", "cluster"),
    *("start_after_s", "start_after_ms", "options"),
)
_CONSUMER = (
    *("group", "count", "names", "topics", "options", "consume_ms", "fail_times", "expressions"),
    *("share_process_with", "one_address", "lite_pull"),
)
_PORTS_APART = 10
"""Between the ports of replicas on one address."""


def load(path: str | Path) -> Scenario:
    """Read a scenario file.

    Raises:
        SpecError: the file cannot be read, is no TOML, or says something that cannot be.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError("file", f"cannot be read: {error}", str(path)) from None
    return loads(text, str(path))


def loads(text: str, name: str) -> Scenario:
    """Read a scenario from the text of a file.

    Args:
        name: where the text came from, for messages.

    Raises:
        SpecError: the text is no TOML, or says something that cannot be.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError("file", f"not TOML: {error}", name) from None
    return from_dict(tables, name)


def from_dict(tables: Mapping[str, Any], name: str = "scenario") -> Scenario:
    """Build a scenario from the plain values of a file, or of `to_dict`.

    Args:
        tables: what the TOML parser makes of a scenario file.
        name: where they came from, for messages.

    Raises:
        SpecError: they say something that cannot be.
    """
    try:
        return _read(Section.of("", tables, _TOP))
    except SpecError as error:
        raise error.within(name) from None


def to_dict(scenario: Scenario) -> dict[str, Any]:
    """The canonical form of a scenario: plain values from which `from_dict` builds an equal one.

    Times are milliseconds, every node is named, options stand there only where
    they differ from the default.
    """
    return {
        "scenario": {
            "name": scenario.name,
            "seed": scenario.seed,
            "run_for_ms": scenario.run_for_ms,
            "nameserver_start_spread_ms": scenario.nameserver_start_spread_ms,
            "broker_start_spread_ms": scenario.broker_start_spread_ms,
            "even_starts": scenario.even_starts,
            "broker_boot_spread_ms": scenario.broker_boot_spread_ms,
            "start_spread_ms": scenario.start_spread_ms,
            **({"guests": list(scenario.guests)} if scenario.guests else {}),
        },
        "network": attrs.asdict(scenario.network),
        "nameserver": [{"name": it.name, "options": write_options(it.config)} for it in scenario.nameservers],
        "broker": [_write_broker(it) for it in scenario.brokers],
        "topic": [{"name": it.name, "queues": it.queues, "brokers": list(it.brokers)} for it in scenario.topics],
        "consumer": [_write_consumers(it) for it in scenario.consumers],
        "producer": [
            {
                "name": it.name,
                "group": it.group,
                "topic": it.topic,
                "rate_per_s": it.rate_per_s,
                **({"tags": list(it.tags)} if it.tags else {}),
                **write_transactions(it.transactions),
                "options": write_options(it.config),
            }
            for it in scenario.producers
        ],
        "fault": write_plan(scenario.faults),
        **({"nemesis": write_nemeses(scenario.nemeses)} if scenario.nemeses else {}),
    }


def _write_broker(broker: BrokerSpec) -> dict[str, Any]:
    return {
        "name": broker.broker_name,
        "id": broker.broker_id,
        **({} if broker.node is None else {"node": broker.node}),
        **({} if broker.address_of is None else {"address_of": broker.address_of}),
        "cluster": broker.cluster,
        "start_after_ms": broker.start_after_ms,
        "options": write_options(broker.config),
    }


def _write_consumers(consumers: ConsumerGroupSpec) -> dict[str, Any]:
    return {
        "group": consumers.group,
        "names": list(consumers.names),
        "topics": list(consumers.topics),
        "consume_ms": consumers.consume_ms,
        **({"fail_times": consumers.fail_times} if consumers.fail_times else {}),
        **({"expressions": dict(consumers.expressions)} if consumers.expressions else {}),
        **({"share_process_with": consumers.share_process_with} if consumers.share_process_with else {}),
        **({"one_address": True} if consumers.one_address else {}),
        **({"lite_pull": True} if consumers.lite_pull else {}),
        "options": write_options(consumers.config),
    }


def _read(root: Section) -> Scenario:
    head = root.table("scenario", _HEAD)
    network = root.table("network", ("delay_ms", "jitter_ms"))
    preset = _read_preset(head)
    brokers = _read_brokers(root, preset)
    spread_ms = head.span_ms("start_spread")
    return Scenario(
        name=head.text("name"),
        seed=head.number("seed", 1),
        run_for_ms=head.needed_span_ms("run_for"),
        nameserver_start_spread_ms=head.span_ms("nameserver_start_spread") or 0,
        broker_start_spread_ms=head.span_ms("broker_start_spread") or 0,
        even_starts=head.flag("even_starts", default=False),
        broker_boot_spread_ms=head.span_ms("broker_boot_spread") or 0,
        start_spread_ms=1_000 if spread_ms is None else spread_ms,
        network=Network(network.number("delay_ms", 1), network.number("jitter_ms", 0)),
        nameservers=_read_nameservers(root, preset),
        brokers=brokers,
        topics=_read_topics(root, tuple(dict.fromkeys(broker.broker_name for broker in brokers))),
        consumers=_read_consumers(root),
        producers=_read_producers(root),
        guests=head.texts("guests", ()),
        faults=read_plan(root),
        nemeses=read_nemeses(root),
    )


def _read_preset(head: Section) -> Preset:
    name = head.text("preset", Preset.CLASSIC)
    expect_known(head.at("preset"), "preset", name, list(Preset))
    return Preset(name)


def _read_nameservers(root: Section, preset: Preset) -> tuple[NameserverSpec, ...]:
    given = preset.nameserver_options()
    if isinstance(root.values.get("nameserver"), list):
        return tuple(
            NameserverSpec(section.text("name"), read_options(section, NameserverConfig, given))
            for section in root.tables("nameserver", ("name", "options"))
        )
    section = root.table("nameserver", ("count", "options"))
    config = read_options(section, NameserverConfig, given)
    return tuple(NameserverSpec(name, config) for name in numbered("ns", section.number("count", 2, least=1)))


def _read_brokers(root: Section, preset: Preset) -> tuple[BrokerSpec, ...]:
    sections = list(root.tables("broker", _BROKER))
    members: Counter[str] = Counter()
    for section in sections:
        members[section.text("name")] += section.number("replicas", 1, least=1)
    return tuple(
        broker
        for section in sections
        for broker in _read_replicas(section, preset.broker_options(members[section.text("name")]))
    )


def _read_replicas(section: Section, preset: Mapping[str, Any]) -> Iterator[BrokerSpec]:
    """The brokers of one table: one, or a master and its slaves that are alike."""
    replicated = "replicas" in section.values
    for key in ("id", "node", "address_of"):
        if replicated and key in section.values:
            raise SpecError(section.at(key), f"expected only one of {key} and replicas")
    if not replicated and "one_address" in section.values:
        raise SpecError(section.at("one_address"), "expected only beside replicas")
    first = BrokerSpec(
        section.text("name"),
        section.number("id", 0),
        section.text("cluster", "DefaultCluster"),
        read_options(section, BrokerConfig, preset),
        start_after_ms=section.span_ms("start_after") or 0,
        address_of=section.text("address_of") if "address_of" in section.values else None,
        node=section.text("node") if "node" in section.values else None,
    )
    yield first
    for broker_id in range(1, section.number("replicas", 1, least=1)):
        if section.flag("one_address", default=False):
            config = _on_port(section, first.config, first.config.listen_port + broker_id * _PORTS_APART)
            yield attrs.evolve(first, broker_id=broker_id, config=config, address_of=first.name)
        else:
            yield attrs.evolve(first, broker_id=broker_id)


def _on_port(section: Section, config: BrokerConfig, listen_port: int) -> BrokerConfig:
    try:
        return attrs.evolve(config, listen_port=listen_port)
    except ConfigError as error:
        raise SpecError(section.at("replicas"), f"a port of a replica: expected {error.expected}") from None


def _read_topics(root: Section, broker_names: tuple[str, ...]) -> tuple[TopicSpec, ...]:
    return tuple(
        TopicSpec(section.text("name"), section.texts("brokers", broker_names), section.number("queues", 8, least=1))
        for section in root.tables("topic", ("name", "queues", "brokers"))
    )


def _read_consumers(root: Section) -> tuple[ConsumerGroupSpec, ...]:
    groups: list[ConsumerGroupSpec] = []
    first = 1
    for section in root.tables("consumer", _CONSUMER):
        if "names" in section.values and "count" in section.values:
            raise SpecError(section.at("count"), "expected only one of count and names")
        for key in ("names", "count"):
            if section.values.get(key) and "share_process_with" in section.values:
                raise SpecError(section.at(key), f"expected only one of {key} and share_process_with")
        is_lite_pull = section.flag("lite_pull", default=False)
        shared = section.text("share_process_with") if "share_process_with" in section.values else None
        names = () if shared else _consumer_names(section, first)
        first += len(names)
        groups.append(
            ConsumerGroupSpec(
                section.text("group"),
                names,
                section.texts("topics"),
                read_options(section, LitePullConsumerConfig if is_lite_pull else ConsumerConfig),
                section.number("consume_ms", 0),
                section.number("fail_times", 0),
                section.text_map("expressions"),
                shared,
                section.flag("one_address", default=False),
            )
        )
    return tuple(groups)


def _consumer_names(section: Section, first: int) -> tuple[str, ...]:
    if "names" in section.values:
        return section.texts("names")
    return numbered("consumer", section.number("count", 1, least=1), first)


def _read_producers(root: Section) -> tuple[ProducerSpec, ...]:
    return tuple(
        ProducerSpec(
            section.text("name", f"producer-{number}"),
            section.text("group"),
            section.text("topic"),
            section.number("rate_per_s", 10, least=1),
            read_options(section, ProducerConfig),
            section.texts("tags", ()),
            read_transactions(section),
        )
        for number, section in enumerate(
            root.tables("producer", ("name", "group", "topic", "rate_per_s", "tags", "options", *TRANSACTION_KEYS)),
            start=1,
        )
    )
