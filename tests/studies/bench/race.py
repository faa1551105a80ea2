"""Callers that start together, each with its own connection; the watch stops when the last is home."""

import time
from collections.abc import Awaitable, Callable

import attrs
import trio


@attrs.define
class Race:
    """Times laps that several tasks make at once.

    A lap before the start opens each connection, so no connecting is timed.
    """

    callers: int
    _at_start: int = 0
    _home: int = 0
    _ready: trio.Event = attrs.field(factory=trio.Event, init=False)
    _gate: trio.Event = attrs.field(factory=trio.Event, init=False)
    _over: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def run(self, lap: Callable[[], Awaitable[object]], laps: int) -> None:
        """Take part."""
        await lap()
        self._at_start += 1
        if self._at_start == self.callers:
            self._ready.set()
        await self._gate.wait()
        for _ in range(laps):
            await lap()
        self._home += 1
        if self._home == self.callers:
            self._over.set()

    async def duration_s(self) -> float:
        """Start when everybody is ready; returns the wall seconds until all are home."""
        await self._ready.wait()
        begin = time.perf_counter()
        self._gate.set()
        await self._over.wait()
        return time.perf_counter() - begin
