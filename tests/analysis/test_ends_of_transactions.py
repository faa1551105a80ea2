"""V16: a committed transaction is delivered, and no other; from small traces, and by brute force."""

import random

import pytest

from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.judge import broken
from emulator.analysis.report import judgements
from support.every_case import each_case

END_S = 600
ASKS_S = Bounds().asks_ms / 1_000
MASTER, SLAVE, OTHER, SHOP = "ba", "ba-s1", "bb", "shop"


def a_group():
    """A master and a neighbour that run the special services from the start on."""
    trace = HandMadeTrace()
    trace.roles |= dict.fromkeys((MASTER, SLAVE, OTHER), "broker") | {SHOP: "producer"}
    trace.at(0).life(MASTER, "started").life(SLAVE, "started").life(OTHER, "started").life(SHOP, "started")
    trace.believe(MASTER, True, "broker-a", "special_service")
    return trace.believe(OTHER, True, "broker-b", "special_service")


def half(trace, key="k", node=MASTER):
    return trace.message(node, "half", 0, group="", key=key, broker_name=name_of(node))


def say(trace, state="commit", key="k"):
    return trace.message(SHOP, "decided", -1, group="", tags=state, key=key)


def end(trace, state="commit", key="k", node=MASTER):
    return trace.message(node, "ended", 0, group="", tags=state, key=key, broker_name=name_of(node))


def name_of(node):
    return "broker-b" if node == OTHER else "broker-a"


def transactions(trace, end_s=END_S):
    found = found_in(trace, end_s)
    (row,) = found["transactions"]
    assert ("V16" in broken(found)) is row.violation
    return row


def test_who_commits_is_reported_with_its_delay_and_breaks_nothing():
    trace = end(say(half(a_group().at(10)).at(12)).at(12.5))
    row = transactions(trace)

    assert (row.broker_name, row.topic, row.transactions, row.committed) == ("broker-a", "t", 1, 1)
    assert (row.lost, row.again, row.unasked, row.late_ns / SECOND) == (0, 0, 0, 2.5)
    (judged,) = [judgement for judgement in judgements(found_in(trace, END_S)) if judgement.id == "V16"]
    assert judged.rows == ()


def test_who_rolls_back_is_not_lost():
    row = transactions(end(say(half(a_group().at(10)).at(12), "rollback").at(12.5), "rollback"))

    assert (row.rolled_back, row.committed, row.lost, row.violation) == (1, 0, 0, False)


@pytest.mark.parametrize(("after_s", "lost"), [(ASKS_S, 0), (ASKS_S + 0.1, 1)])
def test_a_commit_that_no_one_stores_or_asks_about_for_two_rounds_is_lost(after_s, lost):
    row = transactions(say(half(a_group().at(10)).at(12)), 12 + after_s)

    assert (row.lost, row.open, row.violation) == (lost, 1 - lost, bool(lost))


def test_a_broker_that_still_asks_has_lost_nothing_however_long_no_one_answers():
    trace = say(half(a_group().at(10)).at(12))
    for at_s in range(40, END_S, 30):
        half(trace.at(at_s))

    assert transactions(trace).lost == 0


def test_a_broker_that_is_away_asks_when_it_is_back_and_a_slave_that_acts_does_not_have_to():
    away = say(half(a_group().at(10)).at(12)).at(13).life(MASTER, "killed")
    away.believe(SLAVE, True, "broker-a", "special_service")
    assert transactions(away).lost == 0

    asleep = say(half(a_group().at(10)).at(12)).at(13).life(MASTER, "suspended").at(400).life(MASTER, "resumed")
    assert [transactions(asleep, 400 + after_s).lost for after_s in (ASKS_S - 2, ASKS_S + 2)] == [0, 1]


def test_a_half_message_that_escaped_is_asked_about_by_the_broker_that_has_it_now():
    trace = half(say(half(a_group().at(10)).at(12)).at(300), node=OTHER)

    assert [transactions(trace, 300 + after_s).lost for after_s in (ASKS_S, ASKS_S + 0.1)] == [0, 1]
    row = transactions(end(say(trace.at(310)).at(310.1), node=OTHER))
    assert (row.broker_name, row.transactions, row.committed) == ("broker-a", 1, 1)


@pytest.mark.parametrize("states", [(), ("unknown",), ("rollback",)])
def test_a_transaction_that_no_one_committed_waits_for_ever(states):
    trace = half(a_group().at(10)).at(12)
    for state in states:
        say(trace, state)

    assert (transactions(trace).lost, transactions(trace).open) == (0, 1)


def test_what_is_stored_once_more_is_counted_and_not_judged():
    trace = end(end(say(half(a_group().at(10)).at(12)).at(13)).at(40), node=OTHER)

    assert (transactions(trace).again, transactions(trace).committed, transactions(trace).violation) == (1, 1, False)


@each_case(("answer", "unasked"), [("unknown", 1), ("rollback", 1), ("commit", 0), (None, 0)])
def test_what_came_although_its_producer_never_said_so_is_judged_unless_it_reports_nothing(answer, unasked):
    trace = half(a_group().at(10)).at(12)
    if answer is not None:
        say(trace, answer)
    row = transactions(end(trace.at(13)))

    assert (row.unasked, row.violation) == (unasked, bool(unasked))


def test_a_commit_that_is_said_too_late_excuses_nothing():
    assert transactions(say(end(say(half(a_group().at(10)).at(11), "unknown").at(12)).at(13))).unasked == 1


@pytest.mark.parametrize(("kind", "violation"), [("clock_skew", False), ("clock_jump", False), ("slow_disk", True)])
def test_a_broker_reports_the_age_of_half_messages_by_its_clock(kind, violation):
    trace = a_group().at(5).fault("begin", "f", kind, MASTER)

    assert transactions(say(half(trace.at(10)).at(12))).violation is violation


def test_decisions_and_ends_of_what_is_no_half_message_are_nobodys():
    assert found_in(end(say(a_group().at(10))), END_S)["transactions"] == ()


def test_the_oracle_agrees_with_brute_force():
    for seed in range(200):
        chance = random.Random(seed)
        trace, events = a_group(), []
        for number in range(chance.randrange(1, 24)):
            kind = chance.choice(["half"] * 3 + ["say"] * 3 + ["end"] * 2)
            state = chance.choice(["commit", "commit", "rollback", "unknown"])
            if kind == "end" and state == "unknown":
                state = "commit"
            at_ms, key = chance.randrange(0, 580_000), str(chance.randrange(5))
            events.append((at_ms, number, kind, key, state, chance.choice([MASTER, OTHER])))
        half(trace.at(0), "first")
        for at_ms, _, kind, key, state, node in sorted(events):
            trace.at(at_ms / 1_000)
            if kind == "half":
                half(trace, key, node)
            elif kind == "say":
                say(trace, state, key)
            else:
                end(trace, state, key, node)
        rows = found_in(trace, END_S)["transactions"]
        names = ("transactions", "committed", "rolled_back", "lost", "again", "unasked")
        assert tuple(sum(getattr(row, name) for row in rows) for name in names) == naive(sorted(events)), seed
        assert all(row.open >= 0 for row in rows)


def naive(events):
    """Key by key, from its first half message on; both brokers work all the time."""
    totals = [1, 0, 0, 0, 0, 0]  # the one that is always there, open
    for key in map(str, range(5)):
        mine = [event for event in events if event[3] == key]
        first = next((i for i, event in enumerate(mine) if event[2] == "half"), None)
        if first is None:
            continue
        mine = mine[first:]
        commits = [i for i, event in enumerate(mine) if event[2] == "end" and event[4] == "commit"]
        rolled_back = any(event[2] == "end" and event[4] == "rollback" for event in mine)
        yes = [event[0] for event in mine if event[2] == "say" and event[4] == "commit"]
        last_half = max(event[0] for event in mine if event[2] == "half")
        totals[0] += 1
        totals[1] += bool(commits)
        totals[2] += rolled_back and not commits
        quiet_s = END_S - max([last_half, *yes]) / 1_000
        totals[3] += not commits and not rolled_back and bool(yes) and quiet_s > ASKS_S
        totals[4] += max(0, len(commits) - 1)
        before = [[event[4] for event in mine[:i] if event[2] == "say"] for i in commits]
        totals[5] += any(answer and "commit" not in answer for answer in before)
    return tuple(totals)
