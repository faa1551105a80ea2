"""Frames carried over loopback TCP: the `live` and `fast` modes.

Both ends of a connection live in this process, so the carrier knows which
bytes must arrive where: it writes them, and reads them at the other end before
it goes on. Nothing is in flight when the hub has finished its turn, and frames
arrive in the order of sending.

Emulated addresses are 127.1.x.y; the sockets use the same x.y in a block
127.B.x.y that no other emulation on this machine uses, and ports below 32768.
"""

import errno
import select
import socket
import struct
from collections.abc import Callable

import attrs
import trio

from emulator.network.endpoint import Endpoint
from emulator.network.hub import Arrival
from nodes.protocol.command import Command
from nodes.rpc.codec import GREETING, Decoder, encode

_GUARD_PORT = 9_875
GUESTS_BLOCK = 9
"""Second byte of the addresses of named guests."""
_GUESTS_BLOCKS = tuple(range(GUESTS_BLOCK, 251, 10))
_BLOCKS = tuple(block for block in range(1, 251) if block not in _GUESTS_BLOCKS)
_CHUNK_BYTES = 64 * 1024
"""Larger buffers cost a system call each to allocate."""
_RST_ON_CLOSE = struct.pack("ii", 1, 0)
_IP_BIND_ADDRESS_NO_PORT = 24
_STALL_MS = 10_000


TakeGuest = Callable[[socket.socket, tuple[str, int]], None]
"""Takes an accepted connection of a guest, and its remote (address, port)."""


class LoopbackError(OSError):
    """The machine's loopback network cannot carry the emulation; the text says what to do."""


@attrs.define(eq=False)
class _Wire:
    """The socket of one end, and its decoder."""

    socket: socket.socket
    decoder: Decoder


class LoopbackCarrier:
    """Carries frames as bytes through the kernel."""

    def __init__(self) -> None:
        self._block, guard = _claim_block(_BLOCKS)
        self._guards = [guard]
        self._open: dict[socket.socket, None] = {}
        self._acceptors: dict[socket.socket, TakeGuest] = {}

    def release(self) -> None:
        """Close all open sockets and release the address blocks."""
        for left_open in self._open:
            left_open.close()
        for guard in self._guards:
            guard.close()

    def claim_guests_block(self) -> int:
        """Claim an address block for named guests: `GUESTS_BLOCK` unless another emulation uses it.

        Raises:
            LoopbackError: all blocks are in use.
        """
        block, guard = _claim_block(_GUESTS_BLOCKS)
        self._guards.append(guard)
        return block

    def admit_guests(self, listener: socket.socket, take: TakeGuest) -> None:
        """Pass connections of guests to `take`; without it they are closed."""
        self._acceptors[listener] = take

    def physical_ip(self, ip: str) -> str:
        """The machine's address for an emulated one."""
        first, _, rest = ip.split(".", 2)
        return f"{first}.{self._block}.{rest}"

    def carry(self, arrivals: list[Arrival]) -> list[Arrival]:
        """Write every frame and read it at the other end; frames of guests, which have no wire, stay as they are."""
        payloads: dict[Endpoint, bytes] = {}
        places: dict[Endpoint, list[int]] = {}
        for place, (sender, command, _) in enumerate(arrivals):
            if command is not None and sender.wire is not None and not sender.peer.closed:
                frame = encode(command)
                if sender in payloads:
                    payloads[sender] += frame
                    places[sender].append(place)
                else:
                    payloads[sender] = frame
                    places[sender] = [place]
        for sender, payload in payloads.items():
            commands = _transfer(sender.wire, sender.peer.wire, payload)  # type: ignore[arg-type]
            for place, command in zip(places[sender], commands, strict=True):
                arrivals[place] = (sender, command, arrivals[place][2])
        return arrivals

    def listen(self, ip: str, port: int) -> socket.socket:
        """A listening socket on the emulated address."""
        return self.listen_at(self.physical_ip(ip), port)

    def listen_at(self, ip: str, port: int) -> socket.socket:
        """A listening socket on an address of the machine."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((ip, port))
            listener.listen(4096)
        except OSError as error:
            listener.close()
            msg = f"cannot listen on {ip}:{port}: {error.strerror}"
            raise LoopbackError(error.errno, msg) from error
        listener.setblocking(False)
        self._open[listener] = None
        return listener

    def close_listener(self, listener: object) -> None:
        """Close a listener; connections in its backlog are reset."""
        assert isinstance(listener, socket.socket)
        if self._acceptors.pop(listener, None) is not None:
            trio.lowlevel.notify_closing(listener)
        del self._open[listener]
        listener.close()

    def open(self, client: Endpoint, server: Endpoint, listener: object) -> None:
        """Connect through the kernel and pick the accepted socket out of the backlog."""
        assert isinstance(listener, socket.socket)
        dialing = _socket()
        try:
            dialing.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
            dialing.bind((self.physical_ip(client.process.ip), 0))
            dialing.connect(listener.getsockname())
            accepted = self._accept_ours(listener, dialing.getsockname())
        except OSError as error:
            dialing.close()
            hint = "; raise `ulimit -n`" if error.errno == errno.EMFILE else ""
            msg = f"cannot connect {client.process.node} to {server.process.node}: {error.strerror}{hint}"
            raise LoopbackError(error.errno, msg) from error
        dialing.setblocking(False)
        _tune(accepted)
        for endpoint, sock in ((client, dialing), (server, accepted)):
            self._open[sock] = None
            endpoint.wire = _Wire(sock, Decoder(trusted=True))
        dialing.sendall(GREETING)
        _read_greeting(accepted)

    def close(self, endpoint: Endpoint) -> None:
        """Close the socket of this end."""
        wire, endpoint.wire = endpoint.wire, None
        if isinstance(wire, _Wire):
            del self._open[wire.socket]
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
            wire.socket.close()

    def _accept_ours(self, listener: socket.socket, source: tuple[str, int]) -> socket.socket:
        """Accept the connection from `source`; connections before it in the backlog are guests'."""
        while True:
            try:
                accepted, peer = listener.accept()
            except BlockingIOError:
                _wait(listener, select.POLLIN)
                continue
            if peer == source:
                return accepted
            self._acceptors.get(listener, _close)(accepted, peer)


def _close(accepted: socket.socket, _: tuple[str, int]) -> None:
    accepted.close()


def _transfer(source: _Wire, sink: _Wire, payload: bytes) -> list[Command]:
    """Carry bytes from one end to the other; returns the decoded commands."""
    size = len(payload)
    chunk = b""
    sent = 0
    try:
        sent = source.socket.send(payload)
        if sent == size:
            chunk = sink.socket.recv(min(size, _CHUNK_BYTES))
            if len(chunk) == size:
                return sink.decoder.feed(chunk)
    except BlockingIOError:  # nothing was written, or nothing has arrived yet
        pass
    commands = sink.decoder.feed(chunk)
    commands += _pump(source, sink, payload, sent, len(chunk))
    return commands


def _pump(source: _Wire, sink: _Wire, payload: bytes, sent: int, received: int) -> list[Command]:
    """Carry the rest, where the kernel's buffers did not take or return everything at once."""
    commands: list[Command] = []
    while received < len(payload):
        if sent < len(payload):
            sent += _send(source.socket, payload, sent)
            if sent == received:
                _wait(source.socket, select.POLLOUT)
                continue
        try:
            chunk = sink.socket.recv(min(sent - received, _CHUNK_BYTES))
        except BlockingIOError:
            _wait(sink.socket, select.POLLIN)
            continue
        if not chunk:
            msg = "a loopback connection of the emulation was closed from outside"
            raise LoopbackError(errno.ECONNRESET, msg)
        received += len(chunk)
        commands += sink.decoder.feed(chunk)
    return commands


def _send(sock: socket.socket, payload: bytes, sent: int) -> int:
    try:
        return sock.send(memoryview(payload)[sent:] if sent else payload)
    except BlockingIOError:  # full: the other end must be emptied first
        return 0


def _wait(sock: socket.socket, event: int) -> None:
    poll = select.poll()
    poll.register(sock, event)
    if not poll.poll(_STALL_MS):
        msg = f"loopback moved nothing for {_STALL_MS} ms"
        raise LoopbackError(errno.ETIMEDOUT, msg)


def _read_greeting(accepted: socket.socket) -> None:
    got = b""
    while len(got) < len(GREETING):
        try:
            got += accepted.recv(len(GREETING) - len(got))
        except BlockingIOError:
            _wait(accepted, select.POLLIN)


def _socket() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _tune(accepted: socket.socket) -> None:
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setblocking(False)


def _claim_block(blocks: tuple[int, ...]) -> tuple[int, socket.socket]:
    """Claim the first free address block; the claim holds while the returned guard socket is open."""
    why = 0
    for block in blocks:
        guard = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            guard.bind((f"127.{block}.255.254", _GUARD_PORT))
            guard.listen(1)
        except OSError as error:
            guard.close()
            why = error.errno or 0
        else:
            return block, guard
    if why == errno.EADDRNOTAVAIL:
        msg = "this system has no loopback address but 127.0.0.1: `rmqemu up --listen 127.0.0.1:9876` needs no other"
        raise LoopbackError(why, msg)
    msg = f"no free loopback block 127.{blocks[0]}.x.y to 127.{blocks[-1]}.x.y: end other emulations"
    raise LoopbackError(errno.EADDRINUSE, msg)
