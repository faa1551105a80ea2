"""Clients of a proxy as it sees them: one channel for each client id, whatever its connections.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.channel.GrpcClientChannel`, `GrpcChannelManager`.
"""

from collections.abc import Callable

import attrs

from nodes.host import Channel
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import VERSION
from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.protocol.registry import encode_body, encode_header
from nodes.protocol.v2.service import TelemetryCommand
from nodes.rpc.server import ServerCalls


@attrs.define(eq=False)
class GrpcClientChannel:
    """A client; a broken connection does not end it, and neither does a second process with the same id.

    Args:
        client_id: its id, which is the id of the channel, too.
        remote_address: of the client when the channel was made.
        language: of the client at its first registration.
    """

    client_id: str
    remote_address: str
    language: str
    version: int = VERSION
    """A proxy takes versions of RocketMQ 5 for its own."""
    observer: Channel | None = None
    """The connection of its latest settings, to which commands go; None: there was none, or it has broken."""

    @property
    def is_active(self) -> bool:
        """Whether commands may reach it, as far as the proxy knows."""
        return self.observer is not None


class GrpcChannelManager:
    """The channels by client id.

    Args:
        calls: sends commands to clients.
    """

    def __init__(self, calls: ServerCalls, warn: Callable[..., None]) -> None:
        self._calls = calls
        self._warn = warn
        self._channels: dict[str, GrpcClientChannel] = {}

    def create_channel(self, client_id: str, remote_address: str, language: str) -> GrpcClientChannel:
        """The channel of a client, a new one if it has none."""
        known = self._channels.get(client_id)
        if known is None:
            known = self._channels[client_id] = GrpcClientChannel(client_id, remote_address, language)
        return known

    def get_channel(self, client_id: str) -> GrpcClientChannel | None:
        """The channel of a client; None: it is unknown."""
        return self._channels.get(client_id)

    def remove_channel(self, client_id: str) -> GrpcClientChannel | None:
        """Forget a client; returns its channel."""
        return self._channels.pop(client_id, None)

    def has_stream(self) -> bool:
        """Whether a client has a stream over which commands reach it."""
        observers = (channel.observer for channel in self._channels.values())
        return any(observer is not None and not observer.closed for observer in observers)

    def write_command(self, channel: GrpcClientChannel, command: TelemetryCommand) -> None:
        """Send a command to a client, if it can be reached; only a failed write shows the proxy that it cannot."""
        observer = channel.observer
        if observer is None:
            self._warn("telemetry stream is missing", client_id=channel.client_id)
        elif observer.closed:
            self._warn("write telemetry failed", client_id=channel.client_id)
            channel.observer = None
        else:
            fields = encode_header(CallMetadataHeader(channel.client_id))  # clients may share a connection
            self._calls.oneway(observer, int(RequestCode.V2_TELEMETRY), fields, encode_body(command))
