"""Verdicts about whole clusters: what is sick is called sick, and its healthy twin healthy.

Each scenario in `executed` fooled an earlier definition, or is the twin of one that did.
"""

from pathlib import Path

import pytest

from emulator.analysis.inputs.offsets import OffsetFault
from emulator.analysis.judge import judge_run
from emulator.analysis.rendering.shown_report import as_text
from emulator.analysis.report import RulesVerdict, Service, judgements
from emulator.run import run_scenario
from emulator.spec import load
from emulator.trace.run_directory import open_run
from emulator.why.worst import explanation, likely_faults, worst_findings
from support.findings import offset_anomalies_of

HERE = Path(__file__).parent / "executed"
EXAMPLES = Path(__file__).parents[2] / "examples"
SECOND = 1_000_000_000
BROKEN = {
    "different_topics": {"V2", "V8"},
    "equal_topics": set(),
    "different_tags": {"V7"},
    "broadcasting": set(),
    "broadcasting_stuck": set(),
    "broker_away": set(),
    "no_read_permission": set(),
    "offsets_again": {"V4", "V7"},
    "broker_restarts": set(),
    "frozen_owner": {"V4"},
    "short_and_again": {"V4", "V8", "V11"},
    "keys_in_order": set(),
    "keys_at_a_frozen_owner": {"V3", "V4", "V12"},
    "keys_on_all_queues": set(),
    "keys_moved": set(),
    "assigner": set(),
    "assigner_out_of_reach": {"V1", "V4", "V13"},
    "two_ways_to_divide": {"V13"},
    "a_broker_that_did_not_hear": {"V13"},
}
"""Mapping scenario -> invariants that its run breaks; none: it is valid."""
LONG = ("broker_restarts", "assigner", "keys_moved")
"""Healthy ones that take long: `make proofs` runs them."""
EXPLAINED = {
    "offsets_again": (
        {"V4": "node broker-a at 123s", "V7": "node broker-a at 123.058s"},
        {"lost_writes-1", "power_off-2"},
    ),
    "frozen_owner": ({"V4": "queue orders/broker-a/2 of shop at 360.009s"}, {"suspend-1"}),
    "different_topics": (
        {"V2": "queue orders/broker-a/4 of shop at 299.999s", "V8": "queue refunds/broker-a/3 of shop at 299.999s"},
        set(),
    ),
    "keys_at_a_frozen_owner": (
        {
            "V3": "queue orders/broker-a/1 of billing at 260s",
            "V4": "queue orders/broker-a/1 of billing at 260.206s",
            "V12": "queue orders/broker-a/1 of billing at 162.418s",
        },
        {"suspend-1"},
    ),
    "different_tags": ({"V7": "queue orders/broker-a/1 of shop"}, set()),
}
"""Mapping scenario -> (question by invariant, ids of the faults that may matter)."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The run of a scenario and its report, each made once."""
    runs, known = tmp_path_factory.mktemp("runs"), {}

    def of(name):
        if name not in known:
            run = open_run(run_scenario(load(HERE / f"{name}.toml"), runs=runs).path)
            known[name] = run, judge_run(run)
        return known[name]

    return of


@pytest.fixture(scope="module")
def reports(judged):
    """The report alone."""
    return lambda name: judged(name)[1]


def broken(report):
    return {judgement.id for judgement in judgements(report) if judgement.violations}


def test_every_scenario_has_a_verdict_here():
    assert sorted(path.stem for path in HERE.iterdir()) == sorted(BROKEN)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in BROKEN])
def test_the_verdict_is_right(reports, name):
    report = reports(name)
    assert broken(report) == BROKEN[name]
    assert report.verdict is (RulesVerdict.INVALID if BROKEN[name] else RulesVerdict.VALID)


def test_queues_that_no_one_ever_owned_are_orphans_and_their_messages_wait(reports):
    report = reports("different_topics")
    assert report["hand_overs"] == ()
    never = [row.queue for row in report["orphans"] if row.censored]
    assert len(never) == 8
    assert not {hold.queue for hold in report["holds"]} & set(never)
    waiting = {row.queue: row.backlog for row in report["stalls"] if row.censored}
    assert set(never) <= set(waiting)


def test_what_a_filter_keeps_from_a_group_is_lost_only_if_another_member_subscribes_to_it(reports, tmp_path):
    (lost,) = {(row.lost, row.unsubscribed) for row in reports("different_tags")["losses"][:1]}
    assert lost[0] == lost[1] > 250
    letters = judge_run(open_run(run_scenario(load(EXAMPLES / "dead_letters.toml"), runs=tmp_path).path))
    assert (letters.verdict, letters["losses"]) == (RulesVerdict.VALID, ())


def test_a_group_that_broadcasts_shares_nothing(reports):
    report = reports("broadcasting")
    assert (report["overlaps"], report["orphans"], report["duplicates"]) == ((), (), ())
    # c2 pulls without success until its next heartbeat: it had locked out the one that its new subscription needed.
    assert {row.node for row in report["stalls"]} == {"c2"}


def test_a_member_that_broadcasts_and_stands_still_pages_somebody_though_a_fault_explains_it(reports):
    report = reports("broadcasting_stuck")
    longest = max(report["stalls"], key=lambda row: row.end_ns - row.start_ns)
    assert (longest.node, longest.violation, longest.explained_by) == ("c2", False, "suspend c2")
    assert report.service is Service.PAGING


def test_queues_that_cannot_be_read_are_owed_no_owner(reports):
    away = (120 * SECOND, 300 * SECOND)
    for name, broker_name in (("broker_away", "broker-b"), ("no_read_permission", "broker-a")):
        of_broker = [row for row in reports(name)["orphans"] if row.queue.broker_name == broker_name]
        inside = [row for row in of_broker if away[0] + SECOND < row.end_ns and row.start_ns < away[1] - SECOND]
        assert inside == [], name


def test_messages_at_offsets_that_are_used_again_are_not_taken_for_the_old_ones(reports):
    report = reports("offsets_again")
    assert sum(row.reused for row in report["losses"]) == sum(row.lost for row in report["losses"]) > 50
    # No consumer consumed a message twice, although offsets were consumed twice.
    assert sum(row.duplicates for row in report["duplicates"]) == 0


def test_offsets_that_a_broker_loads_may_be_as_old_as_its_last_write_and_no_older(reports):
    def loaded(name):
        return [row for row in offset_anomalies_of(reports(name)) if row.what is OffsetFault.LOADED]

    assert [row.violation for row in loaded("broker_restarts")] == [False] * 4
    assert [row.violation for row in loaded("offsets_again")] == [True] * 4


def test_an_owner_that_sleeps_does_no_harm_until_it_wakes(reports):
    report = reports("frozen_owner")
    asleep = [row for row in report["overlaps"] if "consumer-2" in row.owners]
    assert sum(row.end_ns - row.start_ns for row in asleep) > 200 * SECOND
    assert sum(row.active_ns for row in asleep) < SECOND
    assert not any(row.violation for row in report["overlaps"])


def test_short_harm_that_returns_has_a_budget(reports):
    report = reports("short_and_again")
    assert len(report["overlaps"]) > 50
    assert not any(row.violation for row in report["overlaps"])
    (budget,) = report["budgets"]
    assert budget.violation
    assert budget.per_hour_s > 10 * report.bounds.budget_s


def test_an_ordered_group_keeps_the_order_of_keys_while_members_come_and_go(reports):
    report = reports("keys_in_order")
    assert (report["keys"], report["moved_keys"]) == ((), ())
    assert len(report["phases"]) == 9


def test_an_owner_that_wakes_inside_its_listener_has_a_key_that_another_one_has(reports):
    report = reports("keys_at_a_frozen_owner")
    (shared,) = [row for row in report["keys"] if row.violation]
    # Its successor began when the lock was old enough, and went on until it woke.
    assert 100 * SECOND < shared.start_ns < 200 * SECOND
    assert shared.two_in_queue_ns == shared.two_ns > 10 * SECOND
    assert [row.keys_two_ns for row in report["phases"]] == [0, shared.two_ns, 0]
    # Every id of its queues comes again after newer messages: it commits what it had got to when it fell asleep.
    assert sum(row.late for row in report["keys"]) > 100
    assert sum(row.overtaken for row in report["keys"]) == 0


def test_keys_on_all_queues_have_no_order_and_no_one_breaks_a_promise(reports):
    report = reports("keys_on_all_queues")
    hot = max(report["keys"], key=lambda row: row.messages)
    assert hot.key == "1"
    assert hot.overtaken > 0 == hot.overtaken_in_queue
    assert hot.two_ns > 30 * SECOND > 0 == hot.two_in_queue_ns
    assert {row.queues for row in report["moved_keys"]} == {4}


@pytest.mark.slow
def test_a_ring_moves_fewer_keys_than_a_modulo_when_queues_go_and_come_back(reports):
    moved = reports("keys_moved")["moved_keys"]
    by_modulo, by_ring = ([row for row in moved if row.topic == topic] for topic in ("by-modulo", "by-ring"))
    assert len(by_modulo) > 40 > 30 > len(by_ring) > 5
    assert {row.moves for row in moved} == {2}


def test_a_group_whose_members_allocate_in_different_ways_is_reported_with_the_ways_of_each(reports):
    def ways(name):
        (row,) = [row for row in reports(name)["assigner_disagreements"] if row.violation]
        assert (row.kind, row.censored) == ("rebalance_mode", True)
        return row.subject, {holders.value: holders.nodes for holders in row.holders}, round(row.start_ns / SECOND)

    different = {'"assigner"': ("c1", "c2"), '"client"': ("c3",)}
    assert ways("two_ways_to_divide") == ("shop", different, 2)
    assert ways("a_broker_that_did_not_hear") == ("shop", different, 206)
    reported = as_text(reports("two_ways_to_divide"))
    assert "c1, c2: one broker allocates, the assigner" in reported
    assert "c3: each member allocates for itself" in reported


def test_a_member_that_cannot_hear_its_assigner_follows_an_old_allocation_until_it_can(reports):
    violations = [row for row in reports("assigner_out_of_reach")["assigner_disagreements"] if row.violation]
    assert {(row.kind, len(row.holders), row.explained_by) for row in violations} == {
        ("epoch", 2, "cut c2 <-> broker-a begins")
    }
    assert all(340 < row.end_ns / SECOND < 345 for row in violations)


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_worst_finding_of_each_broken_invariant_is_explained(judged, name):
    run, report = judged(name)
    found = worst_findings(report, run)
    explained = {item.invariant: explanation(item.questions, run) for item in found}
    questions, faults = EXPLAINED[name]

    assert {invariant: " ".join(words) for invariant, (words, _) in explained.items()} == questions
    assert all(len(answer) > 3 for _, answer in explained.values())
    assert set(likely_faults(found)) == faults


def test_the_worst_finding_about_assigners_is_notified_in_a_sentence_with_its_chain_of_causes(judged):
    run, report = judged("assigner_out_of_reach")
    found = next(item for item in worst_findings(report, run) if item.invariant == "V13")
    words, lines = explanation(found.questions, run)

    assert found.words.startswith(
        "members of shop/orders followed different allocations: c1 and c3: 2 of broker-a; c2: 1 of"
    )
    assert words[:4] == ("epoch", "shop/orders", "of", "c2")
    assert any("calls of c2 to broker-a that failed" in line for line in lines)
