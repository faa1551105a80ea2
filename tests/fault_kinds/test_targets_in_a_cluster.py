"""Target faults hit in a cluster that runs: who serves, who owns, who is a member now."""

import json

import attrs
import pytest

from emulator.spec import loads
from fault_kinds.at_work import busy_cluster, outcome_of
from fault_kinds.by_script import broken
from faults.catalogue import fault_of
from faults.plan import Plan, TimedFault
from support.grouped import MASTER, S1, S2, a_group


def test_the_acting_master_is_the_master_and_after_its_death_the_lowest_slave():
    seen = []

    async def deeds(breaker):
        stage = breaker.stage
        await stage.at_ms(20_000)
        seen.append(await breaker.begin("1", "suspend acting master of ba"))
        seen.append(await breaker.begin("2", "suspend acting master of ba"))
        await breaker.end("1")
        await breaker.end("2")
        await stage.kill(MASTER)
        await stage.for_ms(30_000)
        seen.append(await breaker.begin("3", "kill acting master of ba"))
        seen.append(await breaker.begin("4", 'loss 10 "acting master of ba" ns-1'))
        seen.append(await breaker.begin("5", "skew master of ba 100"))
        seen.append(await breaker.begin("6", "skew slaves of ba 100"))

    broken(a_group(), deeds)

    assert seen == [MASTER, S1, S1, f"{S2} <-> ns-1", MASTER, f"{S1}, {S2}"]


def test_who_was_elected_is_the_master_and_who_leads_the_controllers_their_leader():
    text = '[scenario]\nname = "e"\nrun_for_s = 90\npreset = "controller"\n[[broker]]\nname = "ba"\nreplicas = 3\n'
    seen = []

    async def deeds(breaker):
        stage = breaker.stage
        await stage.at_ms(30_000)
        for number, line in enumerate(("suspend master of ba", "skew slaves of ba 5", "suspend leader of controllers")):
            seen.append(await breaker.begin(str(number), line))
        await stage.for_ms(40_000)
        for number, target in enumerate(("master of ba", "slaves of ba", "leader of controllers"), 3):
            line = f"skew {target} 7"
            seen.append(await breaker.begin(str(number), line))

    broken(loads(text, "elected.toml"), deeds)

    (master, *slaves), (now, *others) = ((name, *rest.split(", ")) for name, rest, _ in (seen[:3], seen[3:]))
    assert sorted((master, *slaves)) == sorted((now, *others)) == ["ba", "ba-s1", "ba-s2"]
    assert now in slaves, "the frozen master believes in itself, too, but was elected before"
    assert (seen[2] == seen[5], seen[2][:-1], seen[5][:-1]) == (False, "controller-", "controller-")


def test_the_owner_is_who_holds_the_queue_now():
    seen = []

    async def deeds(breaker):
        stage = breaker.stage
        await stage.at_ms(45_000)
        seen.append(await breaker.begin("1", "kill owner of orders/broker-a/3"))
        await stage.for_ms(60_000)
        seen.append(await breaker.begin("2", "suspend owner of orders/broker-a/3 of g"))
        seen.append(await breaker.begin("3", "suspend owner of orders/broker-a/3 of no one"))

    trace = broken(busy_cluster(1), deeds)

    before, after = (trace.owners(at_ms)["broker-a", 3] for at_ms in (44_999, 104_999))
    assert seen == [*before, *after, "owner of orders/broker-a/3 of no one"]
    assert before != after


def test_members_of_a_group_are_those_of_now():
    seen = []

    async def deeds(breaker):
        await breaker.stage.at_ms(10_000)
        seen.append(await breaker.begin("1", "skew members of g 5"))
        await breaker.begin("up", "scale g 4")
        seen.append(await breaker.begin("2", "skew members of g 5"))
        await breaker.begin("down", "scale g 1")
        seen.append(await breaker.begin("3", "skew members of g 5"))
        seen.append(await breaker.begin("4", "skew nameservers 5"))
        seen.append(await breaker.begin("5", "skew servers 5"))
        seen.append(await breaker.begin("6", "skew producers 5"))

    broken(busy_cluster(1), deeds)

    assert seen == ["c1, c2", "c1, c2, g+3, g+4", "c1", "ns-1, ns-2", "ns-1, ns-2, broker-a, broker-b", "p1"]


def drawn(seed, *fault_ids):
    seen = []

    async def deeds(breaker):
        seen.extend([await breaker.begin(fault_id, "skew random nodes 5") for fault_id in fault_ids])

    broken(attrs.evolve(busy_cluster(1, consumers=4), seed=seed), deeds)
    return dict(zip(fault_ids, seen, strict=True))


def test_who_is_drawn_depends_on_the_seed_and_on_the_name_of_the_fault_alone():
    both = drawn(1, "one", "other")

    assert both == {**drawn(1, "other"), **drawn(1, "one")}
    assert both["one"] != both["other"]
    assert len(dict.fromkeys(drawn(seed, "one")["one"] for seed in range(6))) > 3


def test_the_row_of_a_fault_names_who_was_meant_and_who_it_is(tmp_path):
    plan = Plan((TimedFault("it", fault_of("suspend minor brokers"), 5_000, 5_000),))
    trace = outcome_of(attrs.evolve(busy_cluster(20_000), faults=plan), tmp_path).trace
    begin, end = trace.select("faults")
    (suspended,) = trace.select("lifecycle", event="suspended")

    assert begin.subject == end.subject == suspended.node
    assert json.loads(begin.parameters) == json.loads(end.parameters) == {"asked": "minor brokers"}


@pytest.mark.parametrize(
    "line",
    [
        "kill owner of orders/broker-a/0",
        "power-off owner of orders/broker-a/0",
        "cut 'owner of orders/broker-a/0' ns-1",
        "slow-cpu owner of orders/broker-a/0 100",
        "slow-disk owner of orders/broker-a/0 100",
        "partition isolate producers among ns-1, broker-a",
        "jump owner of orders/broker-a/0 100",
    ],
)
def test_a_fault_of_a_plan_that_means_no_one_begins_does_nothing_and_ends(tmp_path, line):
    alone = attrs.evolve(busy_cluster(20_000), consumers=())
    alone = attrs.evolve(alone, faults=Plan((TimedFault("it", fault_of(line), 5_000, 5_000),)))
    outcome = outcome_of(alone, tmp_path)
    begin, end = outcome.trace.select("faults")

    assert (begin.event, end.event) == ("begin", "end")
    assert (begin.at_ms, end.at_ms) == (5_000, 10_000)
    assert begin.subject == end.subject == fault_of(line).scope.describe()
    assert end.hits == 0
    assert outcome.left == {}
    assert outcome.trace.select("lifecycle", after_ms=5_000, until_ms=19_999) == []


def test_a_fault_that_meant_no_consumer_holds_no_one_down():
    async def deeds(breaker):
        stage = breaker.stage
        await stage.at_ms(100)
        await breaker.begin("nobody", "kill owner of orders/broker-a/0")
        await breaker.begin("kill", "kill broker-a")
        await breaker.end("kill")
        assert breaker.state("broker-a") == "running"
        await breaker.end("nobody")
        assert breaker.state("broker-a") == "running"

    broken(attrs.evolve(busy_cluster(1), consumers=()), deeds)
