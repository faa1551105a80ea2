"""V4 where controllers elect masters: the offsets that a new master has, and those that the others copy from it."""

import pytest

from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.inputs.offsets import OffsetFault
from emulator.analysis.judge import broken
from emulator.analysis.report import judgements
from support.findings import offset_anomalies_of

OLD, NEW, OTHER, GROUP_NAME = "ba", "ba-s1", "ba-s2", "broker-a"
DIED_S = 100
BOUNDS = Bounds(copy_ms=13_000, master_silent_ms=15_000)


def a_group():
    trace = HandMadeTrace()
    trace.roles |= dict.fromkeys((OLD, NEW, OTHER), "broker")
    for node in (OLD, NEW, OTHER):
        role(trace.at(0).life(node, "started"), node, master=1, epoch=1)
    return trace


def role(trace, node, *, master, epoch, serves_as=None):
    replica = (OLD, NEW, OTHER).index(node) + 1
    serves_as = serves_as or ("master" if replica == master else "slave")
    value = {"replica": replica, "serves_as": serves_as, "master": master, "epoch": epoch}
    return trace.believe(node, value, GROUP_NAME, "broker_role")


def commits(trace, node, from_s, to_s):
    """A group commits its offset once a second; the offset is the instant."""
    for at_s in range(from_s, to_s + 1):
        trace.at(at_s).message(node, "committed", at_s, client_id="c1")
    return trace


def copied(trace, node, at_s, offset):
    return trace.at(at_s).message(node, "copied", offset, client_id="127.1.2.1:10911")


def switched(trace, at_s=DIED_S + 0.1, node=NEW, epoch=2):
    return role(trace.at(at_s), node, master=(OLD, NEW, OTHER).index(node) + 1, epoch=epoch)


def anomalies(trace, subject=OffsetFault.SWITCHED):
    found = found_in(trace, 500, bounds=BOUNDS)
    lines = [row for row in offset_anomalies_of(found) if row.what is subject]
    if any(row.violation for row in lines):
        assert "V4" in broken(found)
    return [(row.who, round(row.t_ns / SECOND, 1), row.expected, row.offset, row.violation) for row in lines]


def died_with_a_copy_from(copied_s):
    """The slave copies once, and later the master dies."""
    trace = commits(a_group(), OLD, 1, copied_s)
    copied(trace, NEW, copied_s + 0.1, copied_s)
    return switched(commits(trace, OLD, copied_s + 1, DIED_S).at(DIED_S).life(OLD, "killed"))


@pytest.mark.parametrize(("copied_s", "is_sick"), [(95, False), (88, False), (80, True)])
def test_a_new_master_may_lack_what_was_committed_since_the_last_copy_and_no_more(copied_s, is_sick):
    assert anomalies(died_with_a_copy_from(copied_s)) == [(NEW, 100.1, 100, copied_s, is_sick)]


def test_how_much_it_lacks_is_said_in_words():
    found = found_in(died_with_a_copy_from(80), 500, bounds=BOUNDS)
    (v4,) = [judgement.summary for judgement in judgements(found) if judgement.id == "V4"]
    assert v4 == "0 offsets back by commits, 20 because a new master had an old table"


def test_a_late_election_is_measured_from_the_death_and_not_from_the_election():
    trace = commits(a_group(), OLD, 1, 92)
    copied(trace, NEW, 92.1, 92)
    commits(trace, OLD, 93, DIED_S).life(OLD, "killed")
    assert anomalies(switched(trace, at_s=400)) == [(NEW, 400, 100, 92, False)]


@pytest.mark.parametrize(("copied_s", "is_sick"), [(90, False), (75, False), (60, True)])
def test_a_master_that_lives_may_have_been_silent_before_the_election(copied_s, is_sick):
    trace = commits(a_group(), OLD, 1, copied_s)
    copied(trace, NEW, copied_s + 0.1, copied_s)
    commits(trace, OLD, copied_s + 1, DIED_S)
    assert anomalies(switched(trace)) == [(NEW, 100.1, 100, copied_s, is_sick)]


def test_a_new_master_that_has_copied_nothing_has_no_offset():
    trace = commits(a_group(), OLD, 1, DIED_S).at(DIED_S).life(OLD, "killed")
    assert anomalies(switched(trace)) == [(NEW, 100.1, 100, 0, True)]


def test_a_new_master_that_has_all_or_more_is_no_finding():
    trace = copied(commits(a_group(), OLD, 1, DIED_S), NEW, DIED_S + 0.05, DIED_S)
    assert anomalies(switched(trace)) == []


def test_commits_that_waited_at_a_frozen_master_are_no_findings():
    trace = copied(commits(a_group(), OLD, 1, 80), NEW, 80.1, 80)
    commits(switched(commits(trace, OLD, 81, 85), at_s=95), NEW, 96, 120)
    assert anomalies(trace, OffsetFault.REGRESSED) == []
    for offset in (86, 87, 88):
        trace.at(120.5).message(OLD, "committed", offset, client_id="c1")
    commits(trace, NEW, 121, 130)
    assert anomalies(trace, OffsetFault.REGRESSED) == []
    trace.at(131).message(NEW, "committed", 100, client_id="c1")
    assert anomalies(trace, OffsetFault.REGRESSED) == [("c1", 131, 130, 100, True)]


def test_what_only_a_deposed_master_was_notified_is_the_last_commit_for_who_begins_behind_it():
    trace = copied(commits(a_group(), OLD, 1, 80), NEW, 80.1, 80)
    commits(switched(trace, at_s=95), OLD, 96, 120)
    trace.at(121).message(NEW, "committed", 100, client_id="c1")
    assert anomalies(trace, OffsetFault.REGRESSED) == [("c1", 121, 120, 100, True)]


def test_the_same_broker_elected_again_and_one_that_only_hears_of_it_are_no_findings():
    trace = commits(a_group(), OLD, 1, DIED_S)
    role(trace.at(101), OLD, master=1, epoch=2)
    role(trace, NEW, master=1, epoch=2)
    role(trace.at(102), OTHER, master=3, epoch=3, serves_as="slave")
    assert anomalies(trace) == []


def test_each_switch_is_compared_with_the_master_before_it():
    trace = commits(died_with_a_copy_from(95), NEW, 101, 140)
    copied(trace, OTHER, 140.1, 140)
    switched(commits(trace, NEW, 141, 145).at(145).life(NEW, "killed"), at_s=145.1, node=OTHER, epoch=3)
    assert anomalies(trace) == [(NEW, 100.1, 100, 95, False), (OTHER, 145.1, 145, 140, False)]


def test_brokers_that_copy_what_the_new_master_had_only_follow_it_and_fall_no_further():
    trace = commits(a_group(), OLD, 1, 85)
    copied(copied(trace, NEW, 85.1, 85), OTHER, 85.2, 85)
    switched(role(commits(trace, OLD, 86, 100), OTHER, master=2, epoch=2), at_s=101)
    copied(trace, OTHER, 120, 85)
    copied(role(trace.at(150), OLD, master=2, epoch=2), OLD, 160, 85)
    assert anomalies(trace, OffsetFault.COPIED) == [(OLD, 160, 100, 85, False)]
    copied(trace, OLD, 200, 70)
    assert anomalies(trace, OffsetFault.COPIED)[-1] == (OLD, 200, 85, 70, True)


def test_a_slave_may_follow_a_new_master_before_that_one_serves():
    trace = commits(a_group(), OLD, 1, 80)
    copied(trace, NEW, 80.1, 80)
    copied(commits(trace, OLD, 81, 84), OTHER, 84.1, 84)
    role(commits(trace, OLD, 85, 100), OTHER, master=2, epoch=2)
    switched(copied(trace, OTHER, 100.1, 80), at_s=101)
    assert anomalies(trace, OffsetFault.COPIED) == [(OTHER, 100.1, 84, 80, False)]


def test_a_copy_that_is_older_than_what_the_new_master_had_is_not_explained_by_the_switch():
    trace = commits(a_group(), OLD, 1, 85)
    copied(trace, NEW, 85.1, 85)
    role(switched(commits(trace, OLD, 86, 100)).at(150), OLD, master=2, epoch=2)
    copied(trace, OLD, 160, 40)
    assert anomalies(trace, OffsetFault.COPIED) == [(OLD, 160, 100, 40, True)]
