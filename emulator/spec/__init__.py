"""Scenarios: their values, the files that describe them, and the checks that refuse or warn.

May import `time` and `base`.
"""

from emulator.spec.model.networks import Network
from emulator.spec.model.presets import Preset
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Scenario,
    TopicSpec,
)
from emulator.spec.reading.file import from_dict, load, loads, read, to_dict
from emulator.spec.reading.user_code import UserCode
from emulator.spec.refusals.mistakes import SpecError

__all__ = [
    "BrokerSpec",
    "ConsumerGroupSpec",
    "NameserverSpec",
    "Network",
    "Preset",
    "ProducerSpec",
    "Scenario",
    "SpecError",
    "TopicSpec",
    "UserCode",
    "from_dict",
    "load",
    "loads",
    "read",
    "to_dict",
]
