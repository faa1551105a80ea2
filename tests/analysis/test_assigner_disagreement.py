"""V13: the members of a group have one assigner, from traces small enough to check by eye, and by brute force."""

import random

import pytest

from analysis.naive_oracles import NaiveRun
from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.findings.finding import Cause
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.report import judgements

END_S = 300
CALM_S = 100
"""After all that the start explains."""
KINDS = ("assigner", "epoch")
MODES = ("client", "broker", "assigner", "broadcasting")


def group_of_two():
    """Two members that have agreed at 1 s on an assigner and its allocation."""
    trace = HandMadeTrace()
    trace.roles |= {"ba": "broker", "bb": "broker"}
    trace.at(0).life("a", "started", "g").life("b", "started", "g").at(1)
    for node in ("a", "b"):
        trace.believe(node, "ba", kind="assigner").believe(node, {"assigner": "ba", "epoch": 1}, kind="epoch")
        trace.passed(node, mode="assigner")
    return trace.own("a", "acquired", offset=0)


def follow(trace, node, assigner, epoch):
    trace.believe(node, assigner, kind="assigner")
    return trace.believe(node, {"assigner": assigner, "epoch": epoch}, kind="epoch")


def reported(found):
    return [
        (row.kind, row.start_ns / SECOND, row.end_ns / SECOND, row.violation) for row in found["assigner_disagreements"]
    ]


def v13(found):
    return next(judgement for judgement in judgements(found) if judgement.id == "V13")


@pytest.mark.parametrize(("lasts_s", "violation"), [(21, False), (21.1, True)])
def test_two_assigners_are_forgiven_for_a_round(lasts_s, violation):
    trace = follow(group_of_two().at(CALM_S), "b", "bb", 2)
    found = found_in(follow(trace.at(CALM_S + lasts_s), "a", "bb", 2), END_S)

    assert reported(found) == [(kind, CALM_S, CALM_S + lasts_s, violation) for kind in KINDS]
    assert len(v13(found).violations) == 2 * violation
    assert v13(found).summary == "assigners differed 1 times, epochs differed 1 times"


@pytest.mark.parametrize(("lasts_s", "violation"), [(21, False), (21.1, True)])
def test_a_member_that_does_not_hear_of_a_allocation_follows_the_old_one(lasts_s, violation):
    trace = follow(group_of_two().at(CALM_S), "b", "ba", 2)
    found = found_in(follow(trace.at(CALM_S + lasts_s), "a", "ba", 2), END_S)

    assert reported(found) == [("epoch", CALM_S, CALM_S + lasts_s, violation)]


def test_a_member_that_sleeps_or_has_ended_disagrees_with_no_one():
    asleep = follow(group_of_two().at(CALM_S).life("a", "suspended").at(CALM_S + 1), "b", "bb", 2)
    ended = follow(group_of_two().at(CALM_S).life("a", "killed").at(CALM_S + 1), "b", "bb", 2)

    assert [row.active_ns for row in found_in(asleep, END_S)["assigner_disagreements"]] == [0, 0]
    assert v13(found_in(asleep, END_S)).violations == ()
    assert found_in(ended, END_S)["assigner_disagreements"] == ()


def test_what_a_cut_explains_is_baseline_and_the_rest_is_not():
    def violations(lasts_s):
        trace = group_of_two().at(CALM_S).fault("begin", "f", "cut", "a <-> ba")
        found = found_in(follow(trace.at(CALM_S + 130), "b", "ba", 2), CALM_S + lasts_s)
        return [(row.cause, row.explained_by, row.violation) for row in found["assigner_disagreements"]]

    # The silence of a member explains 151 s, and whoever learns late has a round.
    assert violations(172) == [(Cause.SILENT, "cut a <-> ba begins", False)]
    assert violations(172.1) == [(Cause.SILENT, "cut a <-> ba begins", True)]


def test_assigners_that_change_all_the_time_do_not_excuse_each_other():
    trace = group_of_two()
    for number in range(20):
        follow(trace.at(CALM_S + 10 * number), "b", ("bb", "bc")[number % 2], number)
    found = found_in(trace, END_S)

    assert {(row.kind, row.cause, row.violation) for row in found["assigner_disagreements"]} == {
        (kind, Cause.NONE, True) for kind in KINDS
    }


def test_members_that_allocate_in_different_ways_are_reported_although_a_member_that_allocates_says_nothing():
    trace = group_of_two()
    for second in range(60, 240, 20):
        trace.at(second).passed("a", mode="assigner").passed("b", mode="client")
    (row,) = found_in(trace, END_S)["assigner_disagreements"]

    assert (row.kind, row.subject, row.start_ns, row.end_ns) == ("rebalance_mode", "g", 60 * SECOND, END_S * SECOND)
    assert [(holder.value, holder.nodes) for holder in row.holders] == [('"assigner"', ("a",)), ('"client"', ("b",))]
    assert (row.censored, row.violation) == (True, True)
    assert v13(found_in(trace, END_S)).summary == "modes differed 1 times"


def test_members_that_broadcast_allocate_nothing():
    trace = group_of_two()
    for second in range(60, 240, 20):
        trace.at(second).passed("a", mode="broadcasting").passed("b", mode="broadcasting")
    assert found_in(trace, END_S)["assigner_disagreements"] == ()


@pytest.mark.parametrize(("lasts_s", "violation"), [(62, False), (62.1, True)])
def test_an_operator_who_says_who_allocates_explains_a_grace_period_and_a_round_for_that_group_alone(
    lasts_s, violation
):
    def judged(group):
        trace = group_of_two().at(CALM_S).fault("begin", "f", "rebalance", group).passed("a", mode="client")
        (row,) = found_in(trace.at(CALM_S + lasts_s).passed("b", mode="client"), END_S)["assigner_disagreements"]
        return row.cause, row.violation

    assert judged("g") == (Cause.ASSIGNER, violation)
    assert judged("h") == (Cause.NONE, True)


def test_queues_may_wait_for_a_new_assigner_to_collect_claims():
    def orphan(lasts_s):
        trace = group_of_two().believe("b", {"cids": ["a@1", "b@1"], "queues": {"broker-a": 1}})
        follow(trace.at(CALM_S), "b", "bb", 2)
        trace.own("a", "dropped").at(CALM_S + lasts_s).own("b", "acquired", offset=0)
        (row,) = found_in(trace, END_S, bounds=Bounds(grace_ms=30_000))["orphans"]
        return row.cause, row.explained_by, row.violation

    assert orphan(51) == (Cause.ASSIGNER, "b asks another assigner", False)
    assert orphan(51.1) == (Cause.ASSIGNER, "b asks another assigner", True)


# --- brute force ------------------------------------------------------------------------


class NaiveAssigners(NaiveRun):
    """Answers at any instant who holds what about who allocates."""

    def __init__(self, trace, end_ns):
        super().__init__(trace, end_ns)
        self.passes = trace.rows["passes"]
        self.instants = sorted({*self.instants, *(row[1] for row in self.passes if row[1] < end_ns)})

    def held(self, kind, role, subject, t):
        if kind != "rebalance_mode":
            return super().held(kind, role, subject, t)
        last = {}
        for _, t_ns, node, _, incarnation, _, group, _, mode, *_ in self.passes:
            if t_ns <= t and group == subject and mode != "broadcasting":
                last[node, incarnation] = mode
        return {holder: mode for holder, mode in last.items() if not self.ended(*holder, t)}

    def subjects(self):
        found = {(row[5], row[3], row[6]) for row in self.beliefs if row[5] in KINDS}
        return sorted(found | {("rebalance_mode", row[3], row[6]) for row in self.passes})

    def assigners(self):
        for about in self.subjects():

            def values(t, about=about):
                return len(set(self.held(*about, t).values()))

            for start, end, maximum, is_open in self.intervals(lambda t, values=values: values(t) > 1, values):
                yield (*about, start, end, maximum, is_open, self.awake_and_differing_ns(about, start, end))

    def awake_and_differing_ns(self, about, start, end):
        inside = [t for t in self.instants if start <= t < end]
        return sum(
            until - t
            for t, until in zip(inside, [*inside[1:], end], strict=True)
            if len({value for holder, value in self.held(*about, t).items() if self.is_awake(*holder, t)}) > 1
        )


def random_assigners(seed):
    """A run in which members change assigners, follow allocations, switch modes, sleep and end in any order."""
    chance = random.Random(f"assigners {seed}")
    trace, now = HandMadeTrace(), 0
    for _ in range(60):
        now += chance.choice((0, 0, 0, 1, 1, 2, 3))
        node, subject = trace.at(now) and chance.choice("abc"), chance.random()
        if subject < 0.5:
            kind = chance.choice(KINDS)
            trace.believe(node, chance.choice((None, 1, 2, 2, 3)), subject=chance.choice(("g/t", "h/t")), kind=kind)
        elif subject < 0.8:
            trace.passed(node, group=chance.choice("gh"), mode=chance.choice(MODES))
        else:
            event = chance.choice(("started", "suspended", "suspended", "resumed", "resumed", "killed", "stopped"))
            trace.life(node, event, "g, h")
    return trace, now + 5


def test_who_allocates_equals_brute_force_also_while_members_sleep():
    seen = slept = 0
    for seed in range(150):
        trace, end_s = random_assigners(seed)
        found = sorted(
            (row.kind, row.role, row.subject, row.start_ns, row.end_ns, row.views_max, row.censored, row.active_ns)
            for row in found_in(trace, end_s)["assigner_disagreements"]
        )
        assert found == sorted(NaiveAssigners(trace, end_s * SECOND).assigners()), f"random trace {seed}"
        seen += len(found)
        slept += sum(row[-1] < row[4] - row[3] for row in found)
    assert seen > 500
    assert slept > 50
