"""The two ends of a connection, and the processes that own them."""

from __future__ import annotations

from typing import Protocol

import attrs

from emulator.network.link import Link
from emulator.time.timeline import Owner, Timeline
from faults.link import Stage
from nodes.host import ChannelHandler
from nodes.protocol.command import Command


class Network(Protocol):
    """What lies between two ends."""

    timeline: Timeline

    def send(self, endpoint: Endpoint, command: Command) -> None:
        """Put a frame on its way."""

    def close(self, endpoint: Endpoint) -> None:
        """Close one end."""


class Peer(Protocol):
    """What the network must know of a process that holds endpoints."""

    node: str
    ip: str
    suspended: bool
    inbox: list[tuple[Endpoint, Command | None, int]]
    """What arrived while it was suspended, in order."""
    endpoints: dict[Endpoint, None]
    """Its open endpoints, in the order in which they were opened."""

    def is_in(self, stage: Stage) -> bool:
        """Whether it is in a stage of its life."""

    def crash(self, error: Exception) -> None:
        """Its own code raised while it handled an arrival."""


class ListeningProcess(Peer, Owner, Protocol):
    """The process that holds a port."""


@attrs.define
class Listener:
    """An open port of a process."""

    process: ListeningProcess
    handler: ChannelHandler
    wire: object


class Endpoint:
    """One end of a connection; implements `nodes.host.Channel`."""

    __slots__ = (
        "closed",
        "dialed",
        "handler",
        "id",
        "last_due_ns",
        "last_used_ns",
        "link",
        "network",
        "node",
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
        network: Network,
        connection_id: int,
        process: Peer,
        handler: ChannelHandler,
        remote_address: str,
        link: Link,
        *,
        dialed: bool = False,
    ) -> None:
        self.network = network
        self.id = connection_id
        self.process = process
        self.node = process.node
        self.handler = handler
        self.remote_address = remote_address
        self.link = link
        """The direction in which this end sends."""
        self.dialed = dialed
        """Whether its process opened the connection, rather than accepted it."""
        self.last_used_ns = network.timeline.now_ns
        self.last_due_ns = 0
        """When its latest frame arrives; a later frame never overtakes it."""
        self.closed = False
        self.wire = None

    def is_in(self, stage: Stage) -> bool:
        """Whether the process at one of the two ends is in a stage of its life."""
        return self.process.is_in(stage) or self.peer.process.is_in(stage)

    def send(self, command: Command) -> None:
        """Hand one frame to the network."""
        self.network.send(self, command)

    def close(self) -> None:
        """Close this end; a FIN goes to the peer."""
        self.network.close(self)
