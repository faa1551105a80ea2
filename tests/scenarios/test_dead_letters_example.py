"""The example of retries and dead letters does what it says."""

from collections import Counter
from pathlib import Path

import pytest

from emulator.spec import load
from emulator.testing import TOPIC, execute
from support.retried import consumed_from, stored_in

TICK_MS = 110


@pytest.fixture(scope="module")
def trace():
    return execute(load(Path(__file__).parents[2] / "examples" / "dead_letters.toml"), for_ms=120_000)


def test_billing_gets_every_second_order_twice_ten_seconds_apart(trace):
    first, again = (
        [row.at_ms for row in consumed_from(trace, topic, group="billing")] for topic in (TOPIC, "%RETRY%billing")
    )
    assert len(first) == pytest.approx(len(stored_in(trace, TOPIC)) / 2, abs=1)
    # Of the same instant they may change places.
    pairs = list(zip(sorted(first), sorted(again), strict=False))
    assert len(pairs) > 100
    settled = [later - earlier for earlier, later in pairs if earlier > 5_000]
    assert all(10_000 <= gap <= 10_000 + 2 * TICK_MS for gap in settled)


def test_audit_gives_an_order_up_after_three_deliveries_and_forty_seconds(trace):
    first = [row.at_ms for row in consumed_from(trace, TOPIC, group="audit")]
    dead = [row.at_ms for row in stored_in(trace, "%DLQ%audit")]
    assert len(first) == len(stored_in(trace, TOPIC))
    gaps = [later - earlier for earlier, later in zip(first, dead, strict=False) if earlier > 5_000]
    assert len(gaps) > 100
    assert all(40_000 <= gap <= 40_000 + 3 * TICK_MS for gap in gaps)
    deliveries = Counter(row.topic for row in trace.select("messages", event="consumed", group="audit"))
    assert deliveries["%RETRY%audit"] > 1.5 * len(dead)


def test_the_offsets_of_both_groups_move_on(trace):
    for group in ("billing", "audit"):
        committed = max(
            row.offset for row in trace.select("messages", event="committed", group=group, topic=TOPIC, queue_id=0)
        )
        assert committed >= len(stored_in(trace, TOPIC, queue_id=0)) - 3
