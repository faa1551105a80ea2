"""The options of a container of brokers."""

import attrs

from nodes.config.options import name_options, port
from nodes.config.remoting import RemotingClientConfig, RemotingServerConfig

CONTAINER_PORT = 10_811


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ContainerConfig(RemotingServerConfig, RemotingClientConfig):
    """Options of a container; those of its brokers stand in their own files.

    Mirrors:
        `org.apache.rocketmq.container.BrokerContainerConfig`, with the port of its `NettyServerConfig`.
    """

    listen_port: int = port(CONTAINER_PORT)
    """For requests to the container itself; brokers have ports of their own."""
