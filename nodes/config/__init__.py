"""What a node can be configured with: RocketMQ's options under its names, shipped defaults and units.

A field is the RocketMQ option in snake_case, so `brokerHeartbeatInterval` is
`broker_heartbeat_interval`; that is why the unit stands in the metadata
of the field (`nodes.fields`) next to the original name and not in the field's name.
A field that ends in `_ms` is no option of RocketMQ but a constant or a
system property of it.
"""

from nodes.config.broker import BrokerConfig, BrokerRole
from nodes.config.client import (
    CONSUME_TIMESTAMP_FORM,
    NOT_IN_LITE_PULL,
    NOT_IN_PULL,
    NOT_INSIDE,
    STATEFUL,
    VIRTUAL_NODES_MAX,
    AllocateStrategy,
    ClientConfig,
    ConsumerConfig,
    Exclusivity,
    FunctionName,
    LitePullConsumerConfig,
    LockServiceKind,
    ProducerConfig,
    PullApplication,
    PullConsumerConfig,
)
from nodes.config.controller import ControllerConfig
from nodes.config.nameserver import NameserverConfig, NameserverWithControllerConfig, with_options_of_controller
from nodes.config.options import Config, option_name, options
from nodes.config.remoting import RemotingClientConfig, RemotingServerConfig
from nodes.config.statefulset import StatefulSetConfig
from nodes.config.store import FlushDiskType

__all__ = [
    "CONSUME_TIMESTAMP_FORM",
    "NOT_INSIDE",
    "NOT_IN_LITE_PULL",
    "NOT_IN_PULL",
    "STATEFUL",
    "VIRTUAL_NODES_MAX",
    "AllocateStrategy",
    "BrokerConfig",
    "BrokerRole",
    "ClientConfig",
    "Config",
    "ConsumerConfig",
    "ControllerConfig",
    "Exclusivity",
    "FlushDiskType",
    "FunctionName",
    "LitePullConsumerConfig",
    "LockServiceKind",
    "NameserverConfig",
    "NameserverWithControllerConfig",
    "ProducerConfig",
    "PullApplication",
    "PullConsumerConfig",
    "RemotingClientConfig",
    "RemotingServerConfig",
    "StatefulSetConfig",
    "option_name",
    "options",
    "with_options_of_controller",
]
