"""V17: an epoch has one master, epochs rise, and a master is in its SyncStateSet."""

import random

from analysis.trace_rows import HandMadeTrace, found_in
from emulator.analysis.judge import broken
from emulator.analysis.oracles.elections import ElectionFlaw
from emulator.why.worst import TITLES
from support.every_case import each_case

BA, S1, CONTROLLER, NAME = "ba", "ba-s1", "controller-1", "ba"
END_S = 500


def a_group():
    trace = HandMadeTrace()
    trace.roles |= dict.fromkeys((BA, S1), "broker") | {CONTROLLER: "controller"}
    return trace.at(0).life(BA, "started").life(S1, "started").life(CONTROLLER, "started")


def role(trace, node, replica, master, epoch, serves_as=None):
    serves_as = serves_as or ("master" if replica == master else "slave")
    value = {"replica": replica, "serves_as": serves_as, "master": master, "epoch": epoch}
    return trace.believe(node, value, NAME, "broker_role")


def state(trace, master, epoch, *in_sync):
    value = {"master": master, "epoch": epoch, "in_sync": list(in_sync), "in_sync_epoch": 1}
    return trace.believe(CONTROLLER, value, NAME, "sync_state")


def flaws(trace):
    found = found_in(trace, END_S)
    assert ("V17" in broken(found)) is bool(found["elections"])
    return [(row.what, row.node, row.epoch, row.known) for row in found["elections"]]


def switched():
    """The master dies, its slave is elected, and the old one comes back."""
    trace = state(role(role(a_group(), BA, 1, 1, 1), S1, 2, 1, 1), 1, 1, 1, 2).at(10).life(BA, "killed")
    trace = role(state(trace.at(11), 2, 2, 2), S1, 2, 2, 2)
    return role(trace.at(20).life(BA, "started"), BA, 1, None, 0, "slave")


def test_an_election_after_a_death_has_no_flaw_and_who_comes_back_begins_again():
    assert flaws(role(switched().at(21), BA, 1, 2, 2)) == []
    assert "V17" in TITLES


def test_a_master_that_hears_of_its_successor_serves_an_instant_more_and_is_no_second_one():
    assert flaws(role(switched().at(21), BA, 1, 2, 2, "master")) == []


def test_two_replicas_that_take_themselves_for_master_of_one_epoch_are_reported_also_one_after_the_other():
    second = (ElectionFlaw.SECOND_MASTER, BA, 2, "replica 2")
    assert flaws(role(switched().at(21), BA, 1, 1, 2)) == [second]
    later = role(role(switched().at(21), S1, 2, 2, 2, "slave").at(30), BA, 1, 1, 2)
    assert flaws(later) == [second]


def test_a_process_that_hears_of_an_earlier_epoch_is_reported_once():
    trace = role(switched().at(30), S1, 2, 1, 1)
    assert flaws(role(trace.at(31), S1, 2, 1, 1, "slave")) == [(ElectionFlaw.EPOCH_FELL, S1, 1, "epoch 2")]


def test_a_sync_state_set_without_its_master_is_notified_and_one_without_a_master_is_not():
    assert flaws(state(switched().at(30), None, 3, 1)) == []
    assert flaws(state(switched().at(30), 1, 3, 2)) == [(ElectionFlaw.OUT_OF_SYNC, CONTROLLER, 3, "2")]


def naive(beliefs):
    """(flaw, node, epoch) of all beliefs, each once."""
    found = {}
    for at, (node, life, epoch, replica, serves) in enumerate(beliefs):
        if any(belief[:2] == (node, life) and belief[2] > epoch for belief in beliefs[:at]):
            found[ElectionFlaw.EPOCH_FELL, node, epoch] = None
        masters = [belief[3] for belief in beliefs[: at + 1] if belief[4] and belief[2] == epoch]
        if serves and masters[0] != replica:
            found[ElectionFlaw.SECOND_MASTER, node, epoch] = None
    return sorted(found)


@each_case("seed", range(20))
def test_random_beliefs_have_the_flaws_that_comparing_each_with_all_before_finds(seed):
    chance, trace, beliefs, lives = random.Random(seed), a_group(), [], {BA: 0, S1: 0}
    for second in range(1, 40):
        node = chance.choice((BA, S1))
        replica, epoch, serves = {BA: 1, S1: 2}[node], second // 6 + chance.randrange(3), chance.random() < 0.4
        trace.at(second)
        if chance.random() < 0.2:
            trace.life(node, "killed").life(node, "started")
            lives[node] += 1
        role(trace, node, replica, replica if serves else 3, epoch)
        beliefs.append((node, lives[node], epoch, replica, serves))
    assert sorted(flaw[:3] for flaw in flaws(trace)) == naive(beliefs)
