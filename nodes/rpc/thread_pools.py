"""The thread pools of a server: requests take time, wait their turn, and are refused when too many wait."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import TypeVar

import attrs

from nodes.cause import cause
from nodes.config.processing_times import ProcessingTimes
from nodes.config.request_pools import PoolSize
from nodes.host import Channel, Host
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command
from nodes.rpc.busy_beliefs import BusyBeliefs, BusyReason
from nodes.rpc.server import Process
from nodes.rpc.thread_pool import Admission, ThreadPool
from nodes.units import NS_PER_MS

_Name = TypeVar("_Name", bound=StrEnum)


@attrs.define(eq=False)
class RequestTask:
    """A request on its way through a pool.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.RequestTask`.
    """

    pool: StrEnum
    channel: Channel
    request: Command
    process: Process
    cause: int
    """Of the request; another request may be what gives it its turn."""


class ThreadPools:
    """The thread pools of a server.

    A thread is busy with a request for a processing time, and the request is handled at the end of it. A request whose
    handler waits occupies its thread until it is answered, except in pools of which a server says otherwise.

    Args:
        host: time, and chance.
        sizes: each pool with its size.
        times: the processing times, read for each request.
        pool_of: returns the pool of a request code; None: such a request waits for no thread.
        stream: the random stream that times are drawn from.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyRemotingAbstract#processRequestCommand`.

    Emits:
        BUSY while requests wait for long, or are refused.
    """

    def __init__(
        self,
        host: Host,
        sizes: Iterable[tuple[StrEnum, PoolSize]],
        times: Callable[[], ProcessingTimes],
        pool_of: Callable[[int], StrEnum | None],
        *,
        stream: str = "processingTimes",
    ) -> None:
        self._host = host
        self._times = times
        self._pool_of = pool_of
        self._draw = host.rng(stream).random
        self._pools = {name: ThreadPool[RequestTask](size) for name, size in sizes}
        self._beliefs = BusyBeliefs(host, self.head_wait_ms)

    def submit(self, channel: Channel, request: Command, process: Process) -> None:
        """Give a request that has arrived to its pool, or refuse it."""
        pool = self._pool_of(request.code)
        if pool is None:
            process(channel, request, _nothing)
        elif (reason := self._rejection(request)) is not None:
            self._refuse(pool, reason, channel, request)
        elif not self.wake(channel, request, process):
            self._refuse(pool, BusyReason.OVERLOAD, channel, request)

    def wake(self, channel: Channel, request: Command, process: Process) -> bool:
        """Give a request to its pool; returns whether there was a thread or a place for it."""
        pool = self._pool_of(request.code)
        assert pool is not None
        task = RequestTask(pool, channel, request, process, cause.get())
        match self._pools[pool].submit(task, self._host.clock.now_ms()):
            case Admission.STARTED:
                self._begin(task)
            case Admission.QUEUED:
                self._on_queued()
            case Admission.REJECTED:
                return False
        return True

    def head_wait_ms(self, name: StrEnum) -> tuple[int, int]:
        """Requests of a pool that wait, and for how long the first one has."""
        pool = self._pools[name]
        return pool.waiting, pool.head_wait_ms(self._host.clock.now_ms())

    def _expire(self, name: StrEnum, reason: BusyReason, now_ms: int, limit_ms: int) -> None:
        """Refuse the requests of a pool that have waited for `limit_ms`."""

        def expire(task: RequestTask, waited_ms: int, waiting: int) -> None:
            self._beliefs.on_refused(name, reason, waited_ms)
            cause.set(task.cause)
            # RocketMQ answers oneway requests, too, and clients ignore these answers.
            task.channel.send(
                task.request.answer(
                    ResponseCode.SYSTEM_BUSY,
                    f"[{reason}]broker busy, start flow control for a while, period in queue: {waited_ms}ms, "
                    f"size of queue: {waiting}",
                )
            )

        self._pools[name].remove_expired(now_ms, limit_ms, expire)

    def _expire_late(self, limits_ms: Mapping[_Name, int]) -> None:
        """Refuse what has waited for as long as the limit of its pool, or longer."""
        now_ms = self._host.clock.now_ms()
        for name, limit_ms in limits_ms.items():
            self._expire(name, BusyReason.TIMEOUT, now_ms, limit_ms)

    def _has_waiting(self) -> bool:
        """Whether requests wait in any pool."""
        return any(pool.waiting for pool in self._pools.values())

    # What some servers do otherwise

    def _rejection(self, request: Command) -> BusyReason | None:  # noqa: ARG002
        """Why a request is refused before it gets to its pool; None: it is not."""
        return None

    def _on_queued(self) -> None:
        """A request waits."""

    def _is_busy_until_answered(self, name: StrEnum) -> bool:  # noqa: ARG002
        """Whether a thread of a pool waits with a request that is answered later."""
        return True

    def _after_processing(self, task: RequestTask) -> None:
        """The processing time of a request is over."""
        self._run(task)

    # Threads

    def _begin(self, task: RequestTask) -> None:
        """A thread is busy with a request from now on."""
        time_ns = self._times().of(task.request.code, task.pool).draw_ns(self._draw)
        self._after(time_ns / NS_PER_MS, partial(self._after_processing, task))

    def _after(self, delay_ms: float, call: Callable[[], None]) -> None:
        if delay_ms:
            self._host.call_later_ms(delay_ms, call)
        else:
            call()

    def _run(self, task: RequestTask) -> None:
        cause.set(task.cause)
        finish = partial(self._finish, task.pool)
        if self._is_busy_until_answered(task.pool):
            task.process(task.channel, task.request, finish)
        else:
            task.process(task.channel, task.request, _nothing)
            finish()

    def _finish(self, name: StrEnum) -> None:
        """A thread is free; what it begins next runs in a timer, for a long queue would else nest as deeply."""
        begun = self._pools[name].finish()
        if begun is None:
            return
        since_ms, task = begun
        self._beliefs.on_begun(name, self._host.clock.now_ms() - since_ms)
        self._host.call_later_ms(0, partial(self._begin, task))

    def _refuse(self, name: StrEnum, reason: BusyReason, channel: Channel, request: Command) -> None:
        self._beliefs.on_refused(name, reason)
        if not request.is_oneway:
            remark = f"[{reason}]system busy, start flow control for a while"
            channel.send(request.answer(ResponseCode.SYSTEM_BUSY, remark))


def _nothing() -> None:
    """No thread is free by it."""


class QueueScan:
    """Looks at queues again and again as long as requests wait.

    A look at empty queues changes nothing, so it is left out; the others are at the instants of RocketMQ's task.

    Args:
        clean: looks at the queues; returns whether requests still wait.
        begins_ms: from now until the first look.
        period_ms: from a look to the next.
        thread: the name of RocketMQ's thread.
    """

    def __init__(self, host: Host, clean: Callable[[], bool], begins_ms: int, period_ms: int, thread: str) -> None:
        self._host = host
        self._clean = clean
        self._begins_ns = host.clock.monotonic_ns() + begins_ms * NS_PER_MS
        self._period_ns = period_ms * NS_PER_MS
        self._thread = thread
        self._is_watching = False

    def watch(self) -> None:
        """Requests wait."""
        if not self._is_watching:
            self._is_watching = True
            self._schedule()

    def _schedule(self) -> None:
        early_ns = self._begins_ns - self._host.clock.monotonic_ns()
        delay_ns = early_ns if early_ns > 0 else early_ns % self._period_ns or self._period_ns
        self._host.call_later_ms(delay_ns / NS_PER_MS, self._scan)

    def _scan(self) -> None:
        self._host.begin_cause(self._thread)
        self._is_watching = self._clean()
        if self._is_watching:
            self._schedule()
