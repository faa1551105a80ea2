"""Which engine a command takes: its options, else the environment, else the work decide."""

import pytest

from emulator.base.errors import UserError
from emulator.dataset import engine
from emulator.dataset.engine import ROWS_FOR_SPARK, EngineChoice, EngineName, Work, choose_engine

AUTO, LOCAL, SPARK = EngineChoice
FEW = Work("1,999,999 rows", ROWS_FOR_SPARK - 1)
MANY = Work("2,000,000 rows", ROWS_FOR_SPARK)
CAMPAIGN = Work("a campaign of 24 runs")


def never():
    raise AssertionError("rows are counted only where nothing else decides")


@pytest.mark.parametrize(
    ("work", "expected", "why"),
    [
        (FEW, EngineName.LOCAL, "1,999,999 rows; Spark from 2,000,000 rows on, or with --engine spark"),
        (MANY, EngineName.SPARK, "2,000,000 rows"),
        (CAMPAIGN, EngineName.SPARK, "a campaign of 24 runs"),
    ],
)
@pytest.mark.parametrize(
    ("option", "environment"), [(None, {}), (AUTO, {engine.ENGINE: "spark"}), (None, {engine.ENGINE: "auto"})]
)
def test_the_engine_follows_the_work(work, expected, why, option, environment):
    chosen = choose_engine(option, None, None, lambda: work, environment)
    assert (chosen.engine, chosen.why, chosen.is_named) == (expected, why, False)


@pytest.mark.parametrize(
    ("option", "master", "environment", "expected", "why"),
    [
        (SPARK, None, {engine.ENGINE: "local"}, EngineName.SPARK, "--engine"),
        (LOCAL, None, {}, EngineName.LOCAL, "--engine"),
        (None, "local[2]", {engine.ENGINE: "local"}, EngineName.SPARK, "--master"),
        (AUTO, "local[2]", {}, EngineName.SPARK, "--master"),
        (None, None, {engine.ENGINE: "local"}, EngineName.LOCAL, "RMQEMU_ENGINE"),
    ],
)
def test_what_is_named_decides_and_no_rows_are_counted(option, master, environment, expected, why):
    chosen = choose_engine(option, master, None, never, environment)
    assert (chosen.engine, chosen.why, chosen.is_named) == (expected, why, True)


def test_without_the_extra_this_process_does_all_that_names_no_engine(monkeypatch):
    monkeypatch.setattr(engine, "has_extra", lambda: False)
    chosen = choose_engine(None, None, None, lambda: MANY, {})
    assert (chosen.engine, chosen.why) == (EngineName.LOCAL, "2,000,000 rows; the extra spark is not installed")


@pytest.mark.parametrize(
    ("option", "master", "environment", "line"),
    [
        (LOCAL, "local[2]", {}, "--master: expected only with --engine spark"),
        (None, None, {engine.ENGINE: "sparc"}, "RMQEMU_ENGINE: "),
    ],
)
def test_what_contradicts_itself_is_refused(option, master, environment, line):
    with pytest.raises(UserError) as refused:
        choose_engine(option, master, None, lambda: FEW, environment)
    assert str(refused.value).startswith(line)
