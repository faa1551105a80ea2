"""What one connection may use."""

from nodes.values import frozen

_MIB = 1024 * 1024


@frozen
class Allowance:
    """How many frames of a kind a peer may send: `burst` at once, and `per_s` more in each second."""

    burst: int
    per_s: int


@frozen
class GrpcLimits:
    """Limits of one connection; the connection that exceeds one ends, unless the limit's text names another result.

    Frames are counted that cost work and carry no call. Clients of gRPC send a few of them in a minute, or in answer
    to data, which adds to the allowance.
    """

    message_bytes: int = 130 * _MIB
    """A longer message ends its call. As the proxy's `grpcMaxInboundMessageSize`."""
    unpacked_bytes: int = 16 * _MIB
    """A compressed message that becomes longer ends its call: the network of the emulator carries no longer one."""
    unpacked_bytes_at_once: int = _MIB
    """After so many the peer has to wait, whatever else has arrived."""
    concurrent_calls: int = 1_000
    header_list_bytes: int = 8_192
    """Metadata of a call; a call with more is answered 431, as grpc-java does."""
    header_block_bytes: int = 65_536
    """Metadata of a call, where it is so long that it is not read."""
    header_frames: int = 8
    """CONTINUATION frames behind one HEADERS frame."""
    window_bytes: int = _MIB
    """Of each call and of the connection. As in grpc-java."""
    received_bytes: int = 160 * _MIB
    """Messages that are incomplete, or that no handler has taken."""
    unsent_bytes: int = 64 * _MIB
    """Messages that wait for the peer to read when one more is to be sent."""
    unread_bytes: int = 262_144
    """Frames that are made and wait for the peer to read, when it sends more."""
    idle_ms: int = 120_000
    """How long a connection without an open call stays open. As the proxy's `grpcClientIdleTimeMills`."""
    resets: Allowance = Allowance(500, 20)
    """Calls that the peer cancels, or has reset by malformed messages."""
    settings: Allowance = Allowance(100, 10)
    pings: Allowance = Allowance(200, 10)
    window_updates: Allowance = Allowance(2_000, 200)
    empty_data: Allowance = Allowance(50, 5)
    """DATA frames without data that do not end their call."""
    other_frames: Allowance = Allowance(100, 10)
    """PRIORITY, and frames that HTTP/2 does not know."""
