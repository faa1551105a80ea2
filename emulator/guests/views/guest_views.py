"""All guests: their clients, the client of each connection, and the end of clients."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from emulator.guests.client_names import ClientNames
from emulator.guests.views.client import GuestClient
from emulator.guests.views.connection import WatchedConnection
from emulator.network.endpoint import Listener
from emulator.network.fabric import Fabric
from emulator.spec.model.scenario import GUEST
from emulator.trace.recorder import NodeIdentity
from nodes.beliefs import Event, Lifecycle, LifecycleEvent
from nodes.cause import NO_CAUSE, cause
from nodes.protocol.model import TopicRouteData
from nodes.units import NS_PER_MS

SCAN_EVERY_MS = 1_000
SETTLE_MS = 200
"""Delay after the end of a connection; by then all connections of a process that died have ended."""
TOGETHER_MS = 1_000
"""Connections that a guest closes within this time count as closed together, as by a process that ends."""
BACK_MS = 8_000
"""A live client that has closed its connections connects again within this time: 3 s for a pull, 5 s for a commit."""
HEARTBEAT_MS = 30_000 + 5_000
"""A live client whose connections a node has closed connects again within this time, with a heartbeat."""
UNSUPPORTED_REQUESTS_MAX = 100
"""Most different requests of one guest that are not emulated and said; a program can invent codes without end."""
LEFT = "it said farewell and closed its connections"
LOST = "its connections have ended, and it did not say farewell"


@attrs.define(eq=False)
class _ClientState:
    """A client and its connections."""

    client: GuestClient
    program: str
    connections: dict[WatchedConnection, None] = attrs.Factory(dict)
    nodes: dict[str, None] = attrs.Factory(dict)
    """All nodes to which it has been connected."""
    alone_ms: int = 0
    """End of its last connection."""
    alone_by_node: bool = False


@attrs.define(eq=False)
class _Program:
    """The connections of one guest."""

    connections: dict[WatchedConnection, None] = attrs.Factory(dict)
    closed_ms: list[int] = attrs.Factory(list)
    """Times of the latest connections that it closed itself."""
    unsupported_requests: dict[object, None] = attrs.Factory(dict)
    """What it has asked for that is not emulated."""


class _FirstClients:
    """Whose a connection to a nameserver is: the first client of its groups, else the first of all.

    It is made again for each question: heartbeats change the groups of clients.

    Args:
        clients: of the guest.
    """

    def __init__(self, clients: Sequence[_ClientState]) -> None:
        self._clients = clients
        self._places: dict[str, int] = {}
        """Mapping group -> place of its first client."""
        for place, state in enumerate(clients):
            for group in state.client.groups:
                self._places.setdefault(group, place)

    def of(self, connection: WatchedConnection) -> _ClientState | None:
        """The client of a connection to a nameserver; None: there is no client yet."""
        places = [self._places[group] for group in connection.retry_groups if group in self._places]
        return self._clients[min(places, default=0)] if self._clients else None


class GuestViews:
    """Watches the connections of all guests, and keeps the beliefs and queues of their clients.

    A heartbeat introduces a client; without heartbeats a program is a member of no group and has no views. No frame
    names the client of a connection to a nameserver: it is the guest's only client, else the first one of a group
    whose retry topic the connection requests, else the first one.

    Args:
        fabric: that guests join.
        broker_names: mapping node -> brokerName.
        names: mapping address or client id -> node; grows with the clients.
    """

    def __init__(self, fabric: Fabric, broker_names: dict[str, str], names: dict[str, str]) -> None:
        self._fabric = fabric
        self._broker_names = broker_names
        self._names = names
        self._client_names = ClientNames()
        self._programs: dict[str, _Program] = {}
        self._clients: dict[tuple[str, str], _ClientState] = {}
        self._scans = False

    @property
    def now_ms(self) -> int:
        """Milliseconds since the run began."""
        return self._fabric.timeline.now_ns // NS_PER_MS

    def watch(self, program: str, listener: Listener) -> WatchedConnection:
        """Watch a connection of a guest to a node; a `WatchGuest`."""
        node = listener.process.node
        at = next((f"{ip}:{port}" for (ip, port), other in self._fabric.listeners.items() if other is listener), "")
        connection = WatchedConnection(self, program, node, at, self._broker_names.get(node, ""))
        self._programs.setdefault(program, _Program()).connections[connection] = None
        return connection

    # --- clients ------------------------------------------------------------------

    def bind_to(self, connection: WatchedConnection, client_id: str, *, is_new: bool = False) -> None:
        """Bind a connection to the client that it names.

        Args:
            connection: to bind.
            client_id: that a request of the connection names.
            is_new: whether an unknown client is created.
        """
        if connection.client is not None and connection.client.client_id == client_id:
            return
        state = self._named(connection.program, client_id, is_new=is_new)
        if state is not None:
            self._bind(connection, state)

    def join(self, connection: WatchedConnection, client_id: str, *, is_new: bool) -> GuestClient | None:
        """Add the client that a call names to those of a connection.

        Args:
            connection: over which the client called.
            client_id: of the call.
            is_new: whether an unknown client is created.

        Returns:
            The client; None: it is unknown.
        """
        known = connection.callers.get(client_id)
        if known is not None and self._living(connection, known) is not None:
            return known
        state = self._named(connection.program, client_id, is_new=is_new and bool(client_id))
        if state is None:
            return None
        connection.callers[client_id] = state.client
        self._connect(connection, state)
        return state.client

    def guess_client(self, connection: WatchedConnection, group: str) -> None:
        """Bind a connection without a client, if only one client can have opened it."""
        fitting = [
            state
            for state in self._of(connection.program)
            if group in state.client.groups and all(item.node != connection.node for item in state.connections)
        ]
        if len(fitting) == 1:
            self._bind(connection, fitting[0])

    def settle_routes(self, program: str) -> None:
        """Pass received routes to their clients, as soon as these are known."""
        waiting = [connection for connection in self._programs[program].connections if connection.unsettled]
        if not waiting:
            return
        first = _FirstClients(self._of(program))
        for connection in waiting:
            state = first.of(connection)
            if state is not None:
                for topic in connection.unsettled:
                    reported = connection.routes[topic]
                    state.client.on_route(topic, reported.route, reported.source, reported.cause)
                connection.unsettled.clear()

    def unsupported_requests(self, program: str, value: object, reported: str) -> None:
        """Record that a guest has asked for what is not emulated, the first time that it does."""
        requested = self._programs[program].unsupported_requests
        if value not in requested and len(requested) < UNSUPPORTED_REQUESTS_MAX:
            requested[value] = None
            self._record(NodeIdentity(program, GUEST, 0), Lifecycle(LifecycleEvent.NOT_EMULATED, reported), NO_CAUSE)

    def _named(self, program: str, client_id: str, *, is_new: bool) -> _ClientState | None:
        """The client of a guest with this id; an unknown one is created if it is new, else None."""
        key = program, client_id
        if key not in self._clients and is_new:
            self._clients[key] = self._newcomer(*key)
        return self._clients.get(key)

    def _newcomer(self, program: str, client_id: str) -> _ClientState:
        name = self._client_names.take(program, client_id)
        self._names[client_id] = name.node
        client = GuestClient(name, client_id, self._record, lambda topic: self._route_of(state, topic))
        state = _ClientState(client, program)
        if not self._scans:
            self._scans = True
            self._later(SCAN_EVERY_MS, self._scan)
        return state

    def _bind(self, connection: WatchedConnection, state: _ClientState) -> None:
        before = self._state_of(connection)
        if before is not None:
            before.connections.pop(connection, None)
        connection.client = state.client
        self._connect(connection, state)

    def _connect(self, connection: WatchedConnection, state: _ClientState) -> None:
        state.connections[connection] = None
        state.nodes[connection.node] = None

    def _of(self, program: str) -> list[_ClientState]:
        return [state for state in self._clients.values() if state.program == program]

    def _route_of(self, state: _ClientState, topic: str) -> TopicRouteData | None:
        """The newest route that the client received, else that any client of its guest received."""
        lines = [connection for connection in self._programs[state.program].connections if topic in connection.routes]
        first = _FirstClients(self._of(state.program))
        own = [item for item in lines if first.of(item) is state]
        newest = max(own or lines, key=lambda item: item.routes[topic].cause, default=None)
        return None if newest is None else newest.routes[topic].route

    # --- ends -----------------------------------------------------------------------

    def ended(self, connection: WatchedConnection, *, by_node: bool) -> None:
        """A connection has ended.

        Nothing is recorded yet: all connections end when the emulation ends, and that is not the end of a client.
        """
        program = self._programs[connection.program]
        program.connections.pop(connection, None)
        now_ms = self.now_ms
        if not by_node:
            del program.closed_ms[: bisect_left(program.closed_ms, now_ms - TOGETHER_MS)]
            program.closed_ms.append(now_ms)
        callers = [self._living(connection, caller) for caller in connection.callers.values()]
        for state in callers or [self._state_of(connection)]:
            if state is None or connection not in state.connections:
                continue
            del state.connections[connection]
            if not state.connections:
                state.alone_ms, state.alone_by_node = now_ms, by_node
                self._later(SETTLE_MS, partial(self._settle, state))

    def _state_of(self, connection: WatchedConnection) -> _ClientState | None:
        """The client of a connection, if it is known and lives."""
        return None if connection.client is None else self._living(connection, connection.client)

    def _living(self, connection: WatchedConnection, client: GuestClient) -> _ClientState | None:
        """A client of a connection, if it lives."""
        state = self._clients.get((connection.program, client.client_id))
        return state if state is not None and state.client is client else None

    def _settle(self, state: _ClientState) -> None:
        if state.connections or self._clients.get((state.program, state.client.client_id)) is not state:
            return
        closed_ms = self._programs[state.program].closed_ms
        from_ms, until_ms = state.alone_ms - TOGETHER_MS, state.alone_ms + TOGETHER_MS
        together = bisect_right(closed_ms, until_ms) - bisect_left(closed_ms, from_ms)
        if state.client.has_left:
            self._end(state, LifecycleEvent.STOPPED, LEFT)
        elif not state.alone_by_node and together > 1:
            self._end(state, LifecycleEvent.KILLED, LOST)

    def _scan(self) -> None:
        """Once a second, drop silent queues and end silent clients."""
        reachable = dict.fromkeys(
            listener.process.node for listener in self._fabric.listeners.values() if not listener.process.suspended
        )
        there = dict.fromkeys(name for node, name in self._broker_names.items() if node in reachable)
        gone = [name for name in dict.fromkeys(self._broker_names.values()) if name not in there]
        for state in list(self._clients.values()):
            client = state.client
            for broker_name in gone:
                client.holds.suppress(broker_name, self.now_ms)
            for queue in client.holds.silent(self.now_ms, client.last_request_ms):
                client.give_up(queue)
            if not state.connections and self._is_over(state, reachable):
                self._end(state, LifecycleEvent.KILLED, LOST)
        self._later(SCAN_EVERY_MS, self._scan)

    def _is_over(self, state: _ClientState, reachable: dict[str, None]) -> bool:
        if not any(node in reachable for node in state.nodes):
            state.alone_ms = self.now_ms
            return False
        patience_ms = HEARTBEAT_MS if state.alone_by_node else BACK_MS
        return self.now_ms - state.alone_ms >= patience_ms

    def _end(self, state: _ClientState, event: LifecycleEvent, detail: str) -> None:
        state.client.end(event, detail)
        del self._clients[state.program, state.client.client_id]
        self._client_names.free(state.client.node)

    def _later(self, delay_ms: int, act: Callable[[], None]) -> None:
        self._fabric.timeline.call_at(self._fabric.timeline.now_ns + delay_ms * NS_PER_MS, act)

    def _record(self, source: NodeIdentity, event: Event, cause_seq: int) -> None:
        before = cause.set(cause_seq)
        try:
            self._fabric.recorder.event(source, event)
        finally:
            cause.reset(before)
