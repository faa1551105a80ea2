"""The headline of `rmqemu compare A B`: verdicts, symptoms with request storms, what explains them, which is better."""

import shlex

import attrs
import pytest
from typer.testing import CliRunner

from emulator.analysis.inputs.offsets import OffsetAnomaly, OffsetFault
from emulator.analysis.judge import judge_run
from emulator.analysis.measures.traffic import STORMS, Storm
from emulator.analysis.oracles.offset_regressions import OFFSET_REGRESSIONS
from emulator.analysis.oracles.stalls import STALLS, Stall
from emulator.analysis.report import RulesVerdict
from emulator.cli.main import app
from emulator.comparison import compare_runs
from emulator.comparison.headline import headline
from emulator.comparison.judged_pair import JudgedPair
from emulator.history.rows.queues import GroupQueue
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.spec.reading.differences import ScenarioDifference
from emulator.trace.run_directory import open_run
from support.campaigns import SHORT
from support.rmqemu_process import SMALL

S = 1_000_000_000
QUEUE = GroupQueue("g", "orders", "broker-a", 0)
OPTION = ScenarioDifference("broker", ("broker-a",), "enableSlaveActingMaster", first=False, second=True)
SEED = ScenarioDifference("scenario", (), "seed", 1, 2)
LIMIT = ScenarioDifference("service", (), "lag_s", 10, 60)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same short scenario with two seeds."""
    text = SMALL
    for old, new in SHORT.items():
        text = text.replace(old, new)
    folder = tmp_path_factory.mktemp("runs")
    base = loads(text, "small.toml")
    return [open_run(run_scenario(attrs.evolve(base, seed=seed), runs=folder).path) for seed in (1, 2)]


@pytest.fixture(scope="module")
def found(runs):
    return compare_runs(*runs)


@pytest.fixture(scope="module")
def report(runs):
    """Of the first run, without any finding."""
    item = JudgedPair(*map(judge_run, runs)).first
    return attrs.evolve(item, rows=dict.fromkeys(item.rows, ()), verdict=RulesVerdict.VALID, reasons=())


def storm(client="consumer-1", exchanges=159_995):
    return Storm(
        client, "broker-a", "PULL_MESSAGE", "PULL_NOT_FOUND", 10 * S, 110 * S, censored=False, exchanges=exchanges,
        max_per_s=2_000, healthy_per_s=4.0,
    )  # fmt: skip


def with_rows(report, **rows):
    return attrs.evolve(report, rows={**report.rows, **rows})


def lines(found, a, b, *scenario):
    return headline(attrs.evolve(found, scenario=scenario), JudgedPair(a, b))


def stall(length_s):
    return Stall(QUEUE, "", S, S + int(length_s * S), censored=False, backlog=9)


def test_a_storm_of_one_run_alone_is_named_with_its_requests_and_the_command_that_explains_it(found, report):
    stormy = with_rows(report, **{STORMS.name: (storm(), storm("consumer-2", 5))})

    first, second, third, fourth = lines(found, stormy, report, OPTION)

    assert first == "Rules: valid in both. Service: paging in A, calm in B."
    assert second == (
        "B has no request storm; 2 clients of A sent 160,000 requests in storms "
        f"(rmqemu why {shlex.quote(str(found.first.path))} storm)."
    )
    assert third == "What can explain it: broker broker-a: enableSlaveActingMaster false in A, true in B."
    assert fourth == (
        "B is better: the requests in storms were 0 (A: 160,000). "
        "One seed cannot distinguish an effect from chance: rmqemu campaign with many seeds can."
    )


def test_a_storm_of_the_other_run_is_named_too(found, report):
    stormy = with_rows(report, **{STORMS.name: (storm(),)})

    assert lines(found, report, stormy, OPTION)[1].startswith(
        f"A has no request storm; 1 client of B sent 159,995 requests in storms (rmqemu why {found.second.path}"
    )


def test_a_storm_of_both_is_named_although_it_makes_no_difference(found, report):
    stormy = with_rows(report, **{STORMS.name: (storm(),)})

    reported = lines(found, stormy, stormy, OPTION)

    assert reported[1].startswith(
        "Both have a request storm; 1 client of A sent 159,995 requests in storms, 1 client of B "
    )
    assert reported[3].startswith(
        "Neither run is better: no measure that matters differs by more than a tenth. One seed "
    )


def test_what_each_run_is_better_on_stands_in_the_order_of_impact(found, report):
    stormy = with_rows(report, **{STORMS.name: (storm(),)})
    stalled = with_rows(report, **{STALLS.table.name: (stall(122),)})

    reported = lines(found, stormy, stalled, OPTION)

    assert "B has stalled queues, A has none: g did not move in orders broker-a q0 for 122.0 s" in reported[1]
    assert reported[3].startswith(
        "A trade: A is better on this: queues with a backlog stood still 0 s (B: 122 s); "
        "B is better on this: the requests in storms were 0 (A: 159,995). "
    )


def test_a_run_that_breaks_a_rule_that_the_other_keeps_is_not_better(found, report):
    regression = OffsetAnomaly(QUEUE, OffsetFault.REGRESSED, S, "c1", 100, 90, violation=True)
    breaks = with_rows(report, **{OFFSET_REGRESSIONS.table.name: (regression,)})
    stalled = with_rows(report, **{STALLS.table.name: (stall(122),)})

    assert lines(found, breaks, report, OPTION)[-1].startswith("B is better: it keeps V4, ")
    assert lines(found, breaks, stalled, OPTION)[-1].startswith("A trade: B is better on this: it keeps V4, ")


def test_a_symptom_of_both_that_is_more_severe_in_one_is_named_with_how_much(found, report):
    a, b = (with_rows(report, **{STALLS.table.name: (stall(length_s),)}) for length_s in (40, 400))

    assert lines(found, a, b, OPTION)[1].startswith("Stalled queues: 10.0 times as severe in B as in A: g did not move")


def test_similar_symptoms_and_small_differences_prefer_no_run(found, report):
    a, b = (with_rows(report, **{STALLS.table.name: (stall(length_s),)}) for length_s in (100, 105))

    reported = lines(found, a, b, OPTION)

    assert reported[1].startswith(
        "No symptom differs much; the most severe one is in B, stalled queues: g did not move"
    )
    assert reported[3].startswith("Neither run is better: ")


@pytest.mark.parametrize(
    ("scenario", "text"),
    [
        ((SEED,), "What can explain it: the seed alone, the scenarios are the same."),
        (
            (SEED, OPTION),
            "What can explain it: broker broker-a: enableSlaveActingMaster false in A, true in B; the ",
        ),
        ((OPTION, OPTION), "true in B, and 1 more difference."),
        ((LIMIT,), "Nothing in the scenarios can explain a difference: they are the same."),
    ],
    ids=["seed", "seed and option", "two options", "limits of the verdict"],
)
def test_an_option_explains_before_the_seed_and_a_limit_of_the_verdict_explains_nothing(found, report, scenario, text):
    assert text in lines(found, report, report, *scenario)[1]


def test_other_seeds_are_no_evidence(found, report):
    assert lines(found, report, report, SEED)[2].endswith(
        "One seed each, and not the same one, cannot distinguish an effect from chance: "
        "rmqemu campaign with many seeds can."
    )


def test_stalled_ms_is_a_limit_of_stalls(report):
    stalled = with_rows(report, **{STALLS.table.name: (stall(122),)})
    patient = attrs.evolve(stalled, limits=attrs.evolve(stalled.limits, stalled_ms=123_000))

    assert (stalled.service, patient.service) == ("paging", "calm")


def test_the_command_prints_it_before_everything_else(runs):
    done = CliRunner().invoke(app, ["compare", *(str(run.path) for run in runs)])

    printed = done.stdout.splitlines()
    assert done.exit_code == 0
    assert printed[0].startswith("Rules: valid in both. Service: ")
    assert printed[: printed.index("")][-1].endswith("rmqemu campaign with many seeds can.")
    assert printed[printed.index("") + 1].startswith("A  ")
