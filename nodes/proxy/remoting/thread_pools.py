"""The thread pools of the remoting port of a proxy."""

from enum import StrEnum

from nodes.config.request_pools import ProxyPool, remoting_pool
from nodes.config.requests import ProxyRequestConfig
from nodes.host import Host
from nodes.rpc.thread_pools import QueueScan, ThreadPools

_SCAN_PERIOD_MS = 10_000


class RemotingThreadPools(ThreadPools):
    """Requests that wait for too long are refused, but only every 10 s, so that most are handled before.

    A thread hands a request on to a broker and is free; only one that has to load a route waits for it. A thread also
    waits while a user is asked for, which is left out here.

    Mirrors:
        The executors of `org.apache.rocketmq.proxy.remoting.RemotingProtocolServer`, and `#cleanExpireRequest`.

    Emits:
        BUSY while requests wait for long, or are refused.
    """

    def __init__(self, host: Host, config: ProxyRequestConfig) -> None:
        sizes = config.remoting_pool_sizes().items()
        super().__init__(host, sizes, lambda: config.times, remoting_pool, stream="remoting processingTimes")
        self._limits_ms = config.remoting_wait_limits_ms()
        self._scan = QueueScan(host, self._clean, _SCAN_PERIOD_MS, _SCAN_PERIOD_MS, "RemotingServerScheduler")

    def _on_queued(self) -> None:
        self._scan.watch()

    def _is_busy_until_answered(self, name: StrEnum) -> bool:
        return name is ProxyPool.REMOTING_TOPIC_ROUTE

    def _clean(self) -> bool:
        self._expire_late(self._limits_ms)
        return self._has_waiting()
