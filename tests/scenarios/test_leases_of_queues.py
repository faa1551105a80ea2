"""Leases of a lock service keep a queue to one pod, as far as clocks and processes do what they should."""

import attrs

from emulator.testing import GROUP, execute
from nodes.config import Exclusivity, StatefulSetConfig
from support.statefulsets import ORDINAL, a_statefulset, at_once, processed, twice_at_once

LEASE = attrs.evolve(ORDINAL, exclusivity=Exclusivity.LEASE)
PATIENT = StatefulSetConfig(liveness_probe_failure_threshold=1_000)
"""So that the kubelet does not end the pod whose fault is looked at."""
CONSUME_MS = 500


def executed(script, *, replicas=1, for_ms=90_000, consume_ms=CONSUME_MS):
    scenario = a_statefulset(replicas, consumer=LEASE, config=PATIENT, consume_ms=consume_ms, rate_per_s=8)
    return execute(scenario, script, for_ms=for_ms)


def overlaps_ms(done):
    """How long two pods had messages of one queue, at most."""
    return max((min(a.end_ms, b.end_ms) - max(a.begin_ms, b.begin_ms) for a, b in at_once(done)), default=0)


def spans_ms(done, node, queue_id):
    """From the first to the last message of a queue that a pod had."""
    mine = [item for item in done if (item.node, item.queue_id) == (node, queue_id)]
    return min(item.begin_ms for item in mine), max(item.end_ms for item in mine)


async def cut_off_and_scaled(stage):
    """From 30 s on, consumer-0 hears neither of the second replica nor of its leases."""
    await stage.at_ms(30_000)
    await stage.begin("cut kubernetes consumer-0")
    await stage.begin("cut leases consumer-0")
    await stage.begin(f"scale {GROUP} 2")


def test_a_scale_processes_nothing_twice_because_a_queue_waits_for_its_lease():
    async def script(stage):
        for at_ms, replicas in ((30_000, 3), (60_000, 2), (90_000, 4)):
            await stage.at_ms(at_ms)
            await stage.begin(f"scale {GROUP} {replicas}")

    done = processed(executed(script, replicas=2, for_ms=120_000), CONSUME_MS)

    assert at_once(done) == []
    messages = [(item.queue_id, item.offset) for item in done]
    assert len(messages) == len(set(messages)) > 800


def test_every_new_holder_of_a_lease_has_a_larger_fencing_token():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin(f"scale {GROUP} 2")

    trace = executed(script, for_ms=60_000)

    lines = [row.held["token"] for row in trace.select("beliefs", kind="lease", node="leases") if row.held]
    assert lines == sorted(lines)
    assert len(set(lines)) == len(lines) > 5


def test_a_holder_that_is_cut_off_stops_when_its_lease_ends_but_does_not_interrupt_a_message():
    done = processed(executed(cut_off_and_scaled), CONSUME_MS)

    _, last_ms = spans_ms(done, "consumer-0", 3)
    first_ms, _ = spans_ms(done, "consumer-1", 3)
    assert 40_000 < last_ms <= 46_000 + CONSUME_MS
    assert first_ms > last_ms - CONSUME_MS
    assert overlaps_ms(done) <= CONSUME_MS


def test_a_clock_that_is_20_s_behind_makes_the_holder_stay_20_s_too_long():
    async def script(stage):
        await stage.at_ms(20_000)
        await stage.begin("skew consumer-0 -20000")
        await cut_off_and_scaled(stage)

    done = processed(executed(script), CONSUME_MS)

    _, last_ms = spans_ms(done, "consumer-0", 3)
    first_ms, _ = spans_ms(done, "consumer-1", 3)
    assert twice_at_once(done)
    assert 18_000 < last_ms - first_ms < 22_000


def test_a_clock_that_is_ahead_makes_the_holder_let_go_although_no_one_takes_its_place():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin("skew consumer-0 60000")

    done = processed(executed(script), CONSUME_MS)

    assert max(item.end_ms for item in done) < 31_000


def test_a_holder_that_is_suspended_for_longer_than_its_lease_has_a_message_next_to_the_next_one():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin("cut kubernetes consumer-0")
        await stage.begin(f"scale {GROUP} 2")
        await stage.suspend("consumer-0", 30_000)

    done = processed(executed(script), CONSUME_MS)

    assert twice_at_once(done)


def test_a_clock_of_the_service_that_jumps_ahead_gives_leases_away_that_holders_still_believe_in():
    async def script(stage):
        await stage.at_ms(30_200)
        await stage.begin("cut kubernetes consumer-0")
        await stage.begin(f"scale {GROUP} 2")
        await stage.begin("skew leases 20000")

    done = processed(executed(script), CONSUME_MS)

    assert twice_at_once(done)
    # Until the next renewal is refused.
    _, last_ms = spans_ms(done, "consumer-0", 3)
    assert last_ms < 30_200 + 5_000 + 2 * CONSUME_MS


def test_while_the_service_is_suspended_all_leases_end_and_no_consumer_consumes():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.suspend("leases", 40_000)

    done = processed(executed(script), CONSUME_MS)

    assert not [item for item in done if 46_000 < item.begin_ms < 70_000]
    assert [item for item in done if item.begin_ms > 72_000]
    assert at_once(done) == []


def test_a_pod_that_was_killed_waits_for_its_own_leases_to_end_because_it_is_another_client_now():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.kill("consumer-0")

    trace = executed(script)

    _, again = trace.select("lifecycle", event="started", node="consumer-0")
    first_ms = min(item.begin_ms for item in processed(trace, CONSUME_MS) if item.begin_ms > again.at_ms)
    assert again.at_s < 31.1
    assert 40_000 < first_ms < 48_000
