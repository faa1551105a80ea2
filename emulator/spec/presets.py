"""Options that belong together, under one name: what a cluster gets where its scenario says nothing itself."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Preset(StrEnum):
    """A bundle of options; an option that is set by hand always wins.

    In Python: `BrokerConfig(**Preset.RIP32.broker_options(replicas=3))`.
    """

    CLASSIC = "classic"
    """The shipped defaults: no slave ever takes over."""
    RIP32 = "rip32"
    """The lowest slave acts while its master is away, and hands back without losing offsets."""

    def nameserver_options(self) -> Mapping[str, Any]:
        """Field of `NameserverConfig` -> value."""
        if self is Preset.CLASSIC:
            return {}
        return {"support_acting_master": True, "notify_min_broker_id_changed": True}

    def broker_options(self, replicas: int) -> Mapping[str, Any]:
        """Field of `BrokerConfig` -> value.

        Args:
            replicas: how many brokers have the brokerName, the master among them.
        """
        if self is Preset.CLASSIC:
            return {}
        return {
            "enable_slave_acting_master": True,
            "total_replicas": replicas,
            "slave_read_enable": True,
            # An acting slave cannot write: what was delayed and is due goes to another broker, or waits.
            "enable_remote_escape": True,
            # With the shipped 500 and 200 a few commits leave versions equal, and a returning master
            # takes back what the last slave has, however old that is: at step 1 they cannot tie.
            "consumer_offset_update_version_step": 1,
            "delay_offset_update_version_step": 1,
        }
