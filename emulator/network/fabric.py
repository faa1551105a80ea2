"""The network fabric: links between all hosts, the fate of each frame, and its row in the trace."""

from collections.abc import Iterable
from typing import Protocol

from emulator.base.hits import Hits
from emulator.network.endpoint import BODY_BYTES_MAX, CLOSED, Endpoint, Listener, Peer, is_short
from emulator.network.hub import Arrival, Carrier, Hub
from emulator.network.link import Link, LinkRule
from emulator.network.retransmission import Retransmission
from emulator.spec.model.networks import AddressTranslation
from emulator.time.failure import Failure
from emulator.time.timeline import Timeline
from emulator.trace.recorder import NodeIdentity
from nodes.beliefs import Event
from nodes.cause import NO_CAUSE, cause
from nodes.protocol.command import Command


class FrameRecorder(Protocol):
    """Records the fate of frames and connections, and events of guests; each method returns the seq of the row."""

    def frame(self, event: str, endpoint: Endpoint, command: Command, sent_ns: int, detail: str = "") -> int:
        """Record the fate of a frame that `endpoint` sent."""

    def connection(
        self, event: str, connection_id: int, src: str, dst: str, sent_ns: int, cause_seq: int, detail: str = ""
    ) -> int:
        """Record the fate of a connection."""

    def event(self, source: NodeIdentity, event: Event) -> int:
        """Record an event."""


class Fabric:
    """The network that connects all hosts.

    Args:
        seed: of the run; links draw their losses and jitter from it.
        delay_ms: latency of every link, one way.
        jitter_ms: upper bound of a uniform delay on top.
        failure: gets the errors that end the emulation.
    """

    def __init__(
        self,
        timeline: Timeline,
        carrier: Carrier,
        recorder: FrameRecorder,
        seed: int,
        delay_ms: int,
        jitter_ms: int,
        failure: Failure,
    ) -> None:
        self.timeline = timeline
        self.carrier = carrier
        self.recorder = recorder
        self.failure = failure
        self.hub = Hub(timeline, carrier, self.deliver, failure)
        self.listeners: dict[tuple[str, int], Listener] = {}
        self.powered: dict[str, str] = {}
        """Mapping IP address -> node, of every machine that has power."""
        self.translation = AddressTranslation()
        """Who reaches which address."""
        self.hits = Hits()
        """Hits of each fault, on links and on machines."""
        self._seed = seed
        self._delay_ms = delay_ms
        self._jitter_ms = jitter_ms
        self._links: dict[tuple[str, str], Link] = {}
        self._rules: tuple[LinkRule, ...] = ()
        self._connections = 0
        self._retransmission = Retransmission(
            timeline, self._transmit, lambda ip: ip in self.powered, self._give_up_connection
        )
        self.backlogs = self._retransmission.backlogs

    def link(self, src: str, dst: str) -> Link:
        """The link from node `src` to node `dst`."""
        link = self._links.get((src, dst))
        if link is None:
            link = Link(self._seed, src, dst, self._delay_ms, self._jitter_ms, self.hits)
            if self._rules:
                link.apply(tuple(r for r in self._rules if r.covers(src, dst)))
            self._links[src, dst] = link
        return link

    def node_at(self, address: tuple[str, int]) -> str | None:
        """The node behind (IP address, port); None if no machine answers.

        If several nodes share the address, the node that listens on the port answers, else the first one.
        """
        listener = self.listeners.get(address)
        return self.powered.get(address[0]) if listener is None else listener.process.node

    @property
    def rules(self) -> tuple[LinkRule, ...]:
        """Faults of links, in the order in which they began."""
        return self._rules

    def add_rule(self, rule: LinkRule) -> None:
        """Begin a fault; it also hits frames that are in flight."""
        self._change_rules((*self._rules, rule))

    def remove_rule(self, fault_id: str) -> None:
        """End a fault; does nothing if it is not active."""
        self._change_rules(tuple(r for r in self._rules if r.fault_id != fault_id))

    def translate(self, translation: AddressTranslation) -> None:
        """Let private networks be; the machines at which they publish ports answer at once, and have no other ports."""
        self.translation = translation
        self.powered |= {ip: ip for ip in translation.hosts}

    def lose_power(self, ip: str) -> None:
        """Take the power from a machine, which may have had none: its kernel retransmits nothing any more."""
        self.powered.pop(ip, None)
        self._retransmission.lose_power(ip)

    def next_connection(self) -> int:
        """The number of a new connection."""
        self._connections += 1
        return self._connections

    def send_each(self, ends: Iterable[Endpoint], command: Command) -> None:
        """Send one frame over each of these connections, in order: one, or those of all members of a large group."""
        now_ns, body, backlogs = self.timeline.now_ns, command.body, self.backlogs
        is_long = body is not None and not is_short(body)
        arrivals: list[Arrival] = []
        arrive_ns = -1
        for end in ends:
            link = end.link
            if end.closed or link.faulty or backlogs or is_long:
                self._send_unusual(end, command)
                continue
            end.last_used_ns = now_ns
            due_ns = now_ns + (link.delay_ns + link.jitter_ns(link.frames) if link.jitters else link.delay_ns)
            link.frames += 1
            if due_ns < end.last_due_ns:  # noqa: PLR1730 - max() would be a call in the hottest path
                due_ns = end.last_due_ns
            end.last_due_ns = due_ns
            if due_ns != arrive_ns:
                arrive_ns, arrivals = due_ns, self.hub.arrivals_at(due_ns, now_ns)
            arrivals.append((end, command, now_ns))

    def _send_unusual(self, endpoint: Endpoint, command: Command) -> None:
        """Send a frame that may meet a fault, or record why it cannot be sent."""
        now_ns = self.timeline.now_ns
        if endpoint.closed:
            self.recorder.frame("lost", endpoint, command, now_ns, "sent on a closed connection")
            return
        endpoint.last_used_ns = now_ns
        if command.body is not None and len(command.body) > BODY_BYTES_MAX:
            self._break(endpoint, f"frame with a body of {len(command.body)} bytes; at most {BODY_BYTES_MAX} fit")
            return
        if not self._retransmission.takes(endpoint, command, now_ns):
            self._transmit(endpoint, command, now_ns)

    def close(self, endpoint: Endpoint) -> None:
        """Close one end; the FIN takes the link like a frame, but the kernel retransmits it if it is lost."""
        if endpoint.closed:
            return
        self.forget(endpoint)
        now_ns = self.timeline.now_ns
        if not self._retransmission.takes(endpoint, None, now_ns):
            self._transmit(endpoint, None, now_ns)

    def in_flight(self) -> list[Arrival]:
        """Frames that have been sent and have not arrived; those that wait for a retransmission come last."""
        return [*self.hub.in_flight(), *self._retransmission.in_flight()]

    def forget(self, endpoint: Endpoint) -> None:
        """Close one end without a FIN.

        The other end may be held for long, by a server that looks for idle connections every two minutes. It must not
        hold the node of this end: each node that has ended would hold those before it, through its own connections.
        """
        endpoint.closed = True
        endpoint.handler = CLOSED
        endpoint.process.endpoints.pop(endpoint, None)
        if endpoint.peer.closed:
            self.carrier.close(endpoint)
            self.carrier.close(endpoint.peer)

    def deliver_inbox(self, process: Peer) -> list[Arrival]:
        """Deliver what was buffered while the process was suspended, in order.

        Returns:
            The FINs of connections that the process itself had opened, to be delivered a little later.
        """
        held, process.inbox = process.inbox, []
        is_late = [command is None and sender.peer.dialed for sender, command, _ in held]
        self.deliver([arrival for arrival, late in zip(held, is_late, strict=True) if not late])
        return [arrival for arrival, late in zip(held, is_late, strict=True) if late]

    def deliver(self, arrivals: list[Arrival]) -> None:
        """Hand frames and FINs over to their receivers, in order."""
        now_ns, record, set_cause = self.timeline.now_ns, self.recorder.frame, cause.set
        for sender, command, sent_ns in arrivals:
            receiver, link = sender.peer, sender.link
            process = receiver.process
            if link.cut_by:
                self._cut(sender, command, sent_ns)
            elif receiver.closed:
                self._arrive_at_closed(sender, receiver, command, sent_ns)
            elif process.suspended:
                process.inbox.append((sender, command, sent_ns))
            elif command is None:
                self._fin(sender, receiver, sent_ns)
            else:
                receiver.last_used_ns = now_ns
                set_cause(record("delivered", sender, command, sent_ns))
                if link.refusals and self._refuse(sender, command):
                    continue
                try:
                    receiver.handler.on_command(receiver, command)
                except Exception as error:  # noqa: BLE001 - an exception of a node must not end the network
                    process.crash(error)

    def _cut(self, sender: Endpoint, command: Command | None, sent_ns: int) -> None:
        fault_id = sender.link.cut_by
        self.hits.count(fault_id)
        if command is not None:
            self.recorder.frame("dropped", sender, command, sent_ns, fault_id)

    def _transmit(self, sender: Endpoint, command: Command | None, sent_ns: int) -> None:
        """Send a frame or a FIN over its link, unless a fault drops it."""
        fault_id, latency_ns = sender.link.verdict(may_be_lost=command is not None, sender=sender, command=command)
        if not fault_id:
            self.hub.post(sender, command, sent_ns, self.timeline.now_ns - sent_ns + latency_ns)
        elif command is not None:
            self.recorder.frame("dropped", sender, command, sent_ns, fault_id)

    def _refuse(self, sender: Endpoint, command: Command) -> bool:
        """Answer a request in place of its receiver if a fault refuses it; returns whether one does.

        A one-way request is refused without an answer, as a server of RocketMQ that is busy does.
        """
        rule = sender.link.refusal(sender, command)
        if rule is None:
            return False
        if not command.is_oneway:
            sender.peer.send(command.answer(rule.response, f"refused by fault {rule.fault_id}"))
        return True

    def _break(self, endpoint: Endpoint, mistake: str) -> None:
        """Break a connection whose receiver cannot read the frame; both ends see it closed."""
        src, dst = endpoint.process.node, endpoint.peer.process.node
        now_ns = self.timeline.now_ns
        self.recorder.connection("malformed", endpoint.id, src, dst, now_ns, cause.get(), mistake)
        for end in (endpoint, endpoint.peer):
            self.hub.post(end, None, now_ns, end.link.delay_ns)

    def _give_up_connection(self, end: Endpoint, unacknowledged: list[tuple[Command | None, int]]) -> None:
        """Give up a connection without notifying the other end: too many retransmissions, or no power."""
        for command, sent_ns in unacknowledged:
            if command is not None:
                self.recorder.frame("lost", end, command, sent_ns, "never acknowledged")
        if end.closed:
            return
        now_ns = self.timeline.now_ns
        self.recorder.connection("broken", end.id, end.process.node, end.peer.process.node, now_ns, NO_CAUSE)
        if end.process.suspended:
            end.process.inbox.append((end.peer, None, now_ns))
        else:
            self._fin(end.peer, end, now_ns)

    def _fin(self, sender: Endpoint, receiver: Endpoint, sent_ns: int) -> None:
        handler = receiver.handler
        self.forget(receiver)
        src, dst = sender.process.node, receiver.process.node
        cause.set(self.recorder.connection("closed", receiver.id, src, dst, sent_ns, NO_CAUSE))
        try:
            handler.on_close(receiver)
        except Exception as error:  # noqa: BLE001 - as above
            receiver.process.crash(error)

    def _arrive_at_closed(self, sender: Endpoint, receiver: Endpoint, command: Command | None, sent_ns: int) -> None:
        """Lose a frame for a closed end; a kernel that has power answers it with RST."""
        if command is None:
            return
        ip = receiver.process.ip
        detail = "receiver has closed" if ip in self.powered else "receiver has no power"
        self.recorder.frame("lost", sender, command, sent_ns, detail)
        if ip in self.powered and not sender.closed:
            fault_id, latency_ns = receiver.link.verdict(may_be_lost=False)
            if not fault_id:
                self.hub.post(receiver, None, self.timeline.now_ns, latency_ns)

    def _change_rules(self, rules: tuple[LinkRule, ...]) -> None:
        self._rules = rules
        for (src, dst), link in self._links.items():
            link.apply(tuple(r for r in rules if r.covers(src, dst)))
