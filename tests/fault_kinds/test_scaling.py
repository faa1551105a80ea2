"""Another number of consumers: who comes, who goes, and that all is as before in the end."""

import attrs
import pytest

from emulator.console.by_hand import ByHand, scenario_by_hand
from emulator.spec import loads
from emulator.testing import GROUP
from fault_kinds.at_work import busy_cluster, outcome_of
from fault_kinds.by_script import broken, once
from faults.catalogue import fault_of
from faults.plan import Plan, TimedFault
from nodes.protocol.codes import RequestCode

BEGIN_MS, END_MS = 40_000, 100_000


def runs(breaker):
    """Which consumers run."""
    cluster = breaker.stage.cluster
    return [
        name for name, host in cluster.hosts.items() if host.role == "consumer" and breaker.state(name) == "running"
    ]


def members(breaker, broker="broker-a"):
    """Who a broker has on its list, by node."""
    ids = breaker.stage.node(broker).tables.clients.consumers.client_ids(GROUP)
    return sorted(breaker.stage.cluster.names[client.partition("@")[0]] for client in ids)


@pytest.fixture(scope="module")
def up():
    return broken(busy_cluster(1), once("scale g 4", BEGIN_MS, END_MS), for_ms=140_000)


@pytest.fixture(scope="module")
def down():
    return broken(busy_cluster(1, consumers=3), once("scale g 1", BEGIN_MS, END_MS), for_ms=140_000)


def owners(trace, at_ms):
    return sorted(dict.fromkeys(name for names in trace.owners(at_ms).values() for name in names))


def test_newcomers_are_named_after_the_group_and_own_queues_until_they_leave(up):
    assert owners(up, BEGIN_MS - 1) == ["c1", "c2"]
    assert owners(up, END_MS - 1) == ["c1", "c2", "g+3", "g+4"]
    assert owners(up, 140_000) == ["c1", "c2"]
    assert all(len(names) == 1 for names in up.owners(END_MS - 1).values())
    assert all(len(names) == 1 for names in up.owners(140_000).values())


def test_the_last_ones_leave_in_good_order_and_come_back(down):
    assert owners(down, BEGIN_MS - 1) == ["c1", "c2", "c3"]
    assert owners(down, END_MS - 1) == ["c1"]
    assert owners(down, 140_000) == ["c1", "c2", "c3"]
    left = down.select("rpc", code=int(RequestCode.UNREGISTER_CLIENT), kind="request", until_ms=END_MS - 1)
    assert sorted(dict.fromkeys(row.src for row in left)) == ["c2", "c3"]
    events = [(row.node, row.event) for row in down.select("lifecycle", after_ms=BEGIN_MS - 1, until_ms=END_MS - 1)]
    assert sorted(events) == [("c2", "stopped"), ("c2", "stopping"), ("c3", "stopped"), ("c3", "stopping")]


def test_members_have_addresses_of_their_own_and_brokers_list_them():
    seen = []

    async def deeds(breaker):
        await breaker.stage.at_ms(BEGIN_MS)
        await breaker.begin("up", "scale g 5")
        await breaker.stage.for_ms(3_000)
        seen.append((members(breaker), members(breaker, "broker-b")))
        addresses = breaker.stage.cluster.addresses
        seen.append(len(dict.fromkeys(addresses.values())) == len(addresses))
        await breaker.begin("down", "scale g 1")
        await breaker.stage.for_ms(3_000)
        seen.append((members(breaker), members(breaker, "broker-b")))

    broken(busy_cluster(1), deeds)

    everybody = ["c1", "c2", "g+3", "g+4", "g+5"]
    assert seen == [(everybody, everybody), True, (["c1"], ["c1"])]


def test_of_overlapping_ones_the_newest_decides_and_without_any_the_scenario():
    seen = []

    async def deeds(breaker):
        await breaker.stage.at_ms(BEGIN_MS)
        for verb, fault_id, line in (
            ("begin", "up", "scale g 4"),
            ("begin", "down", "scale g 1"),
            ("end", "up", ""),
            ("begin", "more", "scale g 3"),
            ("end", "more", ""),
            ("end", "down", ""),
        ):
            await (breaker.begin(fault_id, line) if verb == "begin" else breaker.end(fault_id))
            await breaker.stage.for_ms(3_000)
            seen.append(runs(breaker))

    broken(busy_cluster(1), deeds)

    two, four, item, three = ["c1", "c2"], ["c1", "c2", "g+3", "g+4"], ["c1"], ["c1", "c2", "g+3"]
    assert seen == [four, item, item, three, item, two]


def test_a_group_may_have_no_one_for_a_while():
    trace = broken(busy_cluster(1), once("scale g 0", BEGIN_MS, END_MS), for_ms=140_000)

    assert owners(trace, END_MS - 1) == []
    assert owners(trace, 140_000) == ["c1", "c2"]


def test_a_fault_may_name_somebody_who_comes_later(tmp_path):
    lines = {
        "up": ("scale g 3", 20_000, 60_000),
        "kill": ("kill g+3", 30_000, 10_000),
        "early": ("kill g+3", 5_000, 1_000),
    }
    plan = Plan(tuple(TimedFault(name, fault_of(line), at, lasting) for name, (line, at, lasting) in lines.items()))
    scenario = attrs.evolve(busy_cluster(100_000), faults=plan)
    outcome = outcome_of(scenario, tmp_path)

    lives = [(row.at_ms, row.event) for row in outcome.trace.select("lifecycle", node="g+3") if row.event != "ready"]
    assert [event for _, event in lives] == ["started", "killed", "started", "stopping", "stopped"]
    assert [at_ms for at_ms, _ in lives[:4]] == [20_000, 30_000, 40_000, 80_000]
    assert [row.hits for row in outcome.trace.select("faults", event="end")] == [0, 1, 1]
    assert outcome.left == {}


def test_what_was_done_by_hand_to_a_newcomer_can_be_loaded_and_done_again(tmp_path):
    by_hand = Plan(
        (TimedFault("scale-1", fault_of("scale g 3"), 20_000), TimedFault("kill-1", fault_of("kill g+3"), 30_000))
    )
    text = scenario_by_hand(busy_cluster(100_000), ByHand(by_hand), 50_000)
    again = loads(text, "by_hand.toml")

    assert again.faults == by_hand
    assert again.run_for_ms == 50_000
    assert len(outcome_of(again, tmp_path).trace.select("lifecycle", node="g+3", event="killed")) == 1


@pytest.mark.parametrize(
    ("first", "healed_first"),
    [("kill c2", True), ("suspend c2", True), ("suspend c2", False), ("power-off c2", True), ("power-off c2", False)],
)
def test_who_was_hit_when_the_group_became_smaller_is_away_as_long_as_either_lasts(first, healed_first):
    seen = []

    async def deeds(breaker):
        await breaker.stage.at_ms(BEGIN_MS)
        await breaker.begin("one", first)
        await breaker.begin("two", "scale g 1")
        await breaker.stage.for_ms(5_000)
        for fault_id in ("one", "two") if healed_first else ("two", "one"):
            await breaker.end(fault_id)
            await breaker.stage.for_ms(5_000)
            seen.append(runs(breaker))

    broken(busy_cluster(1), deeds)

    assert seen == [["c1"], ["c1", "c2"]]


def test_who_was_killed_meanwhile_stays_dead_until_that_is_healed():
    states = {}

    async def deeds(breaker):
        await breaker.stage.at_ms(BEGIN_MS)
        await breaker.begin("kill", "kill c2")
        await breaker.begin("scale", "scale g 1")
        await breaker.stage.at_ms(BEGIN_MS + 1_000)
        await breaker.end("scale")
        states["after the scale"] = breaker.state("c2")
        await breaker.end("kill")
        states["after the kill"] = breaker.state("c2")

    broken(busy_cluster(1), deeds, for_ms=60_000)
    assert states == {"after the scale": "down", "after the kill": "running"}
