"""Scenarios: their values, the files that describe them, and the checks that refuse or warn.

May import `acts`, `time` and `base`.
"""

from typing import TYPE_CHECKING, Any

from emulator.base.on_demand import attribute_of

if TYPE_CHECKING:
    from emulator.spec.code.user_code import UserCode as UserCode
    from emulator.spec.model.networks import Network as Network
    from emulator.spec.model.presets import Preset as Preset
    from emulator.spec.model.producers import ProducerSpec as ProducerSpec
    from emulator.spec.model.scenario import BrokerSpec as BrokerSpec
    from emulator.spec.model.scenario import ConsumerGroupSpec as ConsumerGroupSpec
    from emulator.spec.model.scenario import NameserverSpec as NameserverSpec
    from emulator.spec.model.scenario import Scenario as Scenario
    from emulator.spec.model.scenario import TopicSpec as TopicSpec
    from emulator.spec.reading.file import from_dict as from_dict
    from emulator.spec.reading.file import load as load
    from emulator.spec.reading.file import loads as loads
    from emulator.spec.reading.file import read as read
    from emulator.spec.reading.file import to_dict as to_dict
    from emulator.spec.tables.mistakes import SpecError as SpecError

_MODULES = {
    "BrokerSpec": "model.scenario",
    "ConsumerGroupSpec": "model.scenario",
    "NameserverSpec": "model.scenario",
    "Network": "model.networks",
    "Preset": "model.presets",
    "ProducerSpec": "model.producers",
    "Scenario": "model.scenario",
    "SpecError": "tables.mistakes",
    "TopicSpec": "model.scenario",
    "UserCode": "code.user_code",
    "from_dict": "reading.file",
    "load": "reading.file",
    "loads": "reading.file",
    "read": "reading.file",
    "to_dict": "reading.file",
}
__all__ = sorted(_MODULES)  # noqa: PLE0605 - mypy and readers have the imports above


def __getattr__(name: str) -> Any:
    # On demand: commands name parts of this package in their help, and a whole scenario needs the options of all nodes.
    return attribute_of(__name__, _MODULES, name)
