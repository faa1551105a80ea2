"""Options that administrators change while nodes run, and that change nothing here, or that RocketMQ does not know."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from emulator.acts.act import Act
from emulator.acts.options import UpdateBrokerConfig, UpdateControllerConfig, UpdateNamesrvConfig
from emulator.base.text import alike
from emulator.spec.model.scenario import Scenario
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.warnings.harmful_setting import HarmfulSetting

_Update = UpdateBrokerConfig | UpdateNamesrvConfig | UpdateControllerConfig
_FILE_OF: Mapping[type[Act], FileKind] = MappingProxyType(
    {
        UpdateBrokerConfig: FileKind.BROKER,
        UpdateNamesrvConfig: FileKind.NAMESRV,
        UpdateControllerConfig: FileKind.CONTROLLER,
    }
)


def changed_options(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """A warning for each option without effect of each act."""
    for timed in scenario.acts:
        for consequence in options_without_effect(timed.act):
            yield HarmfulSetting("option-without-effect", timed.id, consequence)


def options_without_effect(act: Act) -> Iterator[str]:
    """What becomes of each option of an act that changes nothing here: one sentence each."""
    if isinstance(act, _Update):
        for name in act.options:
            yield from _without_effect(_FILE_OF[type(act)], name)


def _without_effect(kind: FileKind, name: str) -> Iterator[str]:
    # The table of all options of RocketMQ takes long to read, and few scenarios change one.
    from emulator.spec.rocketmq.known_options import (  # noqa: PLC0415
        RELEASE_OF_THE_TABLE,
        OptionStatus,
        options_by_name,
        other_release_of,
    )

    known = options_by_name(kind)
    if name not in known:
        other, near = other_release_of(name), alike(name, tuple(known), 1)
        hint = f"; release {other} has it" if other else f"; did you mean {near[0]}?" if near else ""
        yield f"RocketMQ {RELEASE_OF_THE_TABLE} has no option {name} there, and ignores it{hint}"
    elif all(option.status is not OptionStatus.EMULATED for option in known[name]):
        yield f"RocketMQ takes {name}, and it changes nothing here: {known[name][0].meaning}"
