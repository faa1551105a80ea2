"""Scenarios: their values, the files that describe them, and the checks that refuse or warn.

May import `time` and `base`.
"""

from emulator.spec.file import from_dict, load, loads, to_dict
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
    "from_dict",
    "load",
    "loads",
    "to_dict",
]
