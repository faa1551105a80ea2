"""The two ends of a connection, and the processes that own them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from emulator.network.fabric import Fabric
    from emulator.network.link import Link
    from nodes.host import ChannelHandler
    from nodes.protocol.command import Command


class Peer(Protocol):
    """What the network must know of a process that holds endpoints."""

    node: str
    ip: str
    suspended: bool
    inbox: list[tuple[Endpoint, Command | None, int]]
    """What arrived while it was suspended, in order."""
    endpoints: dict[Endpoint, None]
    """Its open endpoints, in the order in which they were opened."""

    def crash(self, error: Exception) -> None:
        """Its own code raised while it handled an arrival."""


class Endpoint:
    """One end of a connection; implements `nodes.host.Channel`."""

    __slots__ = (
        "closed",
        "dialed",
        "fabric",
        "handler",
        "id",
        "last_due_ns",
        "last_used_ns",
        "link",
        "peer",
        "process",
        "remote_address",
        "wire",
    )

    peer: Endpoint
    wire: object
    """What the carrier keeps for this end; the memory carrier keeps nothing."""

    def __init__(
        self,
        fabric: Fabric,
        connection_id: int,
        process: Peer,
        handler: ChannelHandler,
        remote_address: str,
        link: Link,
        *,
        dialed: bool = False,
    ) -> None:
        self.fabric = fabric
        self.id = connection_id
        self.process = process
        self.handler = handler
        self.remote_address = remote_address
        self.link = link
        """The direction in which this end sends."""
        self.dialed = dialed
        """Whether its process opened the connection, rather than accepted it."""
        self.last_used_ns = fabric.timeline.now_ns
        self.last_due_ns = 0
        """When its latest frame arrives; a later frame never overtakes it."""
        self.closed = False
        self.wire = None

    def send(self, command: Command) -> None:
        """Hand one frame to the network."""
        self.fabric.send(self, command)

    def close(self) -> None:
        """Close this end; a FIN goes to the peer."""
        self.fabric.close(self)
