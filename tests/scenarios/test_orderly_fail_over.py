"""Ordered consumption when the broker that keeps the locks goes away: what clients still believe, and for how long."""

import json

import pytest

from emulator.testing import TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import BrokerConfig, NameserverConfig
from support.grouped import MASTER, S1, a_group, acting, believed, minimum
from support.ordered import LOCK, consumed_by, holds, in_order, orderly, requested

LOCK_LIVES_MS = 30_000
CONSUME_MS = 400


@pytest.mark.trap("M69")
def test_without_broker_id_0_in_the_route_no_one_asks_for_locks_and_consumption_stops_after_30_s():
    async def script(stage: Stage) -> None:
        await stage.at_ms(44_000)
        await stage.kill("p1")
        await stage.at_ms(45_000)
        await stage.kill(MASTER)
        await stage.at_ms(110_000)

    readable = BrokerConfig(slave_read_enable=True)
    group = a_group(nameserver=NameserverConfig(), config=readable, slaves=1, consumers=1, rate_per_s=40)
    trace = execute(in_order(group, consume_ms=CONSUME_MS), script)

    (knows, route), *_ = believed(trace, "c1", "route", after_ms=45_000)
    assert list(route["ba"]["addrs"]) == ["1"]
    last_lock = requested(trace, "c1", MASTER, LOCK)[-1]
    assert last_lock < knows < last_lock + LOCK_LIVES_MS
    assert trace.select("rpc", src="c1", code=int(LOCK), after_ms=knows) == []
    stopped = consumed_by(trace, "c1")[-1].at_ms
    # The slave answers pulls and there is a backlog; what lacks is the lock.
    assert last_lock + LOCK_LIVES_MS - CONSUME_MS < stopped < last_lock + LOCK_LIVES_MS + 2 * CONSUME_MS
    assert len(trace.stored()) - len(trace.consumed()) > 500
    assert holds(trace, "c1", "unlocked") == []


@pytest.mark.trap("M66")
def test_locks_are_not_at_the_acting_slave_so_two_consumers_are_inside_one_ordered_queue_after_a_fail_over():
    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(82_000)
        await stage.kill(MASTER)
        await stage.at_ms(88_000)
        stage.start("c2")
        await stage.at_ms(120_000)

    # No one reports c1 of the newcomer: it goes on with the locks that the dead master has given it.
    config = acting(total_replicas=2, notify_consumer_ids_changed_enable=False)
    group = a_group(slaves=1, config=config, consumers=2, rate_per_s=80)
    trace = execute(in_order(group, consume_ms=CONSUME_MS), script)

    assert minimum(trace, S1)[-1][1] == 1
    given = json.loads(trace.select("beliefs", node=MASTER, kind="queue_locks")[-1].value)
    taken = holds(trace, "c2", "locked", topic=TOPIC)
    assert len(taken) == 2
    refused = holds(trace, "c1", "unlocked", topic=TOPIC)
    # c1 asks the acting slave at its own next renewal, and is refused there.
    assert requested(trace, "c1", S1, LOCK)[0] == refused[0] - 1 == 101_501
    for queue_id in (2, 3):
        assert given[f"{TOPIC}@ba@{queue_id}"].startswith("127.1.10.1@")
        both = {"topic": TOPIC, "queue_id": queue_id, "after_ms": max(taken), "until_ms": refused[0]}
        old, new = ([row.offset for row in consumed_by(trace, node, **both)] for node in ("c1", "c2"))
        assert min(len(old), len(new)) > 25
        # The newcomer starts at what was committed and consumes again what the old one has done meanwhile.
        again = {row.offset for row in consumed_by(trace, "c2", topic=TOPIC, queue_id=queue_id)}
        done = [row.offset for row in consumed_by(trace, "c1", topic=TOPIC, queue_id=queue_id)]
        assert len(again.intersection(done)) > 50
    assert consumed_by(trace, "c1", queue_id=2)[-1].at_ms < refused[0] + CONSUME_MS


def test_after_a_restart_of_the_broker_its_queues_are_consumed_without_any_lock_until_the_next_renewal():
    async def script(stage: Stage) -> None:
        await stage.at_ms(42_000)
        await stage.host("broker-a").kill()
        await stage.at_ms(43_000)
        stage.start("broker-a")
        await stage.at_ms(70_000)

    trace = execute(a_scenario(consumers=consumer_group(1, orderly()), queues=2, rate_per_s=10), script)

    (locked, holders) = believed(trace, "broker-a", "queue_locks", after_ms=43_000)[0]
    assert (locked, len(holders)) == (61_005, 3)
    assert len(consumed_by(trace, "c1", after_ms=43_000, until_ms=locked)) > 150
