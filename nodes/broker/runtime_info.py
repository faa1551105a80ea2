"""What a broker tells of itself at run time.

Mirrors:
    `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#prepareRuntimeInfo`,
    `org.apache.rocketmq.store.StoreStatsService#getRuntimeInfo`.
"""

from nodes.broker.broker_stats import DAY_MS, HOUR_MS, MINUTE_MS, StatsName
from nodes.broker.context import BrokerContext
from nodes.broker.delay_levels import queue_id_of
from nodes.broker.topics import SCHEDULE_TOPIC
from nodes.protocol.command import VERSION

VERSION_DESC = "V5_3_3"
_SPANS_MS = (10_000, MINUTE_MS, 10 * MINUTE_MS)
_POOLS = ("send", "pull", "litePull", "query", "ack")
_NOT_EMULATED = {
    "putMessageEntireTimeMax": "0",
    "putMessageFailedTimes": "0",
    "getMessageEntireTimeMax": "0",
    "dispatchMaxBuffer": "0",
    "dispatchBehindBytes": "0",
    "pageCacheLockTimeMills": "0",
    "getMissTps": "0.0 0.0 0.0",
    "putLatency99": "0.00",
    "putLatency999": "0.00",
    "commitLogDiskRatio": "0.0",
    "consumeQueueDiskRatio": "0.0",
    "remainTransientStoreBufferNumbs": "0",
    "remainHowManyDataToFlush": "0 B",
    "timerReadBehind": "0",
    "timerOffsetBehind": "0",
    "timerCongestNum": "0",
    "timerEnqueueTps": "0.0",
    "timerDequeueTps": "0.0",
    "EndTransactionQueueSize": "0",
    "EndTransactionThreadPoolQueueCapacity": "100000",
    "msgPutTotalYesterdayMorning": "0",
    "msgGetTotalYesterdayMorning": "0",
    "msgPutTotalTodayMorning": "0",
    "msgGetTotalTodayMorning": "0",
    **{f"{pool}ThreadPoolQueueSize": "0" for pool in _POOLS},
    **{f"{pool}ThreadPoolQueueCapacity": "10000" for pool in _POOLS},
    **{f"{pool}ThreadPoolQueueHeadWaitTimeMills": "0" for pool in _POOLS},
}
"""What depends on threads, page caches and days: an idle broker's values."""


def prepare_runtime_info(broker: BrokerContext, *, special_service_running: bool, started_ms: int) -> dict[str, str]:
    """The whole table.

    Args:
        broker: of which it tells.
        special_service_running: whether it runs what only one member of its group may.
        started_ms: wall clock when the process began.
    """
    now_ms, store, stats = broker.host.clock.now_ms(), broker.store, broker.stats
    put, fetched = stats.total(StatsName.TOPIC_PUT_NUMS), stats.total(StatsName.GROUP_GET_NUMS)
    got_tps = _tps(broker, StatsName.GROUP_GET_NUMS, now_ms)
    return {
        **_NOT_EMULATED,
        **_delays(broker),
        "bootTimestamp": str(started_ms),
        "startAcceptSendRequestTimeStamp": str(started_ms),
        "runtime": _format_runtime(now_ms - started_ms),
        "putMessageTimesTotal": str(max(1, put)),
        "putMessageSizeTotal": str(store.max_commit_log_offset),
        "putMessageAverageSize": str(store.max_commit_log_offset / max(1, put)),
        "putMessageDistributeTime": "[<=0ms]:0 ",
        "putTps": _tps(broker, StatsName.TOPIC_PUT_NUMS, now_ms),
        "getFoundTps": got_tps,
        "getTotalTps": got_tps,
        "getTransferredTps": got_tps,
        "commitLogMinOffset": "0",
        "commitLogMaxOffset": str(store.max_commit_log_offset),
        "earliestMessageTimeStamp": str(store.earliest_message_time),
        "msgPutTotalTodayNow": str(put),
        "msgGetTotalTodayNow": str(fetched),
        "brokerActive": "true" if special_service_running else "false",
        "brokerVersion": str(VERSION),
        "brokerVersionDesc": VERSION_DESC,
    }


def _tps(broker: BrokerContext, name: StatsName, now_ms: int) -> str:
    return " ".join(str(broker.stats.total_tps(name, span_ms, now_ms)) for span_ms in _SPANS_MS)


def _delays(broker: BrokerContext) -> dict[str, str]:
    """Of each delay level: how far it is delivered, and how far it is filled."""
    return {
        f"scheduleMessageOffset_{level}": f"{offset},{broker.store.max_offset(SCHEDULE_TOPIC, queue_id_of(level))}"
        for level, offset in broker.delay_offsets.offsets.items()
    }


def _format_runtime(duration_ms: int) -> str:
    """`[ 0 days, 1 hours, 2 minutes, 3 seconds ]`."""
    days, rest = divmod(duration_ms, DAY_MS)
    hours, rest = divmod(rest, HOUR_MS)
    minutes, rest = divmod(rest, MINUTE_MS)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {rest // 1_000} seconds ]"
