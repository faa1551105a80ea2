"""The keys of every section of a scenario file, read from the definitions that read the file."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from emulator.acts.catalogue import ACTS
from emulator.base.attribute_docs import attribute_docs
from emulator.spec.model.guest_limits import GuestLimits
from emulator.spec.model.networks import Network, PrivateNetworkSpec
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
from emulator.spec.reading.reference import ReferenceEntry, as_toml, reference_entry
from emulator.spec.refusals.targets import KEYS
from faults.catalogue import FAULTS, fields_of, scope_of
from nodes.client.producer.keys import KeyDistribution, MessageKeys, TopicPartitions
from nodes.config.accounts import PlainAccessConfig

_FILLED_IN: Mapping[tuple[type, str], str] = MappingProxyType(
    {
        (AddressServerSpec, "nameservers"): "all",
        (TopicSpec, "brokers"): "all that run at the start",
        (ConsumerGroupSpec, "names"): "as count says",
        (ProducerSpec, "name"): "producer-1, ...",
    }
)
"""Fields that a file need not have, although the class needs them -> what stands in their place."""


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


def _entry(kind: type, field: "attrs.Attribute[Any]") -> ReferenceEntry:
    entry = reference_entry(kind, field)
    if filled_in := _FILLED_IN.get((kind, field.name)):
        entry = attrs.evolve(entry, default=filled_in)
    if not field.metadata.get("span"):
        return entry
    name, unit = _in_both_units(entry.name, entry.unit)
    # Of seconds, which may have a fraction.
    expected = entry.type.replace("whole number >= 1", "number > 0").replace("whole number", "number")
    return attrs.evolve(entry, name=name, unit=unit, type=expected)


def _in_both_units(key: str, unit: str) -> tuple[str, str]:
    return f"{key.removesuffix('_ms')}_s, {key}", f"seconds, {unit}"


def _distribution() -> ReferenceEntry:
    kinds = ", ".join(KeyDistribution)
    docs = attribute_docs(MessageKeys)
    return ReferenceEntry("distribution", f"one of {kinds}", "", as_toml(KeyDistribution.UNIFORM), docs["distribution"])
