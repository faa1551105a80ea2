"""What differs between two scenarios, by name: options, nodes, faults, seed."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from emulator.base.text import shortened
from emulator.spec.model.scenario import Scenario
from emulator.spec.reading.file import to_dict
from faults.nemesis import Nemesis
from nodes.config import Config, options
from nodes.fields import key_of
from nodes.secret import Secret

_VALUE_CHARS = 120
_NOT_SET = "not set"


@attrs.frozen
class ScenarioDifference:
    """One key that differs, or a part that only one of two scenarios has."""

    section: str
    """Table of a scenario file: `scenario`, `network`, `broker`, `fault`, ..."""
    names: tuple[str, ...]
    """The parts of the section that differ in this way; empty for a section of one part."""
    key: str
    """Name of the option or key; empty: the whole part."""
    first: Any
    """Value in the first scenario; for a whole part what it is, or None where it is missing."""
    second: Any

    def words(self, first: str = "A", second: str = "B") -> str:
        """`broker broker-a, broker-b: channelExpiredTimeout 120000 in A, 30000 in B`.

        Args:
            first: what to call the first scenario.
            second: what to call the second scenario.
        """
        if not self.key:
            subject, only_in = (self.second, second) if self.first is None else (self.first, first)
            return f"{self.what} only in {only_in}{f': {subject}' if subject else ''}"
        return f"{self.what} {_shown(self.first)} in {first}, {_shown(self.second)} in {second}"

    def became(self) -> str:
        """`consumer g: names c1 in place of c1 c2 c3`."""
        return f"{self.what} {_shown(self.second)} in place of {_shown(self.first)}"

    @property
    def what(self) -> str:
        """`broker broker-a, broker-b: channelExpiredTimeout`; `seed`; of a whole part `broker broker-c`."""
        part = " ".join(text for text in (self.section, ", ".join(self.names)) if text)
        if not self.key:
            return part
        return self.key if self.section == "scenario" else f"{part}: {self.key}"


@attrs.frozen
class _ScenarioPart:
    """A node, a topic, a fault, ...: its keys with values, and how to say what it is."""

    values: Mapping[str, Any]
    defaults: Mapping[str, Any] = attrs.Factory(dict)
    description: str = ""

    def value(self, key: str) -> Any:
        return self.values.get(key, self.defaults.get(key, _NOT_SET))


def differences(first: Scenario, second: Scenario) -> tuple[ScenarioDifference, ...]:
    """Everything in which two scenarios differ, in the order of scenario files.

    Nodes, topics, groups and faults are compared with those of the same name. The names of parts that differ in the
    same key by the same values stand together.
    """
    found: dict[tuple[str, str, str, str], ScenarioDifference] = {}
    for item in _all(_parts(first), _parts(second)):
        same = (item.section, item.key, repr(item.first), repr(item.second)) if item.key else (repr(item), "", "", "")
        known = found.get(same)
        found[same] = item if known is None else attrs.evolve(known, names=(*known.names, *item.names))
    return tuple(found.values())


def _all(
    first: dict[tuple[str, str], _ScenarioPart], second: dict[tuple[str, str], _ScenarioPart]
) -> Iterator[ScenarioDifference]:
    for place in dict.fromkeys((*first, *second)):
        section, name = place
        names = (name,) if name else ()
        here, there = first.get(place), second.get(place)
        if here is None or there is None:
            yield ScenarioDifference(section, names, "", here and here.description, there and there.description)
            continue
        for key in dict.fromkeys((*here.values, *there.values)):
            if here.value(key) != there.value(key):
                yield ScenarioDifference(section, names, key, here.value(key), there.value(key))


def _parts(scenario: Scenario) -> dict[tuple[str, str], _ScenarioPart]:
    """Mapping (section, name) -> part; a section of one part has the name ``."""
    tables = to_dict(scenario)
    alone = {"scenario": scenario, "network": scenario.network, "guest_limits": scenario.guest_limits}
    alone |= {"service": scenario.service}
    if scenario.address_server is not None:
        alone["address_server"] = scenario.address_server
    found = {
        (section, ""): _ScenarioPart(tables.get(section, {}), _defaults(element)) for section, element in alone.items()
    }
    named: dict[str, list[tuple[str, Any]]] = {
        "private_network": [(network.name, network) for network in scenario.private_networks],
        "nameserver": [(nameserver.name, nameserver) for nameserver in scenario.nameservers],
        "domain": [(domain.name, domain) for domain in scenario.domains],
        "controller": [(controller.name, controller) for controller in scenario.controllers],
        "proxy": [(proxy.name, proxy) for proxy in scenario.proxies],
        "broker": [(broker.name, broker) for broker in scenario.brokers],
        "topic": [(topic.name, topic) for topic in scenario.topics],
        "consumer": [
            (_group(consumer.group, consumer.share_process_with), consumer) for consumer in scenario.consumers
        ],
        "producer": [(producer.name, producer) for producer in scenario.producers],
        "statefulset": [(statefulset.name, statefulset) for statefulset in scenario.statefulsets],
        "account": [(account.access_key, account) for account in scenario.accounts],
    }
    for section, parts in named.items():
        for (name, item), table in zip(parts, tables.get(section, ()), strict=True):
            values = {key: value for key, value in table.items() if key != "options"} | table.get("options", {})
            found[section, name] = _ScenarioPart(
                values, _defaults(item) | _default_options(getattr(item, "config", None))
            )
    for timed, table in zip(scenario.faults.faults, tables["fault"], strict=True):
        found["fault", timed.id] = _ScenarioPart(table, {"for_ms": "until the end"}, timed.describe())
    for act, table in zip(scenario.acts, tables.get("admin", ()), strict=True):
        found["admin", act.id] = _ScenarioPart(table, {}, act.describe())
    for nemesis, table in zip(scenario.nemeses, tables.get("nemesis", ()), strict=True):
        found["nemesis", nemesis.id] = _ScenarioPart(table, {}, _nemesis_words(nemesis))
    return found


def _nemesis_words(nemesis: Nemesis) -> str:
    often = f"{'exactly ' if nemesis.periodic else ''}every {nemesis.every_ms} ms"
    return f"{often}: {nemesis.fault.describe()}"


def _group(group: str, process: str | None) -> str:
    return group if process is None else f"{group} in the processes of {process}"


def _defaults(value: Any) -> dict[str, Any]:
    """Mapping key -> default, for the keys of a table that have one."""
    fields = (field for field in attrs.fields(type(value)) if "rule" in field.metadata)
    return {key_of(field): field.default for field in fields if field.default not in (attrs.NOTHING, None)}


def _default_options(config: Config | None) -> dict[str, Any]:
    known = {} if config is None else options(type(config))
    # As `to_dict` writes options: str() of a StrEnum is its plain text.
    texts = {name: str(field.default) for name, field in known.items() if isinstance(field.default, str)}
    defaults = {name: field.default for name, field in known.items() if not isinstance(field.default, Secret)}
    return defaults | texts


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return shortened(" ".join(map(str, value)) or "none", _VALUE_CHARS)
    if isinstance(value, bool):
        return "true" if value else "false"
    return shortened(str(value), _VALUE_CHARS)
