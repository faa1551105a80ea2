"""What may end a harm is tried on the run itself, and is shown with what gets worse."""

import pytest

from counterfactuals.two_faults import TEXT, repeated_run
from emulator.analysis.attribution.explanation import RuleOfRocketMQ
from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.judge import judge_run
from emulator.counterfactuals.remedies import tried, with_candidate
from emulator.counterfactuals.run_variants import VariantResult
from emulator.counterfactuals.words import price_words
from emulator.run import run_scenario
from emulator.spec import from_dict, loads, to_dict
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from emulator.why.candidates import MECHANISMS, RunTerms, candidate_options, candidates, reachable
from support.every_case import each_case

LAG = ("consumer lag", "shop orders")
EVERY_ROLE = (
    TEXT
    + """
[[proxy]]
name = "proxy-1"
"""
)
ACTS = (
    {"id": "closed", "kind": "update_sub_group", "at_ms": 32_000, "group": "shop", "on": "broker-b",
     "options": {"consumeEnable": "false"}},
    {"id": "wiped", "kind": "wipe_write_perm", "at_ms": 5_000, "broker": "broker-a"},
    {"id": "read-only", "kind": "update_topic_perm", "at_ms": 5_000, "topic": "orders", "perm": 4},
)  # fmt: skip
TERMS = RunTerms(longest_ms=300_000, pools=("sendMessage", "pullMessage"), acts=ACTS)


@pytest.fixture(scope="module")
def repeated(tmp_path_factory):
    scenario = loads(TEXT, "two.toml")
    path = run_scenario(scenario, level=TraceLevel.FINDINGS, runs=tmp_path_factory.mktemp("runs")).path
    run = open_run(path)
    return repeated_run(judge_run(run), run, remedies=True)


@each_case("harm", MECHANISMS)
def test_every_candidate_of_every_harm_is_one_that_a_scenario_can_have(harm):
    tables = to_dict(loads(EVERY_ROLE, "two.toml"))

    found = candidates(harm, TERMS)

    assert found
    for candidate in found:
        changed = with_candidate(tables, candidate)
        assert from_dict(changed)
        assert changed != tables
        assert candidate.why


def test_a_time_out_outlasts_the_fault_and_acts_are_taken_back():
    found = [candidate.title for candidate in candidates("messages consumed again", TERMS)]

    assert found[:3] == [
        "update-sub-group shop consumeEnable=true on broker-b at 52 s",
        "add-write-perm broker-a at 25 s",
        "update-topic-perm orders 6 at 25 s",
    ]
    assert "channelExpiredTimeout = 360000 ms of brokers" in found
    assert candidate_options("messages consumed again")[0] == "channelExpiredTimeout"


def test_against_addresses_that_lead_nowhere_others_are_given_and_nothing_else_is_tried():
    tables = {"private_network": [{"publish": {"10.0.0.1:30911": "broker-a:10911"}}], "proxy": [{"name": "proxy-1"}]}
    causes = tuple(CauseShare("", "rule", rule, -1, 1.0, 0.0) for rule in RuleOfRocketMQ)
    others = tuple(cause for cause in causes if cause.what != RuleOfRocketMQ.UNREACHABLE)
    terms = RunTerms(reachable=reachable(causes, tables))

    assert reachable(others, tables) == ()
    assert [candidate.title for candidate in candidates("failed sends", terms)] == [
        "brokerIP1 = 10.0.0.1 of brokers",
        "useEndpointPortFromRequest = true of proxies",
    ]
    assert candidate_options("failed sends", terms) == ("brokerIP1", "useEndpointPortFromRequest")
    assert [change.value for change in reachable(causes, {"broker": [{"options": {"brokerIP1": "10.9.9.9"}}]})] == [""]


def test_what_helps_is_shown_with_its_price_and_the_rest_as_tried(repeated):
    lines = repeated.of_harm(LAG)
    begin = lines.index("what ends it, tried on this run")
    helping = lines[begin + 1]

    assert helping.startswith("  update-sub-group shop consumeEnable=true on broker-b at 52 s: ")
    assert " message-seconds for 8,603" in helping or " messages for 8,603" in helping
    assert any("no help: " in line for line in lines[begin:])


def test_a_rule_that_is_broken_only_then_is_the_first_price():
    (candidate, *_) = candidates("no owner", RunTerms())
    whole = VariantResult({LAG: 100.0, ("no owner", "shop"): 9.0, ("V1", ""): 1.0})
    changed = VariantResult({LAG: 900.0, ("no owner", "shop"): 1.0, ("V1", ""): 90.0, ("V2", ""): 1.0})

    attempt = tried(candidate, ("no owner", "shop"), changed, whole)

    assert price_words(attempt).startswith("V2 1 violation for 0, consumer lag of shop orders 900 ")
