"""Turns of guests' connections: what they ask is handled piece by piece, and each gets its turn.

A connection may make a thousand calls at once, and a guest has many connections. Real proxies have threads of their own
for each connection and for each kind of call. Here all share one thread: a few pieces are handled before everything
else goes on, one of each peer address in turn, and of each of its connections in turn.

Pieces that take long, or may do so, are handled one at a time, whatever the connection speaks, and together leave half
of the time to all others. They are not charged to their address: all guests of one machine have the same, and those of
its connections that take little must not wait for what the others owe.
"""

from collections.abc import Awaitable, Callable, Hashable
from time import perf_counter, thread_time

import trio

from emulator.guests.budget import CpuAccount
from nodes.parking import park_among, unpark
from nodes.units import NS_PER_S

_BATCH_S = 0.01
"""CPU time that a batch should take."""
_AT_ONCE_MIN, _AT_ONCE_MAX = 4, 64
"""Pieces of a batch: long ones have turns of their own."""
_OLD_SHARE = 0.8
"""Weight of what earlier pieces cost, where the latest ones cost less."""


_HEAVY_SHARE = 0.5
"""Share of a core for all heavy connections together, while others need the time."""
_OWED_S_MAX = 0.01
"""A debt that is too small to wait for."""


class _WaitingPieces:
    """Tasks that wait for their turn: of each peer address, and of each of its connections."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[Hashable, dict[trio.lowlevel.Task, None]]] = {}
        """Mapping peer address -> connection -> tasks; those whose turn is next are first."""

    def __bool__(self) -> bool:
        return bool(self._tasks)

    async def wait(self, address: str, connection: Hashable) -> None:
        """Wait until the task is woken, which `pop` has taken out."""
        await park_among(self._tasks.setdefault(address, {}).setdefault(connection, {}))

    def pop(self) -> trio.lowlevel.Task | None:
        """The task whose turn it is; its connection and its address go to the end. None: it has gone."""
        address = next(iter(self._tasks))
        connections = self._tasks.pop(address)
        connection = next(iter(connections))
        tasks = connections.pop(connection)
        task = next(iter(tasks), None)
        if task is not None:
            del tasks[task]
        if tasks:
            connections[connection] = tasks
        if connections:
            self._tasks[address] = connections
        return task


class GuestTurns:
    """Lets pieces of work begin, a batch in each pass of trio."""

    def __init__(self) -> None:
        self._waiting = _WaitingPieces()
        self._begun = 0
        """Pieces of this batch."""
        self._cost_s = _BATCH_S / 8
        """CPU time of a piece, as far as is known."""
        self._charged_s = 0.0
        self._began_cpu_s = 0.0
        """CPU time of the thread when the batch began."""

    async def begin(self, address: str, connection: Hashable) -> None:
        """Wait until it is the turn of a connection.

        Args:
            address: of the peer, without its port: its connections share its turns.
        """
        if self._waiting or self._begun >= self._at_once():
            await self._waiting.wait(address, connection)
        else:
            self._begun += 1
            if self._begun == 1:
                self._look_again()

    def charge(self, took_s: float) -> None:
        """Note CPU time that pieces took."""
        self._charged_s += took_s

    def _at_once(self) -> int:
        return max(_AT_ONCE_MIN, min(_AT_ONCE_MAX, int(_BATCH_S / self._cost_s)))

    def _next_batch(self) -> None:
        # What nodes do about earlier pieces, in tasks of their own, is charged to nobody, but takes the time of a pass.
        took_s = max(self._charged_s, thread_time() - self._began_cpu_s)
        cost_s, self._charged_s = took_s / max(1, self._begun), 0.0
        self._cost_s = max(cost_s, self._cost_s * _OLD_SHARE + cost_s * (1 - _OLD_SHARE))
        self._begun = 0
        while self._waiting and self._begun < self._at_once():
            task = self._waiting.pop()
            if task is not None:
                self._begun += 1
                unpark(task)
        if self._begun:
            self._look_again()

    def _look_again(self) -> None:
        """Go on in the next pass: there may be several turns of the hub before it."""
        self._began_cpu_s = thread_time()
        trio.lowlevel.current_trio_token().run_sync_soon(self._next_batch)


class HeavyTurns:
    """Lets pieces of work of heavy connections begin, one at a time."""

    def __init__(self) -> None:
        self._waiting = _WaitingPieces()
        self._is_taken = False
        self.cpu = CpuAccount(_HEAVY_SHARE)
        """Time that heavy connections took."""

    async def begin(self, address: str, connection: Hashable, until_idle: Callable[[int], Awaitable[bool]]) -> None:
        """Wait until it is the turn of a connection, and until the time that the earlier pieces took is given back.

        Args:
            address: of the peer, without its port.
            until_idle: waits at most so many nanoseconds until no other task can run; returns whether none could.
        """
        if self._is_taken:
            await self._waiting.wait(address, connection)
        self._is_taken = True
        try:
            while self.cpu.owes_more_than(_OWED_S_MAX):
                if await until_idle(int(self.cpu.owed_s(perf_counter()) * NS_PER_S)):
                    self.cpu.forgive()
        except BaseException:
            self._hand_over()
            raise
        trio.lowlevel.current_trio_token().run_sync_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Wake who is next; the piece before has been handled."""
        self._is_taken = False
        while self._waiting and not self._is_taken:
            task = self._waiting.pop()
            if task is not None:
                self._is_taken = True
                unpark(task)
