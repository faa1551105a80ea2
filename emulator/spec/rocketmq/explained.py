"""What an option is in RocketMQ that the emulator does not know, in one line for messages."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from emulator.base.text import alike
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import (
    CLASSES_OF,
    RELEASE_OF_THE_TABLE,
    KnownOption,
    OptionStatus,
    options_by_name,
    other_release_of,
)
from nodes.config import (
    BrokerConfig,
    Config,
    ConsumerConfig,
    ControllerConfig,
    LitePullConsumerConfig,
    NameserverConfig,
    NameserverWithControllerConfig,
    ProducerConfig,
    PullConsumerConfig,
    options,
)
from nodes.config.proxy import ProxyConfig

_REAL: Mapping[type[Config], Sequence[tuple[FileKind, tuple[str, ...]]]] = MappingProxyType(
    {
        BrokerConfig: ((FileKind.BROKER, CLASSES_OF[FileKind.BROKER]),),
        NameserverConfig: ((FileKind.NAMESRV, CLASSES_OF[FileKind.NAMESRV]),),
        NameserverWithControllerConfig: (
            (FileKind.NAMESRV, CLASSES_OF[FileKind.NAMESRV]),
            (FileKind.CONTROLLER, CLASSES_OF[FileKind.CONTROLLER]),
        ),
        ControllerConfig: ((FileKind.CONTROLLER, CLASSES_OF[FileKind.CONTROLLER]),),
        ConsumerConfig: ((FileKind.CLIENT, ("ClientConfig", "DefaultMQPushConsumer")),),
        LitePullConsumerConfig: ((FileKind.CLIENT, ("ClientConfig", "DefaultLitePullConsumer")),),
        PullConsumerConfig: ((FileKind.CLIENT, ("ClientConfig", "DefaultMQPullConsumer")),),
        ProxyConfig: ((FileKind.PROXY, CLASSES_OF[FileKind.PROXY]),),
        ProducerConfig: ((FileKind.CLIENT, ("ClientConfig", "DefaultMQProducer")),),
    }
)
"""Class of ours -> where RocketMQ has its options."""


def explained(ours: type[Config], name: str) -> str:
    """What RocketMQ does with an option that a class of ours lacks, or which option was meant.

    Args:
        ours: class of the options.
        name: unknown to it.

    Returns:
        The end of a message; empty: RocketMQ has nothing like it either.
    """
    known = _known_of(ours)
    if name in known:
        return in_rocketmq(known[name])
    if release := other_release_of(name):
        return f"RocketMQ {RELEASE_OF_THE_TABLE} does not have it, {release} does"
    near = next(iter(alike(name, [*options(ours), *known], 1)), None)
    if near is None or near in options(ours):
        return ""
    return f'did you mean "{near}" of RocketMQ? {_capital(in_rocketmq(known[near]))}'


def in_rocketmq(option: KnownOption) -> str:
    """What a scenario does with an option of RocketMQ: `set elsewhere: name of the group: name of [[broker]]`."""
    return f"{WORDS[option.status]}: {option.meaning}"


WORDS: Mapping[OptionStatus, str] = MappingProxyType(
    {
        OptionStatus.EMULATED: "emulated",
        OptionStatus.ELSEWHERE: "set elsewhere",
        OptionStatus.NOT_EMULATED: "RocketMQ has it, and it is not emulated",
        OptionStatus.NO_EFFECT: "RocketMQ has it, and it has no effect here",
    }
)


def _known_of(ours: type[Config]) -> Mapping[str, KnownOption]:
    found: dict[str, KnownOption] = {}
    for kind, classes in _REAL.get(ours, ()):
        for name, same in options_by_name(kind).items():
            for option in same:
                if option.of in classes and option.status is not OptionStatus.EMULATED:
                    found.setdefault(name, option)
    return found


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
