"""Reads of a broker's log, counted by the second."""

from nodes.broker.admin.runtime_info import human_readable_bytes
from nodes.broker.tables.store.broker_stats import StoreStats


def test_a_rate_is_that_of_the_whole_seconds_before_the_present_one():
    stats = StoreStats()
    for second in range(30):
        stats.found(second, second * 1_000)
        stats.missed(second * 1_000 + 999)
        stats.missed(second * 1_000 + 999)
    assert (stats.found_tps(10, 29_500), stats.missed_tps(10, 29_500)) == (1.0, 2.0)
    assert stats.transferred_tps(10, 29_500) == sum(range(19, 29)) / 10
    assert stats.found_tps(60, 29_999) == 29 / 60


def test_ten_minutes_are_remembered_and_nothing_before():
    stats = StoreStats()
    for second in range(2_000):
        stats.missed(second * 1_000)
    assert stats.missed_tps(600, 2_000_000) == 1.0
    assert stats.missed_tps(600, 2_500_000) == 100 / 600


def test_reads_while_the_wall_clock_is_behind_count_in_the_newest_second():
    stats = StoreStats()
    stats.missed(9_000)
    stats.missed(2_000)
    assert stats.missed_tps(10, 10_000) == 0.2


def test_bytes_are_printed_as_rocketmq_prints_them():
    counts = (0, 1_023, 1_024, 1_536, 1_048_575, 1_048_576, 5 * 1024**3)
    assert [human_readable_bytes(count) for count in counts] == [
        "0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1024.0 KiB", "1.0 MiB", "5.0 GiB",
    ]  # fmt: skip
