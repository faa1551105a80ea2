"""Scenarios as files: from TOML, from plain values, and back to plain values for the manifest of a run.

The form of a file is shown by `examples/half_seen_consumer.toml`. Options
stand under RocketMQ's camelCase names; snake_case is understood, too.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs

from emulator.spec_faults import read_plan, write_plan
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
from emulator.spec_section import Section, SpecError, suggestion
from nodes.config import (
    BrokerConfig,
    Config,
    ConfigError,
    ConsumerConfig,
    NameserverConfig,
    ProducerConfig,
    options,
)

__all__ = [
    "BrokerSpec",
    "ConsumerGroupSpec",
    "NameserverSpec",
    "Network",
    "ProducerSpec",
    "Scenario",
    "SpecError",
    "TopicSpec",
    "from_dict",
    "load",
    "loads",
    "to_dict",
]

_AnyConfig = TypeVar("_AnyConfig", bound=Config)
_TOP = ("scenario", "network", "nameserver", "broker", "topic", "consumer", "producer", "fault")


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
            "start_spread_ms": scenario.start_spread_ms,
        },
        "network": attrs.asdict(scenario.network),
        "nameserver": [{"name": it.name, "options": _write_options(it.config)} for it in scenario.nameservers],
        "broker": [
            {
                "name": it.broker_name,
                "id": it.broker_id,
                "cluster": it.cluster,
                "options": _write_options(it.config),
            }
            for it in scenario.brokers
        ],
        "topic": [{"name": it.name, "queues": it.queues, "brokers": list(it.brokers)} for it in scenario.topics],
        "consumer": [
            {
                "group": it.group,
                "names": list(it.names),
                "topics": list(it.topics),
                "consume_ms": it.consume_ms,
                "options": _write_options(it.config),
            }
            for it in scenario.consumers
        ],
        "producer": [
            {
                "name": it.name,
                "group": it.group,
                "topic": it.topic,
                "rate_per_s": it.rate_per_s,
                "options": _write_options(it.config),
            }
            for it in scenario.producers
        ],
        "fault": write_plan(scenario.faults),
    }


def _read(root: Section) -> Scenario:
    head = root.table("scenario", ("name", "seed", "run_for_s", "run_for_ms", "start_spread_s", "start_spread_ms"))
    network = root.table("network", ("delay_ms", "jitter_ms"))
    brokers = _read_brokers(root)
    spread_ms = head.span_ms("start_spread")
    return Scenario(
        name=head.text("name"),
        seed=head.number("seed", 1),
        run_for_ms=head.needed_span_ms("run_for"),
        start_spread_ms=1_000 if spread_ms is None else spread_ms,
        network=Network(network.number("delay_ms", 1), network.number("jitter_ms", 0)),
        nameservers=_read_nameservers(root),
        brokers=brokers,
        topics=_read_topics(root, tuple(dict.fromkeys(broker.broker_name for broker in brokers))),
        consumers=_read_consumers(root),
        producers=_read_producers(root),
        faults=read_plan(root),
    )


def _read_nameservers(root: Section) -> tuple[NameserverSpec, ...]:
    if isinstance(root.values.get("nameserver"), list):
        return tuple(
            NameserverSpec(section.text("name"), _read_options(section, NameserverConfig))
            for section in root.tables("nameserver", ("name", "options"))
        )
    section = root.table("nameserver", ("count", "options"))
    config = _read_options(section, NameserverConfig)
    return tuple(NameserverSpec(name, config) for name in numbered("ns", section.number("count", 2, least=1)))


def _read_brokers(root: Section) -> tuple[BrokerSpec, ...]:
    return tuple(
        BrokerSpec(
            section.text("name"),
            section.number("id", 0),
            section.text("cluster", "DefaultCluster"),
            _read_options(section, BrokerConfig),
        )
        for section in root.tables("broker", ("name", "id", "cluster", "options"))
    )


def _read_topics(root: Section, broker_names: tuple[str, ...]) -> tuple[TopicSpec, ...]:
    return tuple(
        TopicSpec(section.text("name"), section.texts("brokers", broker_names), section.number("queues", 8, least=1))
        for section in root.tables("topic", ("name", "queues", "brokers"))
    )


def _read_consumers(root: Section) -> tuple[ConsumerGroupSpec, ...]:
    groups: list[ConsumerGroupSpec] = []
    first = 1
    for section in root.tables("consumer", ("group", "count", "names", "topics", "options", "consume_ms")):
        if "names" in section.values and "count" in section.values:
            raise SpecError(section.at("count"), "expected only one of count and names")
        count = section.number("count", 1, least=1)
        names = section.texts("names") if "names" in section.values else numbered("consumer", count, first)
        first += len(names)
        groups.append(
            ConsumerGroupSpec(
                section.text("group"),
                names,
                section.texts("topics"),
                _read_options(section, ConsumerConfig),
                section.number("consume_ms", 0),
            )
        )
    return tuple(groups)


def _read_producers(root: Section) -> tuple[ProducerSpec, ...]:
    return tuple(
        ProducerSpec(
            section.text("name", f"producer-{number}"),
            section.text("group"),
            section.text("topic"),
            section.number("rate_per_s", 10, least=1),
            _read_options(section, ProducerConfig),
        )
        for number, section in enumerate(
            root.tables("producer", ("name", "group", "topic", "rate_per_s", "options")), start=1
        )
    )


def _read_options(section: Section, config_class: type[_AnyConfig]) -> _AnyConfig:
    known = options(config_class)
    fields = {field.name: field for field in known.values()}
    given = Section(section.at("options"), section.values.get("options", {}))
    if not isinstance(given.values, Mapping):
        raise SpecError(given.path, f"expected a table, not {given.values!r}")
    config = config_class()
    taken: dict[str, str] = {}
    for key, value in given.values.items():
        field = known.get(key) or fields.get(key)
        if field is None:
            raise SpecError(given.at(key), f"unknown option; {suggestion(key, list(known))}")
        if field.name in taken:
            raise SpecError(given.at(key), f"expected once, but {taken[field.name]} is there, too")
        taken[field.name] = key
        try:
            config = attrs.evolve(config, **{field.name: value})
        except ConfigError as error:
            raise SpecError(given.at(key), f"expected {error.expected}") from None
    return config


def _write_options(config: Config) -> dict[str, Any]:
    # TOML and JSON know texts, not enums; str() of a StrEnum is its plain text.
    changed: dict[str, Any] = {}
    for option, field in options(type(config)).items():
        value = getattr(config, field.name)
        if value != field.default:
            changed[option] = str(value) if isinstance(value, str) else value
    return changed
