"""The two ends of a connection, and the processes that own them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import attrs

from emulator.network.link import Link
from emulator.time.timeline import Owner, Timeline
from faults.link import ProcessStage
from nodes.host import Channel, ChannelHandler
from nodes.protocol.body_codec import SharedBody
from nodes.protocol.command import Command
from nodes.rpc.codec import FRAME_BYTES_MAX

BODY_BYTES_MAX = FRAME_BYTES_MAX - 64 * 1024
"""Longest body of a frame; the receiver refuses a longer one."""


class Transport(Protocol):
    """The network between two endpoints."""

    timeline: Timeline

    def send_each(self, ends: Iterable[Endpoint], command: Command) -> None:
        """Send one frame over each of these connections."""

    def close(self, endpoint: Endpoint) -> None:
        """Close one end."""


class Peer(Protocol):
    """A process that holds endpoints, as the network sees it."""

    node: str
    ip: str
    suspended: bool
    inbox: list[tuple[Endpoint, Command | None, int]]
    """Arrivals while it was suspended, in order: (sender, frame or None for a FIN, sent_ns)."""
    endpoints: dict[Endpoint, None]
    """Its open endpoints, in the order in which they were opened."""

    def is_in(self, stage: ProcessStage) -> bool:
        """Whether the process is in a stage of its life."""

    def crash(self, error: Exception) -> None:
        """Handle an exception that its own code raised for an arrival."""


class ListeningProcess(Peer, Owner, Protocol):
    """A process that listens on a port."""


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
    """State of the carrier for this end; None with the memory carrier."""

    def __init__(
        self,
        network: Transport,
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
        """The link on which this end sends."""
        self.dialed = dialed
        """Whether its process opened the connection; otherwise it accepted it."""
        self.last_used_ns = network.timeline.now_ns
        self.last_due_ns = 0
        """Arrival of its latest frame in ns; a later frame never overtakes it."""
        self.closed = False
        self.wire = None

    def is_in(self, stage: ProcessStage) -> bool:
        """Whether the process at one of the two ends is in a stage of its life."""
        return self.process.is_in(stage) or self.peer.process.is_in(stage)

    def send(self, command: Command) -> None:
        """Send one frame."""
        self.network.send_each((self,), command)

    def close(self) -> None:
        """Close this end and send a FIN to the peer."""
        self.network.close(self)


class _Closed:
    """The handler of an end that is closed: nothing reaches it."""

    def on_open(self, channel: Channel) -> None:
        """Do nothing."""

    def on_command(self, channel: Channel, command: Command) -> None:
        """Do nothing."""

    def on_close(self, channel: Channel) -> None:
        """Do nothing."""


CLOSED = _Closed()


def is_short(body: Any) -> bool:
    """Whether a body is known to fit into a frame."""
    return body.is_short if body.__class__ is SharedBody else len(body) <= BODY_BYTES_MAX
