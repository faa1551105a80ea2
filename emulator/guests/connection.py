"""One connection of a guest: its bytes become frames on the network, and the node's frames become bytes."""

import socket
from collections.abc import Callable
from functools import partial
from time import perf_counter
from traceback import format_exc
from typing import TYPE_CHECKING, Protocol

import trio

from emulator.base.extra import ExtraMissingError, require_proxy_extra
from emulator.base.text import shortened
from emulator.guests.budget import LONG_PIECE_S, ConnectionCpu
from emulator.guests.guests import Guests
from emulator.guests.hosts import GuestHost
from emulator.guests.node_end import NodeEnd
from emulator.guests.not_emulated import (
    foreign_protocol,
    is_answered,
    protocol_remark,
    remark_text,
    request_text,
    speaks_grpc,
)
from emulator.guests.remoting.codec import EmulatorCodec, GuestAddresses, GuestCodec, RemotingCodec
from emulator.guests.remoting.remoting_command import FIRST_BYTE
from emulator.guests.stream import GuestStream
from emulator.guests.watch import WATCHED_FRAMES, WATCHED_REQUESTS
from emulator.guests.wide_work import WIDE_REQUESTS
from emulator.network.endpoint import Endpoint, Listener, Peer
from emulator.time.timeline import Owner
from faults.link import ProcessStage
from nodes.cause import NO_CAUSE
from nodes.host import Channel, ChannelHandler, Logger
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.rpc.codec import GREETING, FrameError
from nodes.rpc.server import RpcServer
from nodes.units import NS_PER_S

if TYPE_CHECKING:
    from emulator.guests.grpc_service import GrpcService

_CHUNK_BYTES = 64 * 1024
_DETAIL_CHARS_MAX = 300
_FEW_BYTES = 4_096
"""Requests of so many bytes take little time."""
_OWED_S_MAX = 0.01
"""A debt that is too small to wait for."""
_LOOKS = (
    (b"\x01\x00\x00", "a frame of RocketMQ's of more than 16 MiB"),
    (GREETING[:1], "another version of the emulator's framing"),
)


class RunningProcess(Peer, Owner, Protocol):
    """The process that a guest talks to."""

    log: Logger
    resumed: trio.Event
    """Set unless it is suspended."""

    async def until_idle(self, patience_ns: int) -> bool:
        """Wait until no other task can run, but not longer than `patience_ns`; returns whether none could."""


class Guest(Peer, ChannelHandler):
    """One connection of a guest, as a process on the network.

    Args:
        listener: of the node that the guest has dialed.
        process: of that node.
        accepted: the socket, which `serve` closes.
        address: remote address of the socket, `ip:port`.
        host: of the guest.
        has_spoken: called when bytes of the greeting arrive.

    Error handling: bytes that are not a frame close the connection with one `malformed` row;
    frames before them are still delivered to the node. So does whatever else they make the
    emulator raise here, which is logged as a bug.
    """

    def __init__(
        self,
        guests: Guests,
        listener: Listener,
        process: RunningProcess,
        accepted: socket.socket,
        address: str,
        host: GuestHost,
        has_spoken: Callable[[], object],
    ) -> None:
        self.node = host.node
        self.ip = host.ip
        self._program = guests.program(host.node)
        self.suspended = self._program.suspended
        self.inbox = []
        self.endpoints = {}
        self.address = address
        self._peer = address.partition(":")[0]
        self._guests = guests
        self._fabric = guests.fabric
        self._handler = listener.handler
        self._process = process
        self._socket = accepted
        self._accepted_ns = self._fabric.timeline.now_ns
        dialed, _ = accepted.getsockname()
        self._addresses = GuestAddresses(lambda address: host.dialable(address, dialed))
        self._has_spoken = has_spoken
        self._watch = guests.watch(self.node, listener)
        self._budget = guests.budget
        self._wide_work = guests.wide_work
        self.cpu = ConnectionCpu(self._budget.limits.cpu_percent / 100, guests.heavy_turns.cpu)
        """Time that its frames and the answers to them took."""
        self._codec: GuestCodec = EmulatorCodec()
        self._speaks_grpc = False
        self._grpc: GrpcService | None = None
        """In place of the codec, if it speaks gRPC."""
        self._end: Endpoint | None = None
        self._unsent = bytearray()
        self._node_closed = False
        self._hung_up = False
        self._has_joined = False
        """Whether it has sent a heartbeat, so that it may be a member of groups."""
        self._has_left = False
        self._nursery: trio.Nursery | None = None

    async def serve(self) -> None:
        """Read until either side closes."""
        self._program.connections[self] = None
        try:
            if self._program.suspended:  # a suspended guest dials when it is resumed
                await self._program.resumed.wait()
                self._accepted_ns = self._fabric.timeline.now_ns
            await self._serve()
        finally:
            del self._program.connections[self]
            self._budget.unfinished.hold(self, 0)
            self._budget.unsent.hold(self, 0)
            self._hung_up = True
            self._grpc = None  # the node may hold its end for minutes, and with it this one
            self._socket.close()

    async def leave(self) -> None:
        """Let the node see the end of the connection; members that leave at once do so one after the other.

        A broker notifies all members of a group when one leaves.
        """
        try:
            if self._has_joined:
                await self._wide_work.carry_out(self._end_connection)
        finally:  # also where the run ends before its turn
            self._end_connection()

    def _end_connection(self) -> int:
        """End it once; returns when the node sees the end."""
        if not self._has_left:
            self._has_left = True
            self._watch.on_end(by_node=self._node_closed)
            if self._end is not None:
                self._end.close()
        return self._end.last_due_ns if self._end is not None else 0

    async def _serve(self) -> None:
        silent_ms = self._budget.limits.silent_ms
        silence = self._fabric.timeline.call_at(
            self._accepted_ns + silent_ms * 1_000_000, partial(self.close_silent, f"said nothing for {silent_ms} ms")
        )
        try:
            async with trio.open_nursery() as self._nursery:
                if self._hung_up:  # it was closed before its task began
                    self._nursery.cancel_scope.cancel()
                greeting = await self._read_greeting()
                if greeting is not None and self._speaks_grpc:
                    await self._serve_calls(greeting, silence.cancel)
                elif greeting is not None:
                    silence.cancel()
                    await self._read_frames(greeting)
                self._nursery.cancel_scope.cancel()
        finally:
            silence.cancel()

    def close_silent(self, detail: str) -> None:
        """Close a connection over which nothing has arrived; does nothing once its greeting is complete."""
        if self._end is None and not self._hung_up:
            self._malformed(detail)
            self._hang_up()

    def close_over_limit(self, detail: str) -> None:
        """Close the connection, which uses too much of what all guests share."""
        if self._grpc is not None:
            self._grpc.close_over_limit(detail)
            return
        self._malformed(detail)
        self._unsent.clear()
        self._hang_up()

    def is_in(self, stage: ProcessStage) -> bool:  # noqa: ARG002 - a guest has no stages
        """Never: the stages of a guest are not known."""
        return False

    def crash(self, error: Exception) -> None:
        """End the emulation: no node's code runs on this side, so it is a bug of the emulator."""
        self._fabric.failure.report(error)

    # --- from the guest to the node ---------------------------------------------

    async def _read_greeting(self) -> bytes | None:
        """The bytes behind the greeting, which RocketMQ's programs do not send; None for an unknown protocol."""
        got = b""
        while len(got) < len(GREETING):
            chunk = await self._receive()
            if not chunk:
                if got:
                    self._malformed("the stream ended inside the greeting")
                return None
            self._has_spoken()
            got += chunk
            if got.startswith(FIRST_BYTE):
                self._codec = RemotingCodec(self._addresses)
                return got
            if speaks_grpc(got) and self._answers_calls:
                self._speaks_grpc = True
                return got
            if not got.startswith(GREETING[: len(got)]):
                self._refuse_protocol(got)
                return None
        return got[len(GREETING) :]

    def _refuse_protocol(self, first: bytes) -> None:
        """Say what the first bytes of a connection are that is closed now."""
        protocol = foreign_protocol(first)
        if protocol is not None:
            self._watch.on_not_emulated(protocol.name, protocol_remark(protocol, self._process.node))
        look = protocol.name if protocol else next((name for begin, name in _LOOKS if first.startswith(begin)), "")
        self._malformed(f"looks like {look or 'an unknown protocol'}: begins with {first[:8].hex(' ')}")

    async def _read_frames(self, chunk: bytes) -> None:
        self._end = end = self._open()
        while await self._deliver(end, chunk):
            chunk = await self._receive()
            if not chunk:
                if self._codec.unfinished_bytes:
                    self._malformed("the stream ended inside a frame")
                return

    @property
    def _answers_calls(self) -> bool:
        """Whether the node answers clients of RocketMQ 5."""
        return isinstance(self._handler, RpcServer) and self._handler.answers(RequestCode.V2_QUERY_ROUTE)

    async def _serve_calls(self, first: bytes, on_greeted: Callable[[], None]) -> None:
        """Serve gRPC, behind TLS or not.

        Args:
            on_greeted: called when the guest has said all that it must say at first.
        """
        try:
            require_proxy_extra("gRPC")
        except ExtraMissingError as error:
            self._malformed(str(error))
            return
        from emulator.guests.grpc_service import TLS_RECORD, GrpcService, TlsError, behind_tls  # noqa: PLC0415 - see above

        stream: trio.abc.Stream = GuestStream(
            self._socket, first, self._receive, self._begin_chunk, self._between_chunks, self._program
        )
        try:
            stream = await behind_tls(stream) if first.startswith(TLS_RECORD) else stream
        except TlsError as error:
            self._malformed(str(error))
            return
        on_greeted()
        of_heavy, on_charged = self._guests.heavy_turns.cpu, self._guests.turns.charge
        self.cpu = ConnectionCpu(self._budget.limits.cpu_percent / 100, of_heavy, on_charged)
        self._end = end = self._open()
        timeline, budget = self._fabric.timeline, self._budget
        send = partial(self._send_watched, end)
        self._grpc = GrpcService(timeline, self._process, self, budget, self.cpu, send, self._malformed, self._turn)
        try:
            await self._grpc.serve(stream)
        except* Exception as errors:  # noqa: BLE001 - as in `_deliver`
            self._malformed(self._reported("a call cannot be served", errors.exceptions[0]))

    async def _between_chunks(self) -> None:
        if self._grpc is not None:
            self._grpc.on_handled()
        await self._give_way()

    async def _begin_chunk(self) -> None:
        await self._turn(0)
        if self._grpc is not None:
            self._grpc.on_chunk()

    async def _turn(self, piece_bytes: int) -> None:
        """Wait until something that the guest has sent may be handled."""
        if not await self._heavy_turn(piece_bytes):
            await self._guests.turns.begin(self._peer, self)

    async def _heavy_turn(self, piece_bytes: int) -> bool:
        """Wait until it is the turn of the connection if it is heavy, or the piece may be; returns whether so."""
        is_heavy = piece_bytes > _FEW_BYTES or self.cpu.is_heavy
        if is_heavy:
            await self._guests.heavy_turns.begin(self._peer, self, self._process.until_idle)
        return is_heavy

    async def _receive(self) -> bytes:
        """The next bytes, b"" at the end; while node or guest is suspended they wait in the kernel."""
        while True:
            while self._process.suspended or self._program.suspended:
                await self._process.resumed.wait()
                await self._program.resumed.wait()
            try:
                return self._socket.recv(_CHUNK_BYTES)
            except BlockingIOError:  # under load the next frame is there already, and costs no look at the selector
                await trio.lowlevel.wait_readable(self._socket)
            except OSError:
                return b""

    def _open(self) -> Endpoint:
        fabric, process = self._fabric, self._process
        number = fabric.next_connection()
        end = Endpoint(fabric, number, self, self, process.ip, fabric.link(self.node, process.node))
        node_end = NodeEnd(
            self._guests, number, process, self._handler, self.cpu, self.address, fabric.link(process.node, self.node)
        )
        end.peer, node_end.peer = node_end, end
        self.endpoints[end] = None
        process.endpoints[node_end] = None
        fabric.timeline.call_at(fabric.timeline.now_ns, partial(self._handler.on_open, node_end), process)
        self._record("connected")
        return end

    async def _deliver(self, end: Endpoint, chunk: bytes) -> bool:
        """Send the complete frames to the node; returns whether to read on."""
        frames_per_turn = self._budget.limits.frames_per_turn
        await self._heavy_turn(self._codec.unfinished_bytes + len(chunk))
        began_s = perf_counter()
        try:
            for number, command in enumerate(self._codec.decode(chunk), start=1):
                if command.code in WIDE_REQUESTS:
                    self.cpu.charge(began_s)
                    await self._wide_work.carry_out(partial(self._deliver_one, end, command))
                    began_s = perf_counter()
                else:
                    self._deliver_one(end, command)
                if number % frames_per_turn == 0 or perf_counter() - began_s > LONG_PIECE_S:
                    self.cpu.charge(began_s)
                    await self._give_way()
                    await self._heavy_turn(self._codec.unfinished_bytes)
                    began_s = perf_counter()
        except Exception as error:  # noqa: BLE001 - whatever bytes from outside raise harms their connection alone
            self._malformed(self._reported("a frame cannot be read", error))
            return False
        self.cpu.charge(began_s)
        await self._give_way()
        self._budget.unfinished.hold(self, self._codec.unfinished_bytes)
        return not (end.closed or self._hung_up)

    def _deliver_one(self, end: Endpoint, command: Command) -> int:
        """Send a frame to the node; returns when it arrives."""
        self._has_joined = self._has_joined or command.code == RequestCode.HEART_BEAT
        self._send_watched(end, command)
        if command.is_oneway and not is_answered(command.code):
            text = request_text(command.code, self._process.node, oneway=True)
            self._watch.on_not_emulated(command.code, text)
        return end.last_due_ns

    def _send_watched(self, end: Endpoint, command: Command) -> None:
        end.send(self._watch.on_request(command) if command.code in WATCHED_REQUESTS else command)

    async def _give_way(self) -> None:
        """Let the others go on; if this connection has taken more than its share, as long as they need the time."""
        await trio.lowlevel.checkpoint()
        while self.cpu.owes_more_than(_OWED_S_MAX):
            if await self._process.until_idle(int(self.cpu.owed_s(perf_counter()) * NS_PER_S)):
                self.cpu.forgive()

    def _reported(self, subject: str, error: Exception) -> str:
        """An error as the detail of a row; one that is no fault of the guest is a bug, and logged."""
        if isinstance(error, FrameError):
            return str(error)
        detail = f"{subject}: {type(error).__name__}: {error}"
        self._process.log.error("a bug of the emulator", guest=self.address, error=detail, traceback=format_exc())
        return detail

    def _malformed(self, detail: str) -> None:
        self._record("malformed", f"{self.address}: {shortened(detail, _DETAIL_CHARS_MAX)}")

    def _record(self, event: str, detail: str = "") -> None:
        number = self._end.id if self._end is not None else 0
        self._fabric.recorder.connection(
            event, number, self.node, self._process.node, self._accepted_ns, NO_CAUSE, detail
        )

    # --- from the node to the guest ---------------------------------------------

    def on_open(self, channel: Channel) -> None:
        """Nothing to do: this side opened the connection."""

    def on_command(self, channel: Channel, command: Command) -> None:  # noqa: ARG002 - there is one channel
        """Queue a frame of the node for the socket."""
        if self._hung_up:
            return
        if self._grpc is not None:
            if (command.request_code or command.code) in WATCHED_FRAMES:
                self._watch.on_frame(command)
            self._grpc.on_command(command)
            return
        if len(self._unsent) > self._budget.limits.unsent_bytes:
            self.close_over_limit(f"cut off: it has not read {len(self._unsent)} bytes")
            return
        began_s = perf_counter()
        frame = self._encoded(command)
        self.cpu.charge(began_s)
        if not command.is_response:  # a notification; to send it takes about as long
            self._wide_work.charge(2 * (perf_counter() - began_s))
        is_flushed_later = bool(self._unsent)  # a flush or a drain is pending already
        self._unsent += frame
        if is_flushed_later:
            self._budget.unsent.hold(self, len(self._unsent))
        else:
            self._fabric.hub.flushes.append(self._flush_turn)

    def _encoded(self, command: Command) -> bytes:
        """The bytes of a frame.

        Of an answer that cannot be encoded those of a SYSTEM_ERROR; of such a request none. What is wrong with it may
        come from another guest, so the connection stays open.
        """
        try:
            if (command.request_code or command.code) in WATCHED_FRAMES:
                self._watch.on_frame(command)
            elif command.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED and command.is_response:
                code = command.request_code
                self._watch.on_not_emulated(code, request_text(code, self._process.node))
                command = command._replace(remark=remark_text(code, command.remark))
            return self._codec.encode(command)
        except Exception as error:  # noqa: BLE001 - as in `_deliver`
            detail = self._reported("it cannot be encoded", error)
            self._malformed(f"{'an answer' if command.is_response else 'a request'} was not sent: {detail}")
            if not command.is_response:
                return b""
            refusal = command._replace(code=ResponseCode.SYSTEM_ERROR, remark=detail, ext_fields=NO_FIELDS, body=None)
            return self._codec.encode(refusal)

    def on_close(self, channel: Channel) -> None:  # noqa: ARG002 - as above
        """The node has closed the connection; frames before its FIN are still sent."""
        self._node_closed = True
        if self._grpc is not None:
            self._grpc.on_close()
        elif not self._unsent:
            self._hang_up()

    def _flush_turn(self) -> None:
        """Send all answers of the turn at once, which is cheaper for both sides."""
        self._flush()
        if self._unsent and self._nursery is not None:
            self._budget.unsent.hold(self, len(self._unsent))
            self._nursery.start_soon(self._drain)
        elif self._node_closed:
            self._hang_up()

    async def _drain(self) -> None:
        while self._unsent:
            await trio.lowlevel.wait_writable(self._socket)
            await self._program.resumed.wait()
            self._flush()
            self._budget.unsent.hold(self, len(self._unsent))
        if self._node_closed:
            self._hang_up()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # the guest has gone
            self._unsent.clear()
            self._hang_up()

    def _hang_up(self) -> None:
        self._hung_up = True
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
