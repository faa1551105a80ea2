"""The options of connections, common to all nodes."""

import attrs

from nodes.config.options import Config, millis, name_options, seconds
from nodes.fields import flag


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class RemotingClientConfig(Config):
    """Options of a node for the connections that it opens.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyClientConfig`.
    """

    connect_timeout_millis: int = millis(3_000)
    """How long to wait for a connection."""
    client_close_socket_if_timeout: bool = flag(default=True)
    """Close the connection on which a synchronous call timed out."""
    client_channel_max_idle_time_seconds: int = seconds(120)
    """Close a connection that was idle in both directions for this long."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class RemotingServerConfig(Config):
    """Options of a node for the connections that it accepts.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyServerConfig`.
    """

    server_channel_max_idle_time_seconds: int = seconds(120)
    """Close a connection that was idle in both directions for this long."""
