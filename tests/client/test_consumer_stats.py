"""What a consumer counts: rates and times of the intervals of 10 s that have ended."""

from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.protocol.bodies_consumer import ConsumeStatus

START_MS = 1_000_000


def after(*batches: tuple[int, int, int, bool | None], at_s: int) -> ConsumeStatus:
    """The status at a second, after batches of (second, rt_ms, messages, succeeded)."""
    stats = ConsumerStats(START_MS)
    for second, rt_ms, messages, succeeded in [batch for batch in batches if batch[0] < at_s]:
        stats.consumed("orders", rt_ms, messages, START_MS + second * 1_000, succeeded=succeeded)
    return stats.status("orders", START_MS + at_s * 1_000)


def test_nothing_is_reported_before_the_first_sample():
    assert after((1, 50, 3, True), at_s=9) == ConsumeStatus()
    assert after((1, 50, 3, True), at_s=10).consume_ok_tps == 0.3


def test_a_rate_divides_by_the_time_since_the_sample_before_the_first_count_and_by_a_minute_at_most():
    batches = [(second, 50, 1, True) for second in range(200)]
    assert after(*batches, at_s=30).consume_ok_tps == 1.0
    assert after(*batches, at_s=199).consume_ok_tps == 1.0
    assert after((45, 50, 5, True), at_s=60).consume_ok_tps == 0.25
    assert after((45, 50, 5, True), at_s=100).consume_ok_tps == 5 / 60
    assert after((45, 50, 5, True), at_s=110).consume_ok_tps == 0.0


def test_the_time_of_a_batch_is_that_of_the_last_minute_or_else_that_of_the_last_hour():
    batches = ((1, 100, 8, True), (70, 10, 1, True), (71, 20, 1, True))
    assert after(*batches, at_s=90).consume_rt == 15.0
    assert after(*batches, at_s=200).consume_rt == 0.0
    assert after(*batches, at_s=600).consume_rt == 130 / 3


def test_failures_are_counted_by_the_hour_and_an_ignored_result_counts_as_time_alone():
    failed = after((1, 50, 3, False), (2, 70, 5, None), at_s=20)
    assert (failed.consume_failed_tps, failed.consume_failed_msgs, failed.consume_ok_tps) == (0.15, 0, 0.0)
    assert failed.consume_rt == 60.0
    assert after((1, 50, 3, False), at_s=600).consume_failed_msgs == 3
    assert after((1, 50, 3, False), at_s=4_300).consume_failed_msgs == 0


def test_pulls_have_a_time_for_each_answer_and_a_rate_of_messages():
    stats = ConsumerStats(START_MS)
    stats.pulled("orders", 30, 20, START_MS)
    stats.pulled("orders", 10, 0, START_MS + 1)
    status = stats.status("orders", START_MS + 10_000)
    assert (status.pull_rt, status.pull_tps) == (20.0, 2.0)
    assert stats.status("others", START_MS + 10_000) == ConsumeStatus()


def test_a_wall_clock_that_jumps_back_counts_in_the_newest_interval():
    stats = ConsumerStats(START_MS)
    stats.pulled("orders", 30, 20, START_MS + 15_000)
    stats.pulled("orders", 30, 20, START_MS - 15_000)
    assert stats.status("orders", START_MS + 20_000).pull_tps == 4.0
