"""What a wrong wall clock does to nameservers and brokers; sleeps and timers go by the monotonic one."""

import itertools
import json

import pytest

from emulator.time.timeline import EPOCH_MS
from fault_kinds.at_work import busy_cluster
from fault_kinds.by_script import broken, once

JUMP_MS = 62_000


def live(trace, nameserver, **between):
    """(ms, broker, whether it is known) as a nameserver believed."""
    rows = trace.select("beliefs", node=nameserver, kind="live_brokers", **between)
    return [(row.at_ms, row.subject, bool(json.loads(row.value))) for row in rows]


def test_a_nameserver_whose_clock_jumps_gives_up_every_broker_at_its_next_scan_until_they_register_again():
    trace = broken(busy_cluster(1), once("jump ns-1 130000", JUMP_MS, 130_000), for_ms=131_000)

    gone = [(at_ms, subject) for at_ms, subject, known in live(trace, "ns-1", after_ms=JUMP_MS) if not known]
    back = [(at_ms, subject) for at_ms, subject, known in live(trace, "ns-1", after_ms=JUMP_MS) if known]
    assert sorted(dict.fromkeys(name for _, name in gone)) == ["broker-a", "broker-b"]
    (scan_ms,) = dict.fromkeys(at_ms for at_ms, _ in gone)
    assert JUMP_MS < scan_ms <= JUMP_MS + 5_000  # a scan every 5 s
    assert sorted(dict.fromkeys(name for _, name in back)) == ["broker-a", "broker-b"]
    assert all(scan_ms < at_ms <= scan_ms + 31_000 for at_ms, _ in back)  # a registration every 30 s
    assert live(trace, "ns-2", after_ms=JUMP_MS) == []


@pytest.mark.parametrize("line", ["jump ns-1 80000", "jump ns-1 -130000", "skew ns-1 -130000"])
def test_a_nameserver_whose_clock_is_not_that_far_ahead_gives_up_no_one(line):
    trace = broken(busy_cluster(1), once(line, JUMP_MS, JUMP_MS + 15_000), for_ms=JUMP_MS + 16_000)

    assert live(trace, "ns-1", after_ms=JUMP_MS) == []


def store_timestamps(line):
    """(instant of storing, storeTimestamp) of messages stored under a fault, and after it."""
    seen = []

    async def deeds(breaker):
        stage = breaker.stage
        await breaker.during(line, 30_000, 40_000)
        await stage.at_ms(50_000)
        store = stage.node("broker-a").context.store
        for queue_id in range(4):
            for offset in range(store.max_offset("orders", queue_id)):
                (message,) = store.get_message("orders", queue_id, offset, 1).messages
                seen.append((queue_id, offset, message.store_timestamp - EPOCH_MS, message.born_timestamp - EPOCH_MS))

    trace = broken(busy_cluster(1), deeds)
    at_ms = {
        (row.queue_id, row.offset): row.at_ms
        for row in trace.select("messages", event="stored", node="broker-a", topic="orders")
    }
    return [(at_ms[queue_id, offset], stored, born) for queue_id, offset, stored, born in seen]


def test_the_skew_of_a_broker_shows_in_what_it_stores_and_not_in_when_messages_were_born():
    rows = store_timestamps("skew broker-a 5000")

    during = [(at_ms, stored, born) for at_ms, stored, born in rows if 30_000 < at_ms < 40_000]
    others = [(at_ms, stored) for at_ms, stored, _ in rows if not 30_000 <= at_ms <= 40_000]
    assert len(during) > 20
    assert {stored - at_ms for at_ms, stored, _ in during} == {5_000}
    assert all(0 <= at_ms - born <= 5 for at_ms, _, born in during)
    assert {stored - at_ms for at_ms, stored in others} == {0}


def test_the_skew_of_a_producer_shows_in_when_its_messages_were_born():
    rows = store_timestamps("skew p1 -700")

    during = [born - at_ms for at_ms, _, born in rows if 30_010 < at_ms < 40_000]
    assert during != []
    assert all(-705 <= apart <= -700 for apart in during)


def test_timers_go_by_the_monotonic_clock():
    def passes(line):
        return broken(busy_cluster(1), once(line, 30_000, 80_000), for_ms=100_000).passes("c1")

    calm = passes("skew broker-a 1")
    assert passes("skew c1 600000") == passes("drift c1 -500000") == passes("jump c1 -600000") == calm
    assert all(later > earlier for earlier, later in itertools.pairwise(calm))
