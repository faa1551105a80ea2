"""Scenarios: their values, the files that describe them, and the checks that refuse or warn.

May import `time` and `base`.
"""

from emulator.spec.file import from_dict, load, loads, read, to_dict
from emulator.spec.mistakes import SpecError
from emulator.spec.model import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Network,
    ProducerSpec,
    Scenario,
    TopicSpec,
)
from emulator.spec.presets import Preset
from emulator.spec.user_code import UserCode

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
