"""Options of POP: handing messages out, hiding them for a while, and reviving those that no consumer acknowledged."""

import attrs

from nodes.config.options import Config, count, millis, name_options, period_millis
from nodes.fields import flag


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class PopConfig(Config):
    """What a broker's pops depend on.

    Mirrors:
        `org.apache.rocketmq.common.BrokerConfig`.
    """

    revive_queue_num: int = count(8, minimum=1, maximum=64)
    """Queues of the revive topic, each with a thread that revives."""
    revive_interval: int = period_millis(1_000)
    """Pause before each pass over a revive queue."""
    revive_max_slow: int = count(3, minimum=1)
    """Most pauses that follow a pass without check point."""
    revive_scan_time: int = millis(10_000)
    """Time after which a pass takes no more records."""
    revive_ack_wait_ms: int = millis(180_000)
    """With `enable_skip_long_awaiting_ack`: how long an acknowledgement without check point is retained."""
    enable_skip_long_awaiting_ack: bool = flag(default=False)
    """Pass over acknowledgements whose check point never came."""
    skip_when_ck_re_put_reach_max_times: bool = flag(default=False, key="skipWhenCKRePutReachMaxTimes")
    """Give a message up that could not be revived 17 times."""
    enable_pop_buffer_merge: bool = flag(default=False)
    """Keep check points in memory for a while: a pop that is acknowledged by then is never written."""
    enable_pop_batch_ack: bool = flag(default=False)
    """Write the acknowledgements of one pop that leave memory as one record."""
    pop_ck_stay_buffer_time: int = millis(10_000)
    """How long a check point stays in memory."""
    pop_ck_stay_buffer_time_out: int = millis(3_000)
    """How long before the end of the invisible time it leaves memory at the latest."""
    pop_ck_max_buffer_size: int = count(200_000)
    """Most check points in memory."""
    pop_ck_offset_max_queue_size: int = count(20_000)
    """Most pops of one queue in memory."""
    append_ck_async: bool = flag(default=False)
    """Do not wait until a check point is stored."""
    append_ack_async: bool = flag(default=False)
    """Do not wait until an acknowledgement is stored."""
    pop_polling_size: int = count(1_024)
    """A queue with more held pops than this takes no more."""
    max_pop_polling_size: int = count(100_000)
    """Most held pops."""
    pop_long_polling_force_notify_interval: int = count(800)
    """A message at a multiple of this offset wakes a pop whatever its filter; 0: none does."""
    pop_from_retry_probability: int = count(20, maximum=100)
    """Of a hundred pops, so many look at the retry topic first."""
    enable_retry_topic_v2: bool = flag(default=False)
    """Name pop retry topics in the new way."""
    retrieve_message_from_pop_retry_topic_v1: bool = flag(default=True)
    """With `enable_retry_topic_v2`: read retry topics of the old name, too."""
    pop_response_return_actual_retry_topic: bool = flag(default=False)
    """Hand out messages of a retry topic under its name; else under the normal one."""
    init_pop_offset_by_check_msg_in_mem: bool = flag(default=True)
    """Begin at offset 0 where a group would begin at the end, if the queue has all its messages in memory."""
    enable_pop_message_threshold: bool = flag(default=False)
    """Hand out nothing of a queue with too many messages in flight."""
    pop_inflight_message_threshold: int = count(10_000)
    """The most for that."""
    pop_consumer_kv_service_init: bool = flag(default=False, key="popConsumerKVServiceInit")
    """Have a database for records of pops; it counts at the start of the process."""
    pop_consumer_kv_service_enable: bool = flag(default=False, key="popConsumerKVServiceEnable")
    """Keep records of pops in the database, and none in the revive topic."""
    pop_revive_max_return_size_per_read: int = count(16 * 1024, minimum=1)
    """Most records of the database that one pass revives."""
    pop_revive_max_attempt_times: int = count(16, maximum=16)
    """How often a message of the database is tried again; then it is given up. RocketMQ's thread fails above 16."""
    enable_notify_after_pop_order_lock_release: bool = flag(default=True)
    """Wake held pops when an ordered queue is free again because the invisible time is over."""
