"""The options of a broker's timer."""

import attrs

from nodes.config.options import SECONDS, Config, count, millis, name_options, period_millis
from nodes.fields import INT_MAX, flag, whole

_PRECISIONS_MS = (1000, 500, 200, 100)


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class TimerConfig(Config):
    """Options of timed messages.

    Mirrors:
        `org.apache.rocketmq.store.config.MessageStoreConfig`, as far as `TimerMessageStore` reads it.
    """

    timer_wheel_enable: bool = flag(default=True)
    """Have a timer, with a check point that other brokers copy; else messages that ask for a time are refused."""
    timer_precision_ms: int = millis(1000, minimum=1)
    """Unit of the timer; rounded down to 100, 200, 500 or 1000, and up to 100 (`precision_ms`)."""
    timer_max_delay_sec: int = whole(3 * 24 * 3600, unit=SECONDS)
    """Longest delay of a message."""
    timer_roll_window_slot: int = count(172_800, minimum=1)
    """Units that the timer looks ahead; a message further away is stored again when it comes nearer."""
    timer_flush_interval_ms: int = period_millis(1000)
    """Time between two writes of the timer's progress to disk."""
    timer_put_message_thread_num: int = count(3, minimum=1)
    """Messages that are delivered at the same time."""
    timer_stop_enqueue: bool = flag(default=False)
    """Take no message into the timer."""
    timer_stop_dequeue: bool = flag(default=False)
    """Deliver no message."""
    timer_skip_unknown_error: bool = flag(default=False)
    """Drop a message whose delivery fails for an unknown reason, and one without a readable time; else try again."""
    timer_enable_retry_until_success: bool = flag(default=False)
    """Try to deliver a message until it succeeds; else three times."""
    timer_congest_num_each_slot: int = count(INT_MAX)
    """Messages of a unit from which on further ones are refused by chance; from twice as many on all are."""
    mapped_file_size_timer_log: int = count(100 * 1024 * 1024, minimum=128)
    """Bytes of one file of the timer log."""
    recall_message_enable: bool = flag(default=False)
    """Let producers take back a timed message that is not due yet."""

    @property
    def precision_ms(self) -> int:
        """`timer_precision_ms` as RocketMQ takes it."""
        return next((unit for unit in _PRECISIONS_MS if self.timer_precision_ms >= unit), _PRECISIONS_MS[-1])
