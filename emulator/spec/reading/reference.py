"""What may stand in a scenario file, read from the definitions that read the file: keys, options, presets, releases."""

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, get_type_hints

import attrs

from emulator.acts.catalogue import ACTS
from emulator.base.attribute_docs import attribute_docs
from emulator.spec.model.guest_limits import GuestLimits
from emulator.spec.model.networks import Network, PrivateNetworkSpec
from emulator.spec.model.presets import Preset
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ProxySpec
from emulator.spec.model.scenario import (
    AddressServerSpec,
    BrokerSpec,
    ConsumerGroupSpec,
    ControllerSpec,
    DomainSpec,
    NameserverSpec,
    Scenario,
    StatefulSetSpec,
    TopicSpec,
)
from emulator.spec.model.service_limits import ServiceLimits
from emulator.spec.reading.acts import ActKeys, ActTimes
from emulator.spec.reading.applications import ApplicationKeys
from emulator.spec.reading.faults import FaultKeys, FaultTimes, NemesisTimes
from emulator.spec.reading.node_tables import (
    BrokerKeys,
    ConsumerKeys,
    ControllerKeys,
    NameserverKeys,
    OptionsKeys,
    ScenarioKeys,
)
from emulator.spec.refusals.targets import KEYS
from emulator.spec.tables.mistakes import require_known
from emulator.spec.tables.releases import RELEASE, Release, set_by_release
from faults.catalogue import FAULTS, fields_of, scope_of
from nodes.client.producer.keys import KeyDistribution, MessageKeys
from nodes.client.producer.partitions import TopicPartitions
from nodes.config import (
    NOT_IN_LITE_PULL,
    NOT_IN_PULL,
    BrokerConfig,
    Config,
    ConsumerConfig,
    ControllerConfig,
    LitePullConsumerConfig,
    NameserverConfig,
    ProducerConfig,
    PullConsumerConfig,
    StatefulSetConfig,
    options,
)
from nodes.config.accounts import PlainAccessConfig
from nodes.config.client5 import Producer5Config, PushConsumer5Config, SimpleConsumer5Config
from nodes.config.proxy import ProxyConfig
from nodes.fields import key_of, rule_of, unit_of

ROLES: Mapping[str, type[Config]] = MappingProxyType(
    {
        "nameserver": NameserverConfig,
        "controller": ControllerConfig,
        "proxy": ProxyConfig,
        "broker": BrokerConfig,
        "consumer": ConsumerConfig,
        "lite-pull-consumer": LitePullConsumerConfig,
        "push5-consumer": PushConsumer5Config,
        "simple-consumer": SimpleConsumer5Config,
        "classic-pull-consumer": PullConsumerConfig,
        "producer": ProducerConfig,
        "producer5": Producer5Config,
        "statefulset": StatefulSetConfig,
    }
)
"""Mapping role -> the class of its options."""
_UNITS = {"_ms": "milliseconds", "_bytes": "bytes", "_percent": "percent", "_per_s": "per second"}
"""End of a key that says the unit -> the unit."""
_FILLED_IN: Mapping[tuple[type, str], str] = MappingProxyType(
    {
        (AddressServerSpec, "nameservers"): "all",
        (TopicSpec, "brokers"): "all that run at the start",
        (ConsumerGroupSpec, "names"): "as count says",
        (ProducerSpec, "name"): "producer-1, ...",
    }
)
"""Fields that a file need not have, although the class needs them -> what stands in their place."""
_PER_REPLICAS = (2, 3)
_IN_CODE = re.compile(r"`([a-z0-9_]+)`")


@attrs.frozen
class ReferenceEntry:
    """One key or option."""

    name: str
    """As people write it; of a time also in the other unit: `run_for_s, run_for_ms`."""
    type: str
    """What it may be: `whole number >= 1`, `true or false`, `one of AVG, CONFIG`."""
    unit: str
    """What its number counts; empty: things, or it is no number."""
    default: str
    """As TOML writes it; `required` or `none` where there is no default."""
    meaning: str
    """In one line."""
    sets: tuple[tuple[str, str], ...] = ()
    """(preset or release, value) of each that sets it."""

    def reported(self) -> str:
        """What sets it, in one line: `rip32: true; 4.9: false`."""
        return "; ".join(f"{by}: {value}" for by, value in self.sets)


def options_of(role: str) -> tuple[ReferenceEntry, ...]:
    """All options of a role, `release` first, the others by name.

    Raises:
        SpecError: there is no such role.
    """
    require_known("options", "role", role, list(ROLES))
    kind = ROLES[role]
    listed = sorted(options(kind).items(), key=lambda named: named[0].lower())
    fixed = {LitePullConsumerConfig: NOT_IN_LITE_PULL, PullConsumerConfig: NOT_IN_PULL}.get(kind, ())
    release = (_release(),) if set_by_release(Release.ANCHOR, kind) else ()
    return (*release, *(_entry(kind, item, _setters(kind, item.name)) for _, item in listed if item.name not in fixed))


def sections() -> Mapping[str, tuple[ReferenceEntry, ...]]:
    """Mapping heading of a section -> its keys, in the order of a scenario file, without the options of roles."""
    return {
        "[scenario]": (*_entries(Scenario), *_entries(ScenarioKeys)),
        "[network]": _entries(Network),
        "[guest_limits]": _entries(GuestLimits),
        "[service]": _entries(ServiceLimits),
        "[address_server]": _entries(AddressServerSpec),
        "[[private_network]]": _entries(PrivateNetworkSpec),
        "[nameserver]": _entries(NameserverKeys),
        "[[nameserver]]": (*_entries(NameserverSpec), *_entries(OptionsKeys)),
        "[[domain]]": _entries(DomainSpec),
        "[controller]": _entries(ControllerKeys),
        "[[controller]]": (*_entries(ControllerSpec), *_entries(OptionsKeys)),
        "[[proxy]]": (*_entries(ProxySpec), *_entries(OptionsKeys)),
        "[[broker]]": (*_entries(BrokerSpec), *_entries(BrokerKeys)),
        "[[topic]]": _entries(TopicSpec),
        "[[consumer]]": (*_entries(ConsumerGroupSpec), *_entries(ConsumerKeys)),
        "[[producer]]": (*_entries(ProducerSpec), *_entries(ApplicationKeys), *_entries(OptionsKeys)),
        "[producer.keys]": (*_entries(MessageKeys), _distribution()),
        "[producer.partitions]": _entries(TopicPartitions),
        "[[statefulset]]": (*_entries(StatefulSetSpec), *_entries(OptionsKeys)),
        "[[account]]": _entries(PlainAccessConfig),
        "[[fault]]": (*_entries(FaultKeys), *_entries(FaultTimes)),
        "[[nemesis]]": (*_entries(FaultKeys), *_entries(NemesisTimes)),
        "[[admin]]": (*_entries(ActKeys), *_entries(ActTimes)),
    }


def kinds_of_faults() -> Mapping[str, tuple[str, tuple[ReferenceEntry, ...]]]:
    """Mapping kind of fault -> (what it does, its keys with those of every fault)."""
    return {
        kind: (
            fault.wording.summary,
            tuple(entry for part in (scope_of(fault), fault) for entry in _keys_of_part(part)),
        )
        for kind, fault in FAULTS.items()
    }


def kinds_of_acts() -> Mapping[str, tuple[str, tuple[ReferenceEntry, ...]]]:
    """Mapping kind of act -> (what it does, its keys with those of every act)."""
    return {kind: (act.wording.summary, _entries(act)) for kind, act in ACTS.items()}


def _entries(kind: type) -> tuple[ReferenceEntry, ...]:
    return tuple(_entry(kind, field) for field in attrs.fields(kind) if "rule" in field.metadata)


def _keys_of_part(part: type) -> Iterator[ReferenceEntry]:
    for field in fields_of(part):
        yield attrs.evolve(_entry(part, field), name=KEYS.get(field.name, field.name))


def _entry(kind: type, field: "attrs.Attribute[Any]", sets: tuple[tuple[str, str], ...] = ()) -> ReferenceEntry:
    key = key_of(field)
    unit = unit_of(field) or next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")
    expected = _type(kind, field, unit_of(field))
    default = _FILLED_IN.get((kind, field.name)) or _default(field)
    if field.metadata.get("span"):
        key, unit = _in_both_units(key, unit)
        # Of seconds, which may have a fraction.
        expected = expected.replace("whole number >= 1", "number > 0").replace("whole number", "number")
    return ReferenceEntry(key, expected, unit, default, _meaning(kind, field), sets)


def _in_both_units(key: str, unit: str) -> tuple[str, str]:
    return f"{key.removesuffix('_ms')}_s, {key}", f"seconds, {unit}"


def _type(kind: type, field: "attrs.Attribute[Any]", unit: str) -> str:
    """The rule of a field without article and unit; of a field without a rule, what its type says."""
    if "rule" in field.metadata:
        expected = rule_of(field).expected.replace(f" of {unit}", "") if unit else rule_of(field).expected
        return re.sub(r"^an? ", "", expected)
    hint = get_type_hints(kind)[field.name]
    if hint is bool:
        return "true or false"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return f"one of {', '.join(str(item.value) for item in hint)}"
    return "table of options" if field.name == "options" else "nodes, by name or by meaning"


def _default(field: "attrs.Attribute[Any]") -> str:
    if field.default is attrs.NOTHING:
        return "required"
    if isinstance(field.default, attrs.Factory) or field.default in (None, (), {}):  # type: ignore[arg-type]
        return "none"
    return as_toml(field.default)


def as_toml(value: object) -> str:
    """A value as one writes it in a file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return f'"{value}"'


def _meaning(kind: type, field: "attrs.Attribute[Any]") -> str:
    """What the definition says of a field, with options under the names that people write."""
    answer = attribute_docs(kind).get(field.name, "")
    names = {item.name: key_of(item) for item in attrs.fields(kind)}
    return _IN_CODE.sub(lambda found: f"`{names.get(found[1], found[1])}`", answer)


def _setters(kind: type[Config], name: str) -> tuple[tuple[str, str], ...]:
    """(preset or release, value) of each that sets a field."""
    found = [(preset.value, _set_by_preset(preset, kind, name)) for preset in Preset]
    found += [
        (f"release {release.value}", as_toml(value))
        for release in Release
        for field, value in set_by_release(release, kind).items()
        if field == name
    ]
    return tuple((by, value) for by, value in found if value)


def _set_by_preset(preset: Preset, kind: type[Config], name: str) -> str:
    """What a preset sets a field to; empty: nothing."""
    if kind is BrokerConfig:
        few, many = (preset.broker_options(replicas).get(name) for replicas in _PER_REPLICAS)
        if few != many:
            return "as many as replicas"
        return "" if few is None else as_toml(few)
    of = {NameserverConfig: preset.nameserver_options(), ConsumerConfig: preset.consumer_options()}
    given = of.get(kind, {})
    return as_toml(given[name]) if name in given else ""


def _release() -> ReferenceEntry:
    meaning = "A preset of the options that a release lacks or has with other defaults; others take precedence."
    return ReferenceEntry(RELEASE, f"one of {', '.join(Release)}", "", as_toml(Release.ANCHOR), meaning)


def _distribution() -> ReferenceEntry:
    kinds = ", ".join(KeyDistribution)
    docs = attribute_docs(MessageKeys)
    return ReferenceEntry("distribution", f"one of {kinds}", "", as_toml(KeyDistribution.UNIFORM), docs["distribution"])
