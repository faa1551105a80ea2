"""Kill, restart, power-off and freeze of each role, and what remains of its state."""

import pytest

from emulator.testing import TOPIC, Stage, a_scenario, execute
from emulator.time.mode import TimeMode

BOTH = ("broker-a", "broker-b")


def offsets(trace):
    """Where the consumers began to pull queue 0 of broker-a, each time they took it."""
    rows = trace.select("ownership", event="acquired", topic=TOPIC, broker_name="broker-a", queue_id=0)
    return [row.offset for row in rows]


@pytest.mark.parametrize("mode", [TimeMode.SIM, TimeMode.FAST])
@pytest.mark.parametrize("how", ["kill", "stop", "power_off"])
def test_a_broker_comes_back_with_its_messages_and_offsets_and_its_consumers_go_on(how, mode):
    async def script(stage: Stage) -> None:
        await stage.at_ms(27_000)
        await getattr(stage, how)("broker-a")
        await stage.at_ms(32_000)
        stage.start("broker-a")
        await stage.at_ms(50_000)
        await stage.stop("p1")
        await stage.at_ms(55_000)

    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=5), script, mode=mode)

    assert len({message[2] for message in trace.stored()}) == len(trace.stored())
    assert sorted(trace.consumed()) == trace.stored()
    assert offsets(trace) == [0]
    back = min(row.at_ms for row in trace.select("messages", event="consumed", after_ms=32_500))
    assert back < 37_000


def test_offsets_come_back_as_they_were_last_written_to_the_disk_at_most_5_s_ago():
    async def script(stage: Stage) -> None:
        await stage.at_ms(34_000)
        await stage.kill("c1")
        await stage.kill("broker-a")
        await stage.for_ms(1_000)
        stage.start("broker-a")
        stage.start("c1")
        await stage.at_ms(45_000)

    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=10), script)

    # Written at 30 s; the commits of the 4 s after it are lost.
    at_30_s = [r.offset for r in trace.select("messages", event="committed", topic=TOPIC, until_ms=30_000)][-1]
    assert offsets(trace) == [0, at_30_s]
    twice = [node for node in trace.consumed().values() if len(node) == 2]
    assert 38 <= len(twice) <= 42


def test_a_broker_that_stops_in_order_loses_no_commit():
    async def script(stage: Stage) -> None:
        await stage.at_ms(34_000)
        await stage.stop("c1")
        await stage.stop("broker-a")
        stage.start("broker-a")
        await stage.for_ms(1_000)
        stage.start("c1")
        await stage.at_ms(45_000)

    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=10), script)

    assert len(offsets(trace)) == 2
    assert [node for node in trace.consumed().values() if len(node) > 1] == []


def test_a_restarted_broker_is_in_the_route_with_its_first_registration():
    async def script(stage: Stage) -> None:
        await stage.at_ms(27_000)
        await stage.host("broker-a").restart()
        await stage.at_ms(30_000)

    trace = execute(a_scenario(nameservers=2), script)

    for name in ("ns-1", "ns-2"):
        known = trace.select("beliefs", node=name, kind="live_brokers")
        assert [(row.at_ms, row.value != "null") for row in known] == [(3, True), (27_001, False), (27_003, True)]


def test_a_consumer_connects_and_is_a_member_again_within_about_a_second_of_a_brokers_return():
    async def script(stage: Stage) -> None:
        await stage.at_ms(27_500)
        await stage.host("broker-a").restart()
        await stage.at_ms(40_000)

    trace = execute(a_scenario(consumers=2, queues=2), script)

    known = trace.select("beliefs", node="broker-a", kind="consumer_ids", after_ms=27_500)
    assert [row.value.count("@") for row in known] == [1, 2]
    assert known[-1].at_ms < 28_600
    assert all(len(owners) == 1 for owners in trace.owners().values())


def test_a_restarted_consumer_has_another_id_and_goes_on_where_it_had_committed():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.stop("c1")
        stage.start("c1")
        await stage.at_ms(40_000)

    trace = execute(a_scenario(consumers=1, queues=1, rate_per_s=10), script)

    ids = list(dict.fromkeys(row.client_id for row in trace.select("messages", event="consumed")))
    assert len(ids) == 2
    assert trace.select("ownership", event="acquired", topic=TOPIC)[-1].offset == offsets(trace)[-1] > 250
    assert [node for node in trace.consumed().values() if len(node) > 1] == []


def test_a_nameserver_restarts_empty_and_knows_all_with_the_next_registrations():
    async def script(stage: Stage) -> None:
        await stage.at_ms(12_000)
        await stage.host("ns-1").restart()
        await stage.at_ms(60_000)

    trace = execute(a_scenario(brokers=BOTH, consumers=2, queues=2, rate_per_s=4), script)

    again = trace.select("beliefs", node="ns-1", kind="live_brokers", incarnation=2)
    assert [(row.subject, round(row.at_ms, -2)) for row in again] == [("broker-a", 40_000), ("broker-b", 40_000)]
    # Clients keep the routes they have; nothing moves.
    assert trace.select("ownership", after_ms=25_000) == []
    assert len(trace.stored()) - len(trace.consumed()) <= 1


def test_a_frozen_broker_holds_its_queues_up_and_loses_neither_members_nor_messages():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.suspend("broker-b", 20_000)
        await stage.at_ms(90_000)
        await stage.stop("p1")
        await stage.at_ms(95_000)

    trace = execute(a_scenario(brokers=BOTH, consumers=2, queues=2, rate_per_s=4), script)

    of_broker = [row for row in trace.select("messages", broker_name="broker-b") if 30_001 < row.at_ms < 50_000]
    assert {row.event for row in of_broker} == {"unacknowledged"}, "only the producer sends something, without success"
    assert sorted(trace.consumed()) == trace.stored()
    assert all(len(owners) == 1 for owners in trace.owners().values())
    assert len(trace.select("beliefs", node="ns-1", kind="live_brokers", subject="broker-b")) == 1
