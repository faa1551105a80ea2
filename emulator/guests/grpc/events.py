"""What the peer of a connection has done."""

from emulator.guests.grpc.call_head import CallHead
from emulator.guests.grpc.status import GrpcStatus
from nodes.values import frozen


@frozen
class CallStarted:
    """A client has begun a call."""

    call: int
    """Its number on the connection, an odd one."""
    head: CallHead


@frozen
class MessageReceived:
    """A message of a call is complete; `GrpcConnection.on_taken` opens the windows for more."""

    call: int
    message: bytes


@frozen
class HalfClosed:
    """A client sends no more messages in a call."""

    call: int


@frozen
class CallEnded:
    """A server has ended a call."""

    call: int
    status: GrpcStatus
    text: str


@frozen
class CallCancelled:
    """A call is over: the peer has reset it, or what the peer has sent for it cannot be read."""

    call: int
    text: str


@frozen
class ConnectionEnded:
    """The peer closes the connection; or it must end, because the peer has exceeded a limit or broken the protocol."""

    text: str
    is_fault: bool
    """Whether the peer is to blame."""


Event = CallStarted | MessageReceived | HalfClosed | CallEnded | CallCancelled | ConnectionEnded
