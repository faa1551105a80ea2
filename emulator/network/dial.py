"""Opening a connection: SYN, retransmissions, and the three outcomes: connected, refused, timed out."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from emulator.network.endpoint import Endpoint, Peer
from emulator.network.fabric import Fabric
from emulator.network.link import Link
from emulator.time.timeline import Owner, ScheduledCall
from nodes.cause import cause
from nodes.host import ChannelHandler, ConnectError, ConnectRefusedError
from nodes.units import NS_PER_MS

_SYN_AT_MS = (0, 1_000, 3_000, 7_000)
"""When a kernel sends a SYN and its retransmissions, in ms since the first."""


class DialingProcess(Peer, Owner, Protocol):
    """A process that opens connections."""

    alive: bool

    def next_port(self) -> int:
        """An ephemeral port of its machine."""


class Dial:
    """One attempt of a process to connect to `ip:port`.

    Only the kernels of both machines take part: a connection to a suspended
    process succeeds; a machine without power never answers.

    Args:
        fabric: the network.
        process: the one that connects.
        address: of the other, as the process names it: `ip:port`, or with a domain name.
        ip: that the host of the address stands for; empty: no machine has this name.
        handler: of the frames that arrive on the connection.
        take: called once with the client end or the error, never by this constructor.
        timeout_ms: emulated ms until the process gives up.
    """

    __slots__ = (
        "_address",
        "_answered",
        "_begun_ns",
        "_cause",
        "_client",
        "_fabric",
        "_give_up_entry",
        "_handler",
        "_is_known",
        "_problem",
        "_process",
        "_take",
        "_target",
        "_timeout_ms",
    )

    def __init__(
        self,
        fabric: Fabric,
        process: DialingProcess,
        address: str,
        ip: str,
        handler: ChannelHandler,
        take: Callable[[Endpoint | ConnectError], None],
        timeout_ms: float,
    ) -> None:
        self._fabric = fabric
        self._process = process
        self._handler = handler
        self._address = address
        self._target, self._problem = fabric.translation.target(process.ip, (ip, int(address.rpartition(":")[2])))
        self._take: Callable[[Endpoint | ConnectError], None] | None = take
        """None: the process knows how it ended, or does not want to know any more."""
        self._timeout_ms = timeout_ms
        self._client: Endpoint | None = None
        """The client end, once the kernel of the server has accepted."""
        self._answered = False
        """Whether SYN-ACK or RST has arrived."""
        self._cause = cause.get()
        self._begun_ns = fabric.timeline.now_ns
        self._is_known = bool(ip)
        deadline_ns = self._begun_ns + (int(timeout_ms * NS_PER_MS) if ip else 0)  # an unknown name is refused at once
        self._give_up_entry = fabric.timeline.call_at(deadline_ns, self._give_up, process, self._cause)
        self._send_syn(0)

    def abandon(self) -> None:
        """End the attempt; `take` is not called any more."""
        self._take = None
        self._give_up_entry.cancel()

    def _send_syn(self, number: int) -> None:
        """Send the SYN or one of its retransmissions, and schedule the next."""
        if self._take is None or self._answered or not self._process.alive:
            return
        later_ms = _SYN_AT_MS[number + 1 : number + 2]
        if later_ms and later_ms[0] < self._timeout_ms:
            due_ns = self._begun_ns + later_ms[0] * NS_PER_MS
            self._fabric.timeline.call_at(due_ns, lambda: self._send_syn(number + 1), None, self._cause)
        target_node = self._fabric.node_at(self._target)
        if target_node is not None:
            self._travel(self._fabric.link(self._process.node, target_node), self._syn_arrives)

    def _syn_arrives(self) -> None:
        fabric = self._fabric
        target_node = fabric.node_at(self._target)
        if target_node is None:
            return
        is_first = self._client is None
        if is_first:
            self._client = self._accept(target_node)
        back = fabric.link(target_node, self._process.node)
        if self._client is None or self._client.peer.closed:
            self._travel(back, self._rst_arrives)
            return
        server = self._client.peer
        server.last_due_ns = self._travel(back, self._syn_ack_arrives) or server.last_due_ns
        if is_first:
            _notify(fabric.listeners[self._target].process, partial(server.handler.on_open, server), cause.get())

    def _accept(self, target_node: str) -> Endpoint | None:
        """Accept as the kernel of the server does; returns the client end, or None if no process listens."""
        fabric, process = self._fabric, self._process
        listener = fabric.listeners.get(self._target)
        if listener is None:
            return None
        number = fabric.next_connection()
        forth, back = fabric.link(process.node, target_node), fabric.link(target_node, process.node)
        client = Endpoint(fabric, number, process, self._handler, self._address, forth, dialed=True)
        remote_address = f"{process.ip}:{process.next_port()}"
        server = Endpoint(fabric, number, listener.process, listener.handler, remote_address, back)
        client.peer, server.peer = server, client
        fabric.carrier.open(client, server, listener.wire)
        listener.process.endpoints[server] = None
        client.closed = True  # the client cannot use it before SYN-ACK has arrived
        return client

    def _syn_ack_arrives(self) -> None:
        """The client's kernel completes the connection, or closes it if the process has given up."""
        client = self._client
        if self._answered or client is None or self._process.ip not in self._fabric.powered:
            return
        self._answered = True
        client.closed = False
        if self._take is None or not self._process.alive:
            client.close()
            return
        self._process.endpoints[client] = None
        _notify(self._process, lambda: self._connected(client), cause.get())

    def _rst_arrives(self) -> None:
        if not self._answered:
            self._answered = True
            _notify(self._process, self._refused, cause.get())

    def _connected(self, client: Endpoint) -> None:
        if self._take is None:
            client.close()
        else:
            self._end("connected", client, client.id)

    def _refused(self) -> None:
        self._end("refused", ConnectRefusedError(f"{self._address} refused the connection"))

    def _give_up(self) -> None:
        if self._client is not None and not self._client.peer.closed:
            self._fabric.forget(self._client.peer)  # the server's kernel gives up too, without notifying its process
        problem = "did not answer" if self._is_known else "has an unknown domain name"
        self._end("connect_lost", ConnectError(f"{self._address} {problem}"))

    def _end(self, event: str, result: Endpoint | ConnectError, connection_id: int = 0) -> None:
        """Record how the attempt has ended, and notify the process, unless it does not want to know any more."""
        take = self._take
        if take is None:
            return
        node, target_node = self._process.node, self._fabric.node_at(self._target)
        detail = f"{self._address} {self._problem}" if self._problem else ""
        known = target_node if target_node is not None and not detail else self._address
        self._fabric.recorder.connection(event, connection_id, node, known, self._begun_ns, cause.get(), detail)
        self.abandon()
        cause.set(self._cause)
        take(result)

    def _travel(self, link: Link, arrive: Callable[[], None]) -> int:
        """Send a segment; returns its arrival in ns, or 0 if a fault drops it."""
        fault_id, latency_ns = link.verdict(may_be_lost=True)
        if fault_id or link.loses_segment():
            return 0
        due_ns = self._fabric.timeline.now_ns + latency_ns
        self._fabric.timeline.call_at(due_ns, lambda: None if link.cut_by else arrive(), None, cause.get())
        return due_ns


def _notify(process: Owner, callback: Callable[[], None], cause_seq: int) -> None:
    """Call a callback of a process: at once, or when it is resumed."""
    entry = ScheduledCall(callback, process, cause_seq)
    if process.admits(entry):
        entry.fire()
