"""All programs outside at once: which clients they have, which connection is whose, and when a client is over."""

from collections.abc import Callable
from functools import partial

import attrs

from emulator.guest_views.client import GuestClient
from emulator.guest_views.connection import WatchedConnection
from emulator.machine.world import World
from emulator.network.endpoint import Listener
from emulator.state.client_names import ClientNames
from emulator.trace.recorder import NodeIdentity
from nodes.beliefs import Event, LifecycleEvent
from nodes.cause import cause
from nodes.protocol.model import TopicRouteData

LOOK_EVERY_MS = 1_000
SETTLE_MS = 200
"""After the end of a connection: until then all those of a process that died have ended."""
TOGETHER_MS = 1_000
"""A client closes connections one by one, where answers do not come; a process that ends, all at once."""
BACK_MS = 8_000
"""Who lives and has closed its connections dials again within this: 3 s after a failed pull, and 5 s for a commit."""
HEARTBEAT_MS = 30_000 + 5_000
"""Whose connections were closed by nodes dials again within this: each broker gets a heartbeat every 30 s."""
LEFT = "it said farewell and closed its connections"
LOST = "its connections have ended, and it did not say farewell"
_NS_PER_MS = 1_000_000


@attrs.define(eq=False)
class _Lasting:
    """A client and its connections."""

    client: GuestClient
    program: str
    connections: dict[WatchedConnection, None] = attrs.Factory(dict)
    nodes: dict[str, None] = attrs.Factory(dict)
    """Those that it was ever connected to."""
    alone_ms: int = 0
    """When the last of its connections ended."""
    alone_by_node: bool = False


@attrs.define(eq=False)
class _Program:
    """A program outside, as far as its links are one."""

    connections: dict[WatchedConnection, None] = attrs.Factory(dict)
    closed_ms: list[int] = attrs.Factory(list)
    """When it closed connections itself, of late."""


class GuestViews:
    """Watches the connections of all guests, and keeps what their clients believe and hold.

    A client is who says so in heartbeats: who sends none is a member of nothing, and has no views. To which client a
    connection to a nameserver belongs, nobody says: it is the program's only client, else the first one of a group
    whose retry topic it asks for, else the first.

    Args:
        broker_names: node -> brokerName.
        names: address or client id -> node; grows with the clients.
    """

    def __init__(self, world: World, broker_names: dict[str, str], names: dict[str, str]) -> None:
        self._world = world
        self._broker_names = broker_names
        self._names = names
        self._client_names = ClientNames()
        self._programs: dict[str, _Program] = {}
        self._clients: dict[tuple[str, str], _Lasting] = {}
        self._is_looking = False

    @property
    def now_ms(self) -> int:
        """Milliseconds since the run began."""
        return self._world.timeline.now_ns // _NS_PER_MS

    def watch(self, program: str, listener: Listener) -> WatchedConnection:
        """A program has dialled a node; a `WatchGuest`."""
        fabric, node = self._world.fabric, listener.process.node
        at = next((f"{ip}:{port}" for (ip, port), other in fabric.listeners.items() if other is listener), "")
        connection = WatchedConnection(self, program, node, at, self._broker_names.get(node, ""))
        self._programs.setdefault(program, _Program()).connections[connection] = None
        return connection

    # --- who speaks ---------------------------------------------------------------

    def introduce(self, connection: WatchedConnection, client_id: str, *, is_new: bool = False) -> None:
        """A connection says whose it is.

        Args:
            is_new: it may be a client that was never heard of.
        """
        key = connection.program, client_id
        if connection.client is not None and connection.client.client_id == client_id:
            return
        if key not in self._clients:
            if not is_new:
                return
            self._clients[key] = self._newcomer(*key)
        self._bind(connection, self._clients[key])

    def guess_speaker(self, connection: WatchedConnection, group: str) -> None:
        """Bind a connection that has not said whose it is, if only one client can have dialled there."""
        fitting = [
            lasting
            for lasting in self._of(connection.program)
            if group in lasting.client.groups and all(it.node != connection.node for it in lasting.connections)
        ]
        if len(fitting) == 1:
            self._bind(connection, fitting[0])

    def settle_routes(self, program: str) -> None:
        """Have clients believe what nameservers told, as soon as it is known who they are."""
        for connection in self._programs[program].connections:
            lasting = self._asker(connection) if connection.unsettled else None
            if lasting is not None:
                for topic in connection.unsettled:
                    told = connection.routes[topic]
                    lasting.client.told_route(topic, told.route, told.source, told.cause)
                connection.unsettled.clear()

    def _newcomer(self, program: str, client_id: str) -> _Lasting:
        name = self._client_names.take(program, client_id)
        self._names[client_id] = name.node
        client = GuestClient(name, client_id, self._record, lambda topic: self._route_of(lasting, topic))
        lasting = _Lasting(client, program)
        if not self._is_looking:
            self._is_looking = True
            self._later(LOOK_EVERY_MS, self._look)
        return lasting

    def _bind(self, connection: WatchedConnection, lasting: _Lasting) -> None:
        for other in self._of(connection.program):
            other.connections.pop(connection, None)
        connection.client = lasting.client
        lasting.connections[connection] = None
        lasting.nodes[connection.node] = None

    def _of(self, program: str) -> list[_Lasting]:
        return [lasting for lasting in self._clients.values() if lasting.program == program]

    def _asker(self, connection: WatchedConnection) -> _Lasting | None:
        """To whom a connection to a nameserver belongs."""
        there = self._of(connection.program)
        in_group = [it for it in there if any(group in it.client.groups for group in connection.retry_groups)]
        return next(iter(in_group or there), None)

    def _route_of(self, lasting: _Lasting, topic: str) -> TopicRouteData | None:
        """The newest that it was told, else that anybody of its program was told."""
        told = [it for it in self._programs[lasting.program].connections if topic in it.routes]
        own = [it for it in told if self._asker(it) is lasting]
        newest = max(own or told, key=lambda it: it.routes[topic].cause, default=None)
        return None if newest is None else newest.routes[topic].route

    # --- who is gone ----------------------------------------------------------------

    def ended(self, connection: WatchedConnection, *, by_node: bool) -> None:
        """A connection is over.

        Nothing is written now: when the emulation itself ends, all connections do, and that says nothing of anybody.
        """
        program = self._programs[connection.program]
        program.connections.pop(connection, None)
        if not by_node:
            program.closed_ms = [at for at in program.closed_ms if self.now_ms - at <= TOGETHER_MS] + [self.now_ms]
        for lasting in self._of(connection.program):
            if connection in lasting.connections:
                del lasting.connections[connection]
                if not lasting.connections:
                    lasting.alone_ms, lasting.alone_by_node = self.now_ms, by_node
                    self._later(SETTLE_MS, partial(self._settle, lasting))

    def _settle(self, lasting: _Lasting) -> None:
        if lasting.connections or self._clients.get((lasting.program, lasting.client.client_id)) is not lasting:
            return
        closed_ms = self._programs[lasting.program].closed_ms
        together = sum(abs(at - lasting.alone_ms) <= TOGETHER_MS for at in closed_ms)
        if lasting.client.has_left:
            self._end(lasting, LifecycleEvent.STOPPED, LEFT)
        elif not lasting.alone_by_node and together > 1:
            self._end(lasting, LifecycleEvent.KILLED, LOST)

    def _look(self) -> None:
        """Find out, once a second, who has fallen silent."""
        reachable = dict.fromkeys(
            listener.process.node
            for listener in self._world.fabric.listeners.values()
            if not listener.process.suspended
        )
        there = dict.fromkeys(name for node, name in self._broker_names.items() if node in reachable)
        gone = [name for name in dict.fromkeys(self._broker_names.values()) if name not in there]
        for lasting in list(self._clients.values()):
            client = lasting.client
            for broker_name in gone:
                client.holds.excuse(broker_name, self.now_ms)
            for queue in client.holds.silent(self.now_ms, client.said_ms):
                client.give_up(queue)
            if not lasting.connections and self._is_over(lasting, reachable):
                self._end(lasting, LifecycleEvent.KILLED, LOST)
        self._later(LOOK_EVERY_MS, self._look)

    def _is_over(self, lasting: _Lasting, reachable: dict[str, None]) -> bool:
        if not any(node in reachable for node in lasting.nodes):
            lasting.alone_ms = self.now_ms
            return False
        patience_ms = HEARTBEAT_MS if lasting.alone_by_node else BACK_MS
        return self.now_ms - lasting.alone_ms >= patience_ms

    def _end(self, lasting: _Lasting, event: LifecycleEvent, detail: str) -> None:
        lasting.client.end(event, detail)
        del self._clients[lasting.program, lasting.client.client_id]
        self._client_names.free(lasting.client.node)

    def _later(self, delay_ms: int, act: Callable[[], None]) -> None:
        self._world.timeline.call_at(self._world.timeline.now_ns + delay_ms * _NS_PER_MS, act)

    def _record(self, source: NodeIdentity, event: Event, led: int) -> None:
        before = cause.set(led)
        try:
            self._world.recorder.event(source, event)
        finally:
            cause.reset(before)
