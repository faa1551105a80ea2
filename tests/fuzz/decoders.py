"""Frames on the decoders alone: everything that a frame passes before a handler sees it."""

from contextlib import suppress

from emulator.guests.remoting.codec import EmulatorCodec, GuestAddresses, RemotingCodec
from nodes.protocol.command import Command
from nodes.protocol.errors import ProtocolError
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header, encode_body, encode_header
from nodes.rpc.codec import GREETING, FrameError


def decode_everything(stream: bytes) -> int:
    """Decode frames, and what their codes say about header and body; returns the number of commands.

    Args:
        stream: with the greeting if it has the emulator's framing.

    Raises:
        Exception: anything but what malformed frames may raise.
    """
    codec = EmulatorCodec() if stream.startswith(GREETING) else RemotingCodec(GuestAddresses(str))
    commands = 0
    with suppress(FrameError):
        for command in codec.decode(stream.removeprefix(GREETING)):
            commands += 1
            _decode_parts(command)
    return commands


def _decode_parts(command: Command) -> None:
    exchange = EXCHANGES.get(command.code)  # type: ignore[call-overload]
    if exchange is None or command.is_response:
        return
    with suppress(ProtocolError):
        encode_header(decode_header(exchange.request_header, command.ext_fields))
    if exchange.request_body is not None:
        with suppress(ProtocolError):
            encode_body(decode_body(exchange.request_body, command.body))
