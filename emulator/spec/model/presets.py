"""Presets: named bundles of options, for what a scenario does not set itself."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Preset(StrEnum):
    """A named bundle of options; an option in the scenario takes precedence.

    In Python: `BrokerConfig(**Preset.RIP32.broker_options(replicas=3))`.
    """

    CLASSIC = "classic"
    """The shipped defaults: no slave ever takes over."""
    RIP32 = "rip32"
    """The slave with the lowest id acts as master while the master is away, and no offsets are lost when it returns."""

    CONTROLLER = "controller"
    """Three controllers elect a new master when one is lost (RIP-44), with the shipped defaults."""
    CONTROLLER_STRICT = "controller_strict"
    """As `controller`, but a message is acknowledged only when all members of the SyncStateSet have it."""
    ASSIGNER = "assigner"
    """As `classic`, but one broker, the assigner, allocates queues of a group for all its members; not RocketMQ's."""

    @property
    def elects_masters(self) -> bool:
        """Whether controllers elect the masters."""
        return self in (Preset.CONTROLLER, Preset.CONTROLLER_STRICT)

    def nameserver_options(self) -> Mapping[str, Any]:
        """Mapping field of `NameserverConfig` -> value."""
        if self is not Preset.RIP32:
            return {}
        return {"support_acting_master": True, "notify_min_broker_id_changed": True}

    def broker_options(self, replicas: int) -> Mapping[str, Any]:
        """Mapping field of `BrokerConfig` -> value.

        Args:
            replicas: number of brokers with the brokerName, including the master.
        """
        if self.elects_masters:
            strict = {"all_ack_in_sync_state_set": True} if self is Preset.CONTROLLER_STRICT else {}
            return {"enable_controller_mode": True, **strict}
        if self is not Preset.RIP32:
            return {}
        return {
            "enable_slave_acting_master": True,
            "total_replicas": replicas,
            "slave_read_enable": True,
            # An acting slave cannot write: a delayed message that is due goes to another broker, or waits.
            "enable_remote_escape": True,
            # With the defaults 500 and 200, versions stay equal for a few commits, and a returning master copies
            # the data of its last slave, however old; with step 1 versions cannot be equal.
            "consumer_offset_update_version_step": 1,
            "delay_offset_update_version_step": 1,
        }

    def consumer_options(self) -> Mapping[str, Any]:
        """Mapping field of `ConsumerConfig` -> value."""
        return {"client_rebalance": False, "pinned_assigner": True} if self is Preset.ASSIGNER else {}
