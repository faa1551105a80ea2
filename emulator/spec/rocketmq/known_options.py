"""Every option of RocketMQ 5.3.3: class, type, default, what it means, and whether it is emulated.

`option_fields.csv` was made by reflection over the classes of the released jars: all fields that are not static, and
the setters that `MixAll#properties2Object` finds. It was made twice, on machines that differ, so that a default which
depends on the machine is known as such and is not copied. `families.toml` adds our words. What is emulated is not
written there: it follows from the options of our own nodes. `other_releases.csv` has the options of two other
releases that 5.3.3 lacks, found in the same way.
"""

import csv
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import attrs

from emulator.base.attribute_docs import attribute_docs
from emulator.spec.rocketmq.file_kinds import FileKind
from nodes.config import (
    BrokerConfig,
    Config,
    ConsumerConfig,
    ControllerConfig,
    LitePullConsumerConfig,
    NameserverConfig,
    ProducerConfig,
    PullConsumerConfig,
    options,
)
from nodes.config.proxy import ProxyConfig

RELEASE_OF_THE_TABLE = "5.3.3"
_IGNORED_BY_THE_RELEASE = ("aclEnable",)
"""Options of ours that 5.3.3 has as a field and reads nowhere."""
_IN_CODE = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+)+)`")


class OptionStatus(StrEnum):
    """What becomes of an option of RocketMQ in a scenario."""

    EMULATED = "emulated"
    ELSEWHERE = "elsewhere"
    """Another key of a scenario stands for it, or the emulator decides it."""
    NOT_EMULATED = "not_emulated"
    """It would have changed what is emulated."""
    NO_EFFECT = "no_effect"
    """It changes nothing that is emulated."""


@attrs.frozen
class KnownOption:
    """A field of one of RocketMQ's classes."""

    of: str
    """The class whose objects have it: `BrokerConfig`."""
    name: str
    declared_in: str
    """The class or superclass that declares it; empty: there is a setter without a field."""
    type: str
    """In Java; empty: there is a setter without a field."""
    default: str
    """As Java prints it; `null`; empty where it depends on something, or is no plain value."""
    depends_on: str
    """What the default depends on: `path`, `host`, `processors`, `instant`; empty: nothing."""
    setters: tuple[str, ...]
    """Types that its setters take; empty: RocketMQ reads it from no file."""
    values: tuple[str, ...]
    """Those of an enum."""
    status: OptionStatus
    meaning: str
    elsewhere: str = ""
    """Where a scenario has it, if its values are addresses of other machines, which mean nothing in an emulated
    cluster, be the option emulated or not; empty: its values are none."""

    @property
    def is_read(self) -> bool:
        """Whether RocketMQ sets it from a file: it has a setter with a type that is read from text."""
        return any(setter in _READ_TYPES for setter in self.setters)


_READ_TYPES = ("int", "Integer", "long", "Long", "double", "Double", "boolean", "Boolean", "float", "Float", "String")
_REMOTING = ("NettyServerConfig", "NettyClientConfig")
CLASSES_OF: Mapping[FileKind, tuple[str, ...]] = MappingProxyType(
    {
        FileKind.BROKER: ("BrokerConfig", *_REMOTING, "MessageStoreConfig", "AuthConfig"),
        FileKind.NAMESRV: ("NamesrvConfig", *_REMOTING),
        FileKind.CONTROLLER: ("ControllerConfig", "JraftConfig", *_REMOTING),
        FileKind.CONTAINER: ("BrokerContainerConfig", *_REMOTING),
        FileKind.PROXY: ("ProxyConfig", "AuthConfig"),
        FileKind.CLIENT: (
            *("ClientConfig", "DefaultMQPushConsumer", "DefaultLitePullConsumer", "DefaultMQPullConsumer"),
            "DefaultMQProducer",
        ),
    }
)
"""The classes that read a file of a kind, in RocketMQ's order."""
_OURS: Mapping[FileKind, tuple[type[Config], ...]] = MappingProxyType(
    {
        FileKind.BROKER: (BrokerConfig,),
        FileKind.NAMESRV: (NameserverConfig,),
        FileKind.CONTROLLER: (ControllerConfig,),
        FileKind.CONTAINER: (),
        FileKind.PROXY: (ProxyConfig,),
        FileKind.CLIENT: (ConsumerConfig, LitePullConsumerConfig, PullConsumerConfig, ProducerConfig),
    }
)
_OF_SYSTEM = tuple(
    KnownOption("BrokerConfig", name, "", "String", default, "", ("String",), (), OptionStatus.ELSEWHERE, meaning)
    for name, default, meaning in (
        (
            "rmqAddressServerDomain",
            "jmenv.tbsite.net",
            "where the address server is: [address_server] of a scenario",
        ),
        ("rmqAddressServerSubGroup", "nsaddr", "where the address server is: [address_server] of a scenario"),
    )
)
"""Keys that a broker and a container read from their file without a field for them."""


@cache
def known_options(kind: FileKind) -> tuple[KnownOption, ...]:
    """All options that a file of a kind may have, in RocketMQ's order; two classes may have one of the same name."""
    found = tuple(_option(kind, row) for name in CLASSES_OF[kind] for row in fields_of(name))
    return (*found, *_OF_SYSTEM) if kind in (FileKind.BROKER, FileKind.CONTAINER) else found


def is_emulated_at_brokers(name: str) -> bool:
    """Whether an option of RocketMQ is one of an emulated broker of 5.3.3."""
    return name in options(BrokerConfig) and name not in _IGNORED_BY_THE_RELEASE


def fields_of(of: str) -> tuple[Mapping[str, str], ...]:
    """The rows of `option_fields.csv` for a class, in its order."""
    return tuple(row for row in _rows() if row["class"] == of)


@cache
def defaults_not_emulated() -> Mapping[str, str]:
    """Mapping field -> default, of all fields of a broker that are not emulated and have one of their own.

    Those whose default depends on the machine are left out.
    """
    fields = (field for of in CLASSES_OF[FileKind.BROKER] if of != "AuthConfig" for field in fields_of(of))
    return {
        field["field"]: field["default"]
        for field in fields
        if field["type"] and not field["depends_on"] and field["default"] != "null"
        if field["field"] not in options(BrokerConfig)
    }


@cache
def options_by_name(kind: FileKind) -> Mapping[str, tuple[KnownOption, ...]]:
    """Mapping name -> the options of that name that RocketMQ reads from a file of a kind."""
    found: dict[str, tuple[KnownOption, ...]] = {}
    for option in known_options(kind):
        if option.is_read:
            found[option.name] = (*found.get(option.name, ()), option)
    return MappingProxyType(found)


@cache
def other_release_of(name: str) -> str:
    """Another release that has an option of this name, which 5.3.3 lacks; empty: none of those that were compared."""
    return next((row["release"] for row in _read("other_releases.csv") if row["field"] == name), "")


def _option(kind: FileKind, row: Mapping[str, str]) -> KnownOption:
    status, meaning = _status(kind, row["class"], row["field"])
    return KnownOption(
        of=row["class"],
        name=row["field"],
        declared_in=row["declared_in"],
        type=row["type"],
        default=row["default"],
        depends_on=row["depends_on"],
        setters=_split(row["setters"]),
        values=_split(row["values"]),
        status=status,
        meaning=meaning,
        elsewhere=_elsewhere(row["class"], row["field"]),
    )


def _status(kind: FileKind, of: str, name: str) -> tuple[OptionStatus, str]:
    for ours in _ours_of(kind, of):
        if name in options(ours) and name not in _IGNORED_BY_THE_RELEASE:
            return OptionStatus.EMULATED, _meaning(ours, options(ours)[name])
    family = _family(of, name)
    if family is None:
        raise AssertionError(f"no family of families.toml has {of}.{name}")
    return family.status, family.meaning


def _elsewhere(of: str, name: str) -> str:
    family = _family(of, name)
    return family.meaning if family is not None and family.has_addresses else ""


def _family(of: str, name: str) -> "_Family | None":
    return next((family for family in _families() if family.holds(of, name)), None)


def _ours_of(kind: FileKind, of: str) -> Iterator[type[Config]]:
    """Our classes that may have an option of one of RocketMQ's classes."""
    only: dict[str, type[Config]] = {
        "DefaultMQPushConsumer": ConsumerConfig,
        "DefaultLitePullConsumer": LitePullConsumerConfig,
        "DefaultMQPullConsumer": PullConsumerConfig,
        "DefaultMQProducer": ProducerConfig,
    }
    yield from (ours for ours in _OURS[kind] if of not in only or ours is only[of])


def _meaning(ours: type, field: "attrs.Attribute[Any]") -> str:
    """The first sentence of what our option means, with the names that RocketMQ gives to options."""
    documented = " ".join(attribute_docs(ours).get(field.name, "").split())
    first = re.split(r"(?<=[.;])\s", documented, maxsplit=1)[0].rstrip(".;")
    return _IN_CODE.sub(lambda found: _camel(found[1]), first).replace("`", "")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


@attrs.frozen
class _Family:
    """Options that one sentence describes."""

    status: OptionStatus
    meaning: str
    names: tuple[re.Pattern[str], ...]
    classes: tuple[str, ...]
    has_addresses: bool
    """Whether its values are addresses of other machines."""

    def holds(self, of: str, name: str) -> bool:
        """Whether it has an option."""
        return (not self.classes or of in self.classes) and any(pattern.fullmatch(name) for pattern in self.names)


@cache
def _families() -> tuple[_Family, ...]:
    text = (files(__package__) / "families.toml").read_text(encoding="utf-8")
    return tuple(
        _Family(
            OptionStatus(family["status"]),
            family["meaning"],
            tuple(map(re.compile, family["names"])),
            tuple(family.get("classes", ())),
            family.get("addresses", False),
        )
        for family in tomllib.loads(text)["family"]
    )


@cache
def _rows() -> Sequence[Mapping[str, str]]:
    return _read("option_fields.csv")


@cache
def _read(name: str) -> Sequence[Mapping[str, str]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split("|")) if text else ()
