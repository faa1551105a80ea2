"""Opening a connection: SYN, its repetitions, and the three ways in which it ends."""

from collections.abc import Callable
from typing import Protocol

import outcome
import trio

from emulator.network.endpoint import Endpoint, Peer
from emulator.network.fabric import Fabric
from emulator.network.link import Link
from emulator.time.timeline import Owner
from nodes.cause import cause
from nodes.host import ChannelHandler, ConnectError

_NS_PER_MS = 1_000_000
_SYN_AT_MS = (0, 1_000, 3_000, 7_000)
"""When a kernel sends its SYN and the repetitions."""


class DialingProcess(Peer, Owner, Protocol):
    """A process that opens connections."""

    def next_port(self) -> int:
        """An ephemeral port of its machine."""


class Dial:
    """One attempt of a process to connect to `ip:port`.

    Connecting needs the kernels of both machines only: a suspended process is
    connected to like any other, one without power never answers.
    """

    def __init__(self, fabric: Fabric, process: DialingProcess, address: str, handler: ChannelHandler) -> None:
        self._fabric = fabric
        self._process = process
        self._handler = handler
        self._address = address
        ip, _, port = address.rpartition(":")
        self._target = (ip, int(port))
        self._begun_ns = fabric.timeline.now_ns
        self._task: trio.lowlevel.Task | None = None
        self._answered = False

    async def connect(self, timeout_ms: float) -> Endpoint:
        """The connected end.

        Raises:
            ConnectError: refused, or not answered in time.
        """
        timeline = self._fabric.timeline
        self._task = trio.lowlevel.current_task()
        running_cause = cause.get()
        for at_ms in _SYN_AT_MS:
            if at_ms < timeout_ms:
                timeline.call_at(self._begun_ns + at_ms * _NS_PER_MS, self._syn, None, running_cause)
        deadline_ns = self._begun_ns + int(timeout_ms * _NS_PER_MS)
        give_up = timeline.call_at(deadline_ns, self._give_up, self._process, running_cause)
        self._fabric.hub.wake()

        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._task = None
            return trio.lowlevel.Abort.SUCCEEDED

        try:
            endpoint: Endpoint = await trio.lowlevel.wait_task_rescheduled(abort)
        finally:
            give_up.cancel()
        return endpoint

    def _syn(self) -> None:
        if self._task is None or self._answered:
            return
        target_node = self._fabric.powered.get(self._target[0])
        if target_node is None:
            return
        self._travel(self._fabric.link(self._process.node, target_node), self._syn_arrives, None)

    def _syn_arrives(self) -> None:
        fabric = self._fabric
        target_node = fabric.powered.get(self._target[0])
        if target_node is None or self._answered or fabric.link(self._process.node, target_node).cut_by:
            return
        self._answered = True
        back = fabric.link(target_node, self._process.node)
        listener = fabric.listeners.get(self._target)
        if listener is None:
            self._travel(back, self._refused, self._process)
            return
        connection_id = fabric.next_connection()
        port = self._process.next_port()
        forth = fabric.link(self._process.node, target_node)
        client = Endpoint(fabric, connection_id, self._process, self._handler, self._address, forth)
        server = Endpoint(
            fabric, connection_id, listener.process, listener.handler, f"{self._process.ip}:{port}", back
        )
        client.peer, server.peer = server, client
        fabric.carrier.open(client, server, listener.wire)
        listener.process.endpoints[server] = None
        client.closed = True  # not ours before the answer has arrived
        self._travel(back, lambda: self._connected(client), self._process)

    def _connected(self, client: Endpoint) -> None:
        client.closed = False
        self._process.endpoints[client] = None
        if self._task is None:
            client.close()
            return
        cause.set(self._record("connected", client.id))
        self._wake(outcome.Value(client))

    def _refused(self) -> None:
        self._record("refused")
        self._wake(outcome.Error(ConnectError(f"{self._address} refused the connection")))

    def _give_up(self) -> None:
        self._record("connect_lost")
        self._wake(outcome.Error(ConnectError(f"{self._address} did not answer")))

    def _wake(self, result: outcome.Outcome[Endpoint]) -> None:
        if self._task is not None:
            trio.lowlevel.reschedule(self._task, result)
            self._task = None

    def _travel(self, link: Link, arrive: Callable[[], None], owner: Owner | None) -> None:
        fault_id, latency_ns = link.verdict(may_be_lost=True)
        if not fault_id:
            due_ns = self._fabric.timeline.now_ns + latency_ns
            self._fabric.timeline.call_at(due_ns, arrive, owner, cause.get())

    def _record(self, event: str, connection_id: int = 0) -> int:
        target_node = self._fabric.powered.get(self._target[0], self._address)
        return self._fabric.recorder.connection(
            event, connection_id, self._process.node, target_node, self._begun_ns, cause.get()
        )
