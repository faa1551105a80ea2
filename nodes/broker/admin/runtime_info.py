"""What `GET_BROKER_RUNTIME_INFO` answers: the state of a broker as texts, computed when it is requested.

Mirrors:
    `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#prepareRuntimeInfo`,
    `DefaultMessageStore#getRuntimeInfo`, `StoreStatsService#getRuntimeInfo`.
"""

from collections.abc import Callable, Mapping

from nodes.broker.context import BrokerContext
from nodes.broker.requests.request_executors import RequestExecutors
from nodes.broker.tables.store.broker_stats import DAY_MS, HOUR_MS, MINUTE_MS, StatsName
from nodes.broker.tables.timer.delay_levels import queue_id_of
from nodes.broker.tables.timer.timer_tables import TimerTables
from nodes.config.request_pools import PoolName
from nodes.protocol.command import VERSION, VERSION_DESC
from nodes.protocol.names import SCHEDULE_TOPIC

NOT_EMULATED: Mapping[str, str] = {
    # A put takes no time of its own: what it waits for, a thread or the lock, RocketMQ does not count here either.
    "putMessageEntireTimeMax": "0",
    "getMessageEntireTimeMax": "0",
    "putLatency99": "0.00",
    "putLatency999": "0.00",
    # A message that is refused before it reaches the log does not count as failed, and the log itself takes all.
    "putMessageFailedTimes": "0",
    # Messages are in their queues at once, and in no buffer.
    "dispatchMaxBuffer": "0",
    "dispatchBehindBytes": "0",
    # A broker counts from its start on; no run is expected to pass midnight.
    "msgPutTotalYesterdayMorning": "0",
    "msgPutTotalTodayMorning": "0",
    "msgGetTotalYesterdayMorning": "0",
    "msgGetTotalTodayMorning": "0",
    # No option delays sends after the start.
    "startAcceptSendRequestTimeStamp": "0",
    # The wheel is a table that works at the instant at which it is looked at.
    "timerEnqueueTps": "0.0",
    "timerDequeueTps": "0.0",
}
"""Entries that are the same at every broker, with why."""
_INT_MAX = 2**31 - 1
_SPANS_S = (10, 60, 600)
_PUT_TIMES = (
    *("[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]"),
    *("[1~2s]", "[2~3s]", "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]"),
)
_POOLS = {
    "send": PoolName.SEND,
    "pull": PoolName.PULL,
    "litePull": PoolName.LITE_PULL,
    "query": PoolName.QUERY,
    "ack": PoolName.ACK,
}


class RuntimeInfo:
    """The runtime information of a broker.

    Args:
        broker: the broker that is described.
        timer: its delayed and timed messages.
        executors: its thread pools; None: no request takes time.
        is_special_service_running: whether its special services run.
    """

    def __init__(
        self,
        broker: BrokerContext,
        timer: TimerTables,
        executors: RequestExecutors | None,
        is_special_service_running: Callable[[], bool],
    ) -> None:
        self._broker = broker
        self._timer = timer
        self._executors = executors
        self._is_special_service_running = is_special_service_running
        self._started_ms = broker.host.clock.now_ms()
        self._first_row = 0

    def begin(self) -> None:
        """Count messages from now on: the log of an earlier process is loaded."""
        self._first_row = self._broker.store.log.next_row

    def table(self) -> dict[str, str]:
        """The entries by name."""
        now_ms = self._broker.host.clock.now_ms()
        running = "true" if self._is_special_service_running() else "false"
        return {
            **NOT_EMULATED,
            "bootTimestamp": str(self._started_ms),
            "runtime": _format_runtime(now_ms - self._started_ms),
            "brokerActive": running,
            "brokerVersion": str(VERSION),
            "brokerVersionDesc": VERSION_DESC,
            **self._puts(now_ms),
            **self._rates(now_ms),
            **self._totals(),
            **self._log(),
            **self._delays(),
            **self._wheel(now_ms),
            **self._pools(now_ms),
            **self._buffers(),
        }

    def _puts(self, now_ms: int) -> dict[str, str]:
        """Messages stored since the start; all of the last whole minute were stored within 0 ms."""
        store = self._broker.store
        times = max(1, store.log.next_row - self._first_row)
        size = store.max_commit_log_offset - store.init_max_commit_log_offset
        minutes = (now_ms - self._started_ms) // MINUTE_MS
        minute_ms = self._started_ms + minutes * MINUTE_MS
        puts = store.log.count_between(minute_ms - MINUTE_MS, minute_ms)
        distribution = "".join(f"{name}:{0 if place else puts} " for place, name in enumerate(_PUT_TIMES))
        return {
            "putMessageTimesTotal": str(times),
            "putMessageSizeTotal": str(size),
            "putMessageAverageSize": str(size / times),
            "putMessageDistributeTime": distribution if minutes else "null",
        }

    def _rates(self, now_ms: int) -> dict[str, str]:
        """Rates of the last 10 s, minute and ten minutes; a rate is missing as long as the broker is too young."""
        stats, log, present_ms = self._broker.stats.store, self._broker.store.log, now_ms // 1_000 * 1_000
        spans = [span_s for span_s in _SPANS_S if now_ms - self._started_ms > span_s * 1_000]

        def rates(tps: Callable[[int], float]) -> str:
            return " ".join(str(tps(span_s)) if span_s in spans else "" for span_s in _SPANS_S)

        def total(span_s: int) -> float:
            return stats.found_tps(span_s, now_ms) + stats.missed_tps(span_s, now_ms)

        return {
            "putTps": rates(lambda span_s: log.count_between(present_ms - span_s * 1_000, present_ms) / span_s),
            "getFoundTps": rates(lambda span_s: stats.found_tps(span_s, now_ms)),
            "getMissTps": rates(lambda span_s: stats.missed_tps(span_s, now_ms)),
            "getTotalTps": " ".join(str(total(span_s) if span_s in spans else 0.0) for span_s in _SPANS_S),
            "getTransferredTps": rates(lambda span_s: stats.transferred_tps(span_s, now_ms)),
        }

    def _totals(self) -> dict[str, str]:
        stats = self._broker.stats
        return {
            "msgPutTotalTodayNow": str(stats.total_without_system_topics(StatsName.TOPIC_PUT_NUMS)),
            "msgGetTotalTodayNow": str(stats.total_without_system_topics(StatsName.GROUP_GET_NUMS)),
        }

    def _log(self) -> dict[str, str]:
        """The log and its disk, which is as large as `storeMaxBytes`; without that its size is not known."""
        store, limit = self._broker.store, self._broker.config.store_max_bytes
        used = str(store.used_bytes / limit if limit else 0.0)
        total, free = human_readable_bytes(limit), human_readable_bytes(max(0, limit - store.used_bytes))
        return {
            "commitLogMinOffset": str(store.min_commit_log_offset),
            "commitLogMaxOffset": str(store.max_commit_log_offset),
            "commitLogDiskRatio": used,
            "consumeQueueDiskRatio": used,
            "earliestMessageTimeStamp": str(store.earliest_message_time),
            "remainHowManyDataToFlush": human_readable_bytes(self._broker.flush.behind_bytes),
            **({"commitLogDirCapacity": f"Total : {total}, Free : {free}."} if limit else {}),
        }

    def _delays(self) -> dict[str, str]:
        """Delivered offset and end of the queue of each delay level."""
        store = self._broker.store
        return {
            f"scheduleMessageOffset_{level}": f"{offset},{store.max_offset(SCHEDULE_TOPIC, queue_id_of(level))}"
            for level, offset in self._timer.delay_offsets.offsets.items()
        }

    def _wheel(self, now_ms: int) -> dict[str, str]:
        wheel = self._timer.wheel
        behind_ms = 0 if wheel is None else wheel.dequeue_behind_ms(now_ms)
        return {
            "timerReadBehind": str(behind_ms // 1_000),
            "timerOffsetBehind": str(0 if wheel is None else wheel.enqueue_behind_messages),
            "timerCongestNum": str(0 if wheel is None else wheel.all_congest_num),
        }

    def _pools(self, now_ms: int) -> dict[str, str]:
        """Requests that wait for a thread, and the lock of the log; nothing waits where no request takes time."""
        executors, sizes = self._executors, self._broker.config.pool_sizes()
        lock_ms = 0 if executors is None else executors.append_lock_ms(now_ms)
        waits = {name: (0, 0) if executors is None else executors.head_wait_ms(name) for name in sizes}
        table = {"pageCacheLockTimeMills": str(lock_ms)}
        for prefix, name in _POOLS.items():
            waiting, head_wait_ms = waits[name]
            table[f"{prefix}ThreadPoolQueueSize"] = str(waiting)
            table[f"{prefix}ThreadPoolQueueCapacity"] = str(sizes[name].queue_capacity)
            table[f"{prefix}ThreadPoolQueueHeadWaitTimeMills"] = str(head_wait_ms)
        table["EndTransactionQueueSize"] = str(waits[PoolName.END_TRANSACTION][0])
        table["EndTransactionThreadPoolQueueCapacity"] = str(sizes[PoolName.END_TRANSACTION].queue_capacity)
        return table

    def _buffers(self) -> dict[str, str]:
        """Free buffers of the log; more than there can be, where it has none."""
        buffers = None if self._executors is None else self._executors.buffers
        if buffers is None:
            return {"remainTransientStoreBufferNumbs": str(_INT_MAX)}
        return {
            "remainTransientStoreBufferNumbs": str(buffers.available),
            "remainHowManyDataToCommit": human_readable_bytes(buffers.behind_bytes),
        }


def human_readable_bytes(count: int) -> str:
    """`512 B`, `1.5 KiB`.

    Mirrors:
        `org.apache.rocketmq.common.MixAll#humanReadableByteCount`.
    """
    if count < 1024:
        return f"{count} B"
    exponent = min((count.bit_length() - 1) // 10, 6)
    return f"{count / 1024**exponent:.1f} {'KMGTPE'[exponent - 1]}iB"


def _format_runtime(duration_ms: int) -> str:
    """`[ 0 days, 1 hours, 2 minutes, 3 seconds ]`."""
    days, rest = divmod(duration_ms, DAY_MS)
    hours, rest = divmod(rest, HOUR_MS)
    minutes, rest = divmod(rest, MINUTE_MS)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {rest // 1_000} seconds ]"
