"""What becomes of each option of a configuration file in a scenario, and what RocketMQ itself makes of it."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import chain

import attrs

from emulator.base.text import alike
from emulator.importing.accounts import access_key_of
from emulator.importing.settings import ConfiguredNode, Setting
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import (
    CLASSES_OF,
    RELEASE_OF_THE_TABLE,
    KnownOption,
    OptionStatus,
    is_emulated_at_brokers,
    known_options,
    options_by_name,
    other_release_of,
)
from emulator.spec.rocketmq.option_values import read_value
from nodes.config import BrokerConfig, Config, ConsumerConfig, ControllerConfig, NameserverConfig, options
from nodes.config.client import ProducerConfig
from nodes.config.java_values import JavaValue, UnreadValueError
from nodes.config.nameserver import NameserverWithControllerConfig
from nodes.config.proxy import ProxyConfig
from nodes.fields import TEXT_MAP, FieldError, check_value, shown

_BOOLEANS = ("true", "false")
_SHOWN_MAX = 60


class Fate(StrEnum):
    """What becomes of an option of a file."""

    TAKEN = "taken"
    ELSEWHERE = "set elsewhere"
    NOT_EMULATED = "known, not emulated"
    NO_EFFECT = "known, no effect"
    UNKNOWN = "unknown"
    """To RocketMQ, too, which ignores it."""
    NOT_READ = "not read"
    """RocketMQ cannot read its value, and leaves the default."""
    REPLACED = "given again"
    """A later line sets it."""
    SECRET = "secret"  # noqa: S105 - the name of a fate
    """It is copied nowhere."""


_WARNED = (Fate.NOT_EMULATED, Fate.UNKNOWN, Fate.NOT_READ, Fate.SECRET)


@attrs.frozen
class Verdict:
    """What becomes of one option of a file."""

    setting: Setting
    fate: Fate
    note: str
    """Why, in one line."""
    value: JavaValue | None = None
    """As RocketMQ reads it, if it is taken; a secret has none."""
    printed: str | None = None
    """What `getBrokerConfig` prints of it, of a broker's option that is not emulated; None: nothing, or its default."""
    is_warning: bool = False
    """Whether RocketMQ or the emulator does something else than the file asks for."""

    def line(self) -> str:
        """`broker.conf:3: brokerName: set elsewhere: ...`."""
        return f"{self.setting.place}: {shown(self.setting.name, _SHOWN_MAX)}: {self.note}"


def verdicts_of(node: ConfiguredNode) -> tuple[Verdict, ...]:
    """A verdict for each option of a node, in the order of its files."""
    last = {setting.name: number for number, setting in enumerate(node.settings)}
    return tuple(
        _verdict(node, setting, is_last=last[setting.name] == number) for number, setting in enumerate(node.settings)
    )


def class_of(node: ConfiguredNode) -> type[Config] | None:
    """The class of our options for a node; None: such nodes are not emulated."""
    if node.kind is FileKind.CLIENT:
        return ProducerConfig if node.text("producerGroup") is not None else ConsumerConfig
    if node.kind is FileKind.NAMESRV and has_controller(node):
        return NameserverWithControllerConfig
    ours: Mapping[FileKind, type[Config]] = {
        FileKind.BROKER: BrokerConfig,
        FileKind.NAMESRV: NameserverConfig,
        FileKind.CONTROLLER: ControllerConfig,
        FileKind.PROXY: ProxyConfig,
    }
    return ours.get(node.kind)


def has_controller(node: ConfiguredNode) -> bool:
    """Whether a nameserver runs a controller in its process."""
    return (node.text("enableControllerInNamesrv") or "").lower() == "true"


def _known(node: ConfiguredNode, name: str) -> tuple[KnownOption, ...]:
    """The options of a name that RocketMQ reads for such a node, those first of which we have one."""
    kinds: Sequence[FileKind] = (node.kind,)
    classes: Iterable[str] = CLASSES_OF[node.kind]
    if node.kind is FileKind.NAMESRV and has_controller(node):
        kinds = (FileKind.NAMESRV, FileKind.CONTROLLER)
        classes = chain(classes, CLASSES_OF[FileKind.CONTROLLER])
    elif node.kind is FileKind.CLIENT:
        own = "DefaultMQProducer" if class_of(node) is ProducerConfig else "DefaultMQPushConsumer"
        classes = ("ClientConfig", own)
    elif node.is_in_container:
        classes = ("BrokerConfig", "MessageStoreConfig")
    found = [option for kind in kinds for option in options_by_name(kind).get(name, ()) if option.of in tuple(classes)]
    return tuple(sorted(found, key=lambda option: option.status is not OptionStatus.EMULATED))


def _verdict(node: ConfiguredNode, setting: Setting, *, is_last: bool) -> Verdict:
    known = _known(node, setting.name)
    if setting.is_secret and known:
        access_key = access_key_of(setting)
        if access_key is not None and is_last:
            return Verdict(setting, Fate.TAKEN, "taken: an [[account]] has the secret", access_key)
        note = "a secret, which is not copied"
        if known[0].status is OptionStatus.EMULATED:
            note = f"{note}; name an [[account]] that has it"
        return Verdict(setting, Fate.SECRET, note, is_warning=True)
    if not is_last:
        return Verdict(setting, Fate.REPLACED, "set again below: the last line counts")
    if not known:
        return _unknown(node, setting)
    option = known[0]
    try:
        value = read_value(option, setting.value)
    except UnreadValueError as error:
        default = option.default or f"which depends on the {option.depends_on}"
        note = f"{shown(setting.value, _SHOWN_MAX)!r} is not read: {error}; RocketMQ uses its default, {default}"
        return Verdict(setting, Fate.NOT_READ, note, is_warning=True)
    return _read(node, setting, option, value)


def _read(node: ConfiguredNode, setting: Setting, option: KnownOption, value: JavaValue) -> Verdict:
    """The verdict on an option whose value RocketMQ reads."""
    if option.status is not OptionStatus.EMULATED:
        fate = {
            OptionStatus.ELSEWHERE: Fate.ELSEWHERE,
            OptionStatus.NOT_EMULATED: Fate.NOT_EMULATED,
            OptionStatus.NO_EFFECT: Fate.NO_EFFECT,
        }[option.status]
        is_default = _as_java_prints(value) == option.default
        note = f"{fate}: {option.meaning}"
        if is_default and fate is not Fate.ELSEWHERE:
            note = f"{note}; its value is the default"
        is_warning = fate in _WARNED and not is_default
        printed = None if fate is Fate.ELSEWHERE else _printed(node, setting.name, _as_java_prints(value))
        return Verdict(setting, fate, note, printed=printed, is_warning=is_warning)
    if option.name == "brokerRole" and value == "SLAVE":
        return Verdict(setting, Fate.ELSEWHERE, "set elsewhere: a broker whose id is not 0 is a slave", value)
    if option.elsewhere:
        return Verdict(setting, Fate.ELSEWHERE, f"{Fate.ELSEWHERE}: {option.elsewhere}")
    ours = class_of(node)
    if ours is not None and (problem := _problem(ours, option.name, value)):
        note = f"{shown(setting.value, _SHOWN_MAX)!r} cannot be emulated: {problem}; the default is used"
        return Verdict(setting, Fate.NOT_EMULATED, note, is_warning=True)
    if isinstance(value, bool) and setting.value.lower() not in _BOOLEANS:
        note = f"{shown(setting.value, _SHOWN_MAX)!r} is false in RocketMQ, as everything but true"
        return Verdict(setting, Fate.TAKEN, note, value, is_warning=True)
    return Verdict(setting, Fate.TAKEN, "taken", value)


def _as_java_prints(value: JavaValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _problem(ours: type[Config], name: str, value: JavaValue) -> str:
    """Why our option cannot have a value; empty: it can."""
    field = options(ours).get(name)
    if field is None:
        return ""
    try:
        check_value(field, value)
    except FieldError as error:
        return error.problem
    return ""


def _unknown(node: ConfiguredNode, setting: Setting) -> Verdict:
    """The verdict on an option that RocketMQ does not read."""
    if setting.is_secret:
        note = f"RocketMQ {RELEASE_OF_THE_TABLE} does not read it; a secret, which is not copied"
        return Verdict(setting, Fate.SECRET, note, is_warning=True)
    note = f"unknown to RocketMQ {RELEASE_OF_THE_TABLE}, which ignores it"
    is_field = any(option.name == setting.name for option in known_options(node.kind))
    printed = None if is_field or not setting.name.isprintable() else _printed(node, setting.name, setting.value)
    if release := other_release_of(setting.name):
        return Verdict(setting, Fate.UNKNOWN, f"{note}; {release} has it", printed=printed, is_warning=True)
    near = next(iter(alike(setting.name, list(options_by_name(node.kind)), 1)), None)
    hint = f'; did you mean "{near}"?' if near is not None else ""
    return Verdict(setting, Fate.UNKNOWN, f"{note}{hint}", printed=printed, is_warning=True)


def _printed(node: ConfiguredNode, name: str, text: str) -> str | None:
    """What a broker prints of an option that is not emulated, if a scenario can hold it."""
    is_printed = node.kind is FileKind.BROKER and not is_emulated_at_brokers(name) and TEXT_MAP.holds({name: text})
    return text if is_printed else None
