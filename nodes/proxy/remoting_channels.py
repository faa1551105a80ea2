"""Clients of RocketMQ 4 as a proxy sees them: one channel for each group of a connection.

Mirrors:
    `org.apache.rocketmq.proxy.remoting.channel.RemotingChannel`, `RemotingChannelManager`.
"""

import attrs

from nodes.host import Channel
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers_message import CheckTransactionStateRequestHeader
from nodes.protocol.registry import encode_header
from nodes.rpc.server import ServerCalls


@attrs.define(eq=False)
class RemotingChannel:
    """A client in one group; the end of its connection ends it.

    Args:
        connection: over which its first heartbeat for the group has come.
        client_id: as this heartbeat says.
        language: as this heartbeat says.
        version: as this heartbeat says.
    """

    connection: Channel
    client_id: str
    language: str
    version: int

    @property
    def remote_address(self) -> str:
        """`ip:port` of the client."""
        return self.connection.remote_address

    @property
    def is_active(self) -> bool:
        """Whether requests may reach it."""
        return not self.connection.closed


@attrs.frozen
class _Groups:
    """Group -> connection -> channel; producers and consumers may have groups of one name."""

    channels: dict[str, dict[Channel, RemotingChannel]] = attrs.field(factory=dict)

    def create(self, group: str, made: RemotingChannel) -> RemotingChannel:
        return self.channels.setdefault(group, {}).setdefault(made.connection, made)

    def remove(self, group: str, connection: Channel) -> RemotingChannel | None:
        members = self.channels.get(group, {})
        removed = members.pop(connection, None)
        if not members:
            self.channels.pop(group, None)
        return removed

    def remove_all(self, connection: Channel) -> list[RemotingChannel]:
        removed = [self.remove(group, connection) for group in list(self.channels)]
        return [channel for channel in removed if channel is not None]


class RemotingChannelManager:
    """The channels of producers and consumers.

    Args:
        calls: sends requests to clients.
    """

    def __init__(self, calls: ServerCalls) -> None:
        self._calls = calls
        self._producers = _Groups()
        self._consumers = _Groups()

    def create_producer(self, group: str, made: RemotingChannel) -> RemotingChannel:
        """The channel of a producer; this one if the connection has none in the group."""
        return self._producers.create(group, made)

    def create_consumer(self, group: str, made: RemotingChannel) -> RemotingChannel:
        """As `create_producer`, of a consumer."""
        return self._consumers.create(group, made)

    def remove_producer(self, group: str, connection: Channel) -> RemotingChannel | None:
        """Forget a producer; None: the connection has none in the group."""
        return self._producers.remove(group, connection)

    def remove_consumer(self, group: str, connection: Channel) -> RemotingChannel | None:
        """As `remove_producer`, of a consumer."""
        return self._consumers.remove(group, connection)

    def remove_all(self, connection: Channel) -> tuple[RemotingChannel, ...]:
        """Forget what a connection has in any group."""
        return (*self._producers.remove_all(connection), *self._consumers.remove_all(connection))

    def check_transaction(
        self, channel: RemotingChannel, header: CheckTransactionStateRequestHeader, body: bytes | None
    ) -> None:
        """Send the check of a transaction to a producer, which answers with the end of the transaction."""
        # RocketMQ does not mark it oneway; no client answers it all the same.
        code = int(RequestCode.CHECK_TRANSACTION_STATE)
        self._calls.oneway(channel.connection, code, encode_header(header), body)
