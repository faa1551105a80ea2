"""The thread pools of the gRPC port of a proxy: calls take time, wait their turn, and are refused when too many wait.

Mirrors:
    `GrpcMessagingApplication#addExecutor` and its executors.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TypeVar

import trio

from nodes.config.request_pools import ProxyPool, call_pool
from nodes.config.requests import ProxyRequestConfig
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2.enums import Code
from nodes.proxy.tables.errors import CallError
from nodes.rpc.busy_beliefs import BusyBeliefs, BusyReason
from nodes.rpc.thread_pool import Admission, ThreadPool
from nodes.units import NS_PER_MS

_WAITING = (ProxyPool.ROUTE, ProxyPool.CLIENT_MANAGER, ProxyPool.TRANSACTION)
"""Pools whose threads wait themselves for what a call asks nameservers and brokers; the others have callbacks."""
_Answer = TypeVar("_Answer")


class CallPools:
    """The thread pools for calls of gRPC; without `processingTimes` there are none, and no call waits.

    A thread is busy with a call for a processing time, and the call is handled at the end of it. In RocketMQ the
    threads of producers and consumers also wait while a route is loaded for the first time; here they do not.

    Emits:
        BUSY while calls wait for long, or are refused.
    """

    def __init__(self, host: Host, config: ProxyRequestConfig) -> None:
        self._host = host
        self._times = config.times
        self._is_off = not config.processing_times
        self._draw = host.rng("processingTimes").random
        self._pools = {name: ThreadPool[trio.Event](size) for name, size in config.call_pool_sizes().items()}
        self._beliefs = BusyBeliefs(host, self._head_wait_ms)

    async def run(self, code: RequestCode, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Make a call when a thread is free, and its time is over; returns its answer.

        Raises:
            CallError: too many calls wait for a thread of the pool; or as `call`.
        """
        if self._is_off:
            return await call()
        pool = call_pool(code)
        assert pool is not None
        await self._turn(pool)
        try:
            await self._host.sleep_ms(self._times.of(code, pool).draw_ns(self._draw) / NS_PER_MS)
            if pool in _WAITING:
                return await call()
        finally:
            self._leave(pool)
        return await call()

    async def _turn(self, name: ProxyPool) -> None:
        has_turn = trio.Event()
        match self._pools[name].submit(has_turn, self._host.clock.now_ms()):
            case Admission.QUEUED:
                await has_turn.wait()
            case Admission.REJECTED:
                self._beliefs.on_refused(name, BusyReason.OVERLOAD)
                raise CallError(Code.TOO_MANY_REQUESTS, "flow limit")

    def _leave(self, name: ProxyPool) -> None:
        following = self._pools[name].finish()
        if following is not None:
            since_ms, has_turn = following
            self._beliefs.on_begun(name, self._host.clock.now_ms() - since_ms)
            has_turn.set()

    def _head_wait_ms(self, name: StrEnum) -> tuple[int, int]:
        pool = self._pools[ProxyPool(name)]
        return pool.waiting, pool.head_wait_ms(self._host.clock.now_ms())
