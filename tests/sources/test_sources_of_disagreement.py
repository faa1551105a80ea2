"""Every source of disagreement that can be run lasts as long as the timers allow, and no longer."""

import json

import pytest
import typer
from typer.testing import CliRunner

from studies.sources.__main__ import sources
from studies.sources.allocations import Effect, Impact, compare_effects
from studies.sources.catalogue import BY_ID, SOURCES, compare_source, execute_source
from studies.sources.source import BoundCheck, Family, Measured, Source, judge

FAMILIES = {"a": 10, "b": 15, "c": 12, "d": 8, "e": 10}
EXECUTED = [source.id for source in SOURCES if source.scenario is not None]


def test_the_sources_are_numbered_family_by_family():
    assert list(BY_ID) == [f"{family}{n}" for family, count in FAMILIES.items() for n in range(1, count + 1)]
    assert [len({s.family for s in SOURCES if s.id.startswith(family)}) for family in FAMILIES] == [1] * 5


def test_what_is_not_run_says_why():
    assert {source.id for source in SOURCES if source.absent} == {"d8", "e7", "e8"}
    assert [source.id for source in SOURCES if bool(source.absent) is (source.scenario is not None)] == []
    assert [name for name in SECONDS_AT_MIN if name not in EXECUTED] == []


SECONDS_AT_MIN = {
    "a1": 10, "a2": 30, "a3": 119, "a4": 20, "a6": 5, "a8": 5, "b2": 2.9, "b3": 5, "b4": 90, "b5": 100, "b8": 30,
    "b12": 10, "c5": 30, "c7": 119, "c9": 15, "c10": 60, "c11": 240, "d1": 100, "d2": 5, "d4": 40, "d5": 40,
    "d6": 60, "d7": 60, "e3": 1, "e4": 10, "e10": 1,
}  # fmt: skip
"""Where a timer decides: so long it must be felt."""


LONG = ("e2", "e4", "e6")
"""They take as long as all others together."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in EXECUTED])
def test_a_source_is_produced_lasts_as_long_as_its_timer_and_stays_inside_its_bound(name):
    row = execute_source(name)

    assert row.verdict == BoundCheck.INSIDE, row
    assert row.lasts is (BY_ID[name].bound_s is None)
    assert row.measured_s >= SECONDS_AT_MIN.get(name, 0)


@pytest.mark.parametrize(("name", "two_owners", "no_owner"), [
    ("a4", Effect.REMOVED, Effect.NONE),
    ("b1", Effect.REMOVED, Effect.NONE),
    ("b3", Effect.NONE, Effect.ADDED),
    ("b6", Effect.STAYS, Effect.STAYS),
    ("b10", Effect.STAYS, Effect.STAYS),
    ("b15", Effect.NONE, Effect.REMOVED),
])  # fmt: skip
def test_an_assigner_removes_some_sources_and_not_others(name, two_owners, no_owner):
    both = compare_source(name)

    assert (both.two_owners, both.no_owner) == (two_owners, no_owner), both


def test_without_members_or_of_another_family_nothing_is_compared():
    assert [compare_source(name) for name in ("a3", "c1", "d1")] == [None] * 3


@pytest.mark.parametrize(("members_s", "assigner_s", "effect"), [
    (2.1, 2.0, Effect.REMOVED), (2.1, 2.1, Effect.STAYS), (2.0, 2.1, Effect.ADDED), (2.0, 2.0, Effect.NONE),
])  # fmt: skip
def test_what_is_short_in_any_healthy_rebalance_is_no_harm(members_s, assigner_s, effect):
    both = compare_effects(Impact(9, members_s, 0), Impact(9, assigner_s, 0))
    assert (both.two_owners, both.no_owner) == (effect, Effect.NONE)


def a_source(bound_s, measured):
    return Source(id="x", family=Family.LOCKS, title="", bound="", bound_s=bound_s, scenario=lambda: measured)


@pytest.mark.parametrize(("bound_s", "measured", "verdict"), [
    (5, Measured(5.6), BoundCheck.INSIDE),
    (5, Measured(5.7), BoundCheck.OUTSIDE),
    (5, Measured(4, lasts=True), BoundCheck.OUTSIDE),
    (None, Measured(4, lasts=True), BoundCheck.INSIDE),
    (5, Measured(0), BoundCheck.NOT_PRODUCED),
])  # fmt: skip
def test_a_duration_is_judged_by_its_bound(bound_s, measured, verdict):
    assert judge(a_source(bound_s, measured)).verdict == verdict


def test_the_command_writes_a_row_per_source_and_prints_it(tmp_path):
    app = typer.Typer()
    app.command()(sources)
    out = tmp_path / "sources.json"
    done = CliRunner().invoke(app, ["--only", "b2", "--only", "d8", "--out", str(out)])
    rows = json.loads(out.read_text())

    assert done.exit_code == 0, done.output
    assert [(row["id"], row["verdict"]) for row in rows] == [("b2", "inside"), ("d8", "not produced")]
    assert "2 sources: 1 inside, 0 outside, 1 not produced" in done.stdout
    assert [row["with_assigner"] is None for row in rows] == [False, True]
    assert "The same with an assigner" in done.stdout


def test_a_source_that_does_not_exist_is_refused(tmp_path):
    app = typer.Typer()
    app.command()(sources)
    done = CliRunner().invoke(app, ["--only", "z9", "--out", str(tmp_path / "s.json")])

    assert done.exit_code == 2
    assert "no source is called z9" in done.stderr
