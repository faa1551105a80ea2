"""A cluster to which nothing happens; and that the same seed gives the same trace."""

import functools
import operator

import attrs
import pytest

from emulator.spec.model.scenario import Network
from emulator.testing import TOPIC, Stage, a_scenario, execute
from emulator.time.mode import TimeMode

BROKERS = ("broker-a", "broker-b")
CALM = a_scenario(
    brokers=BROKERS, nameservers=2, consumers=3, queues=5, rate_per_s=20, spread_ms=1_000, network=Network(1, 2)
)


@pytest.mark.parametrize("mode", [TimeMode.SIM, TimeMode.FAST])
def test_every_queue_has_one_owner_and_every_message_is_consumed_once_and_committed(mode):
    async def script(stage: Stage) -> None:
        await stage.at_ms(25_000)
        await stage.stop("p1")
        await stage.at_ms(50_000)

    trace = execute(CALM, script, mode=mode)

    assert [len(owners) for owners in trace.owners().values()] == [1] * 10
    shares = sorted(functools.reduce(operator.iadd, trace.owners().values(), []))
    assert [shares.count(name) for name in ("c1", "c2", "c3")] == [4, 3, 3]
    last_change = trace.rows["ownership"][-1].at_ms
    assert last_change < 25_000
    assert sorted(trace.consumed()) == trace.stored()
    assert len(trace.stored()) > 450
    settled = trace.select("messages", event="stored", topic=TOPIC, after_ms=last_change)
    assert len(settled) > 50
    assert {len(trace.consumed()[row.broker_name, row.queue_id, row.offset]) for row in settled} == {1}
    ends = {}
    for name, queue_id, offset in trace.stored():
        ends[name, queue_id] = offset + 1
    committed = {}
    for row in trace.select("messages", event="committed", topic=TOPIC):
        committed[row.broker_name, row.queue_id] = row.offset
    assert committed == ends


def test_on_a_calm_cluster_all_members_and_brokers_come_to_hold_the_same_view():
    trace = execute(CALM, for_ms=60_000)

    lists = {row.node: row.value for row in trace.select("beliefs", kind="consumer_ids", subject="g")}
    views = {row.node: row.value for row in trace.select("beliefs", kind="view", subject="g/orders")}
    assert sorted(lists) == ["broker-a", "broker-b"]
    assert sorted(views) == ["c1", "c2", "c3"]
    assert len(set(lists.values())) == 1
    assert len(set(views.values())) == 1
    assert trace.select("beliefs", kind="view", after_ms=30_000) == []
    assert trace.select("rpc", event="timed_out") + trace.select("rpc", event="lost") == []


async def trouble(stage: Stage) -> None:
    await stage.at_ms(12_000)
    await stage.kill("c2")
    await stage.at_ms(15_000)
    stage.cut("c1", "broker-b", one_way=True)
    await stage.at_ms(21_000)
    stage.heal("c1", "broker-b")
    await stage.suspend("c3", 5_000)
    stage.start("c2")
    await stage.host("broker-a").restart()
    await stage.at_ms(40_000)


def test_the_same_seed_gives_the_same_trace_in_memory_and_over_loopback_and_another_seed_another():
    first, second = execute(CALM, trouble), execute(CALM, trouble)
    over_loopback = execute(CALM, trouble, mode=TimeMode.FAST)
    other = execute(attrs.evolve(CALM, seed=2), trouble)

    assert first.digest == second.digest == over_loopback.digest
    assert other.digest != first.digest
