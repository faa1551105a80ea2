"""Turns of connections that speak gRPC: what they ask is handled piece by piece, and each gets its turn.

A connection may make a thousand calls at once, and a guest has many connections. Real proxies have threads of their own
for each connection and for each kind of call. Here all share one thread: a few pieces are handled before everything
else goes on, one of each peer address in turn, and of each of its connections in turn.
"""

from collections.abc import Hashable

import trio

from nodes.parking import park_among, unpark

_BATCH_S = 0.01
"""CPU time that a batch should take."""
_AT_ONCE_MAX = 64
_OLD_SHARE = 0.8
"""Weight of what earlier pieces cost, where the latest ones cost less."""


class GuestTurns:
    """Lets pieces of work begin, a batch in each pass of trio."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[Hashable, dict[trio.lowlevel.Task, None]]] = {}
        """Mapping peer address -> connection -> tasks; those whose turn is next are first."""
        self._begun = 0
        """Pieces of this batch."""
        self._cost_s = _BATCH_S / 8
        """CPU time of a piece, as far as is known."""
        self._charged_s = 0.0

    async def begin(self, address: str, connection: Hashable) -> None:
        """Wait until it is the turn of a connection.

        Args:
            address: of the peer, without its port: its connections share its turns.
        """
        if self._waiting or self._begun >= self._at_once():
            await park_among(self._waiting.setdefault(address, {}).setdefault(connection, {}))
        else:
            self._begun += 1
            if self._begun == 1:
                self._look_again()

    def charge(self, took_s: float) -> None:
        """Note CPU time that pieces took."""
        self._charged_s += took_s

    def _at_once(self) -> int:
        return max(1, min(_AT_ONCE_MAX, int(_BATCH_S / self._cost_s)))

    def _next_batch(self) -> None:
        cost_s, self._charged_s = self._charged_s / max(1, self._begun), 0.0
        self._cost_s = max(cost_s, self._cost_s * _OLD_SHARE + cost_s * (1 - _OLD_SHARE))
        self._begun = 0
        while self._waiting and self._begun < self._at_once():
            task = self._next_task()
            if task is not None:
                self._begun += 1
                unpark(task)
        if self._begun:
            self._look_again()

    def _look_again(self) -> None:
        """Go on in the next pass: there may be several turns of the hub before it."""
        trio.lowlevel.current_trio_token().run_sync_soon(self._next_batch)

    def _next_task(self) -> trio.lowlevel.Task | None:
        """The task whose turn it is; its connection and its address go to the end. None: it has gone."""
        address = next(iter(self._waiting))
        connections = self._waiting.pop(address)
        connection = next(iter(connections))
        tasks = connections.pop(connection)
        task = next(iter(tasks), None)
        if task is not None:
            del tasks[task]
        if tasks:
            connections[connection] = tasks
        if connections:
            self._waiting[address] = connections
        return task
