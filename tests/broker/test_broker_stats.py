"""The counters of a broker: what they report the last minute, hour and day, and how little they hold for it."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.store.broker_stats import DAY_MS, HOUR_MS, MINUTE_MS, BrokerStatsManager, StatsItem, StatsName
from support.every_case import each_case
from support.sizes import objects_of

SLOT_MS = {10_000: 10_000, MINUTE_MS: 10_000, 600_000: 10_000, HOUR_MS: 600_000, DAY_MS: 3_600_000}
"""Period -> how far samples are apart, as in RocketMQ."""


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 2 * HOUR_MS))), st.sampled_from(list(SLOT_MS)))
def test_each_period_has_the_counts_of_its_whole_slots(calls, span_ms):
    item, now_ms, counted = StatsItem(), 0, []
    for value, later_ms in calls:
        now_ms += later_ms
        item.add(value, now_ms)
        counted.append((now_ms, value))

    slot_ms = SLOT_MS[span_ms]
    within = [value for at_ms, value in counted if at_ms // slot_ms > (now_ms - span_ms) // slot_ms]
    found = item.snapshot(span_ms, now_ms)
    assert (found.sum, found.tps) == (sum(within), sum(within) * 1_000 / span_ms)
    assert found.avgpt == (sum(within) / len(within) if within else 0.0)
    assert item.total == sum(value for _, value in counted)


def test_a_counter_of_a_whole_day_holds_no_more_than_one_of_an_hour():
    stats = BrokerStatsManager()

    def after(begin_ms, end_ms):
        for now_ms in range(begin_ms, end_ms, 5_000):
            stats.inc(StatsName.TOPIC_PUT_NUMS, "orders", 1, now_ms)
        return objects_of(stats)

    of_an_hour = after(0, HOUR_MS)
    assert after(HOUR_MS, 2 * DAY_MS) <= of_an_hour + 24


@each_case("span_ms", SLOT_MS)
def test_nothing_is_left_of_a_period_in_which_nothing_was_counted(span_ms):
    item = StatsItem()
    item.add(7, 0)
    item.add(5, 3 * DAY_MS)

    assert item.snapshot(span_ms, 5 * DAY_MS).sum == 0
    assert item.snapshot(span_ms, 3 * DAY_MS).sum == 5
