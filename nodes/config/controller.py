"""The options of a controller."""

import attrs

from nodes.config.options import count, name_options, period_millis
from nodes.config.remoting import RemotingServerConfig
from nodes.config.requests import ControllerRequestConfig
from nodes.fields import flag

CONTROLLER_PORT = 9_878
"""As in RocketMQ's sample of a single controller."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ControllerConfig(RemotingServerConfig, ControllerRequestConfig):
    """Options of a controller of the DLedger type.

    Mirrors:
        `org.apache.rocketmq.common.ControllerConfig`.
    """

    scan_not_active_broker_interval: int = period_millis(5_000)
    """Time between two scans for silent brokers, on every controller."""
    scan_inactive_master_interval: int = period_millis(5_000)
    """Time between two scans for groups whose master is dead, on the leader."""
    elect_master_max_retry_count: int = count(3, minimum=1)
    """Attempts of an election that the controller itself asks for."""
    enable_elect_unclean_master: bool = flag(default=False)
    """Elect a replica that is not in sync if no other lives; what it lacks is lost."""
    notify_broker_role_changed: bool = flag(default=True)
    """Notify the members of a group who its new master is; else they learn it when they poll."""
