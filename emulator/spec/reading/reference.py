"""What a key or an option of a scenario file may be, read from the definitions that read the file."""

import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, get_type_hints

import attrs

from emulator.base.attribute_docs import attribute_docs
from emulator.spec.model.presets import Preset
from emulator.spec.tables.mistakes import require_known
from emulator.spec.tables.releases import RELEASE, Release, set_by_release
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
_PER_REPLICAS = (2, 3)
_IN_CODE = re.compile(r"`([a-z0-9_]+)`")


@attrs.frozen
class ReferenceEntry:
    """One key or option."""

    name: str
    """As people write it."""
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
    named = (item for _, item in listed if item.name not in fixed)
    return (*release, *(reference_entry(kind, item, _setters(kind, item.name)) for item in named))


def reference_entry(
    kind: type, field: "attrs.Attribute[Any]", sets: tuple[tuple[str, str], ...] = ()
) -> ReferenceEntry:
    """What a field may be.

    Args:
        kind: the class of the field.
        field: of a section, a fault, an act, or the options of a role.
        sets: (preset or release, value) of each that sets it.
    """
    key = key_of(field)
    unit = unit_of(field) or next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")
    return ReferenceEntry(key, _type(kind, field, unit_of(field)), unit, _default(field), _meaning(kind, field), sets)


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
