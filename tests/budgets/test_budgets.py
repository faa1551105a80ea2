"""Budgets: counts that no machine and no load changes; whoever raises one by 5 % is reported where."""

import json

import attrs
import pytest

from budgets.counting import BUDGETS, Counted, count_all, python

SLACK = 1.05
SHOWN = 8


@pytest.fixture(scope="module")
def recorded():
    content = json.loads(BUDGETS.read_text())
    if content["python"] != python():
        pytest.skip(f"the budgets are those of Python {content['python']}: another one calls other functions")
    return {name: Counted(**budget) for name, budget in content["budgets"].items()}


@pytest.fixture(scope="module")
def counted():
    return count_all()


def grown(now, budget):
    """What has grown, for people; empty if all is within the budget."""
    if now.value <= budget.value * SLACK:
        return ""
    shares = {file: share - budget.of.get(file, 0) for file, share in now.of.items()}
    maximum = sorted(shares, key=shares.get, reverse=True)[:SHOWN]
    where = [f"{file} {budget.of.get(file, 0):.1f} -> {now.of[file]:.1f}" for file in maximum if shares[file] > 0]
    return "\n  ".join([f"{budget.value:.1f} -> {now.value:.1f}", *where])


def test_no_count_grows_by_five_percent(recorded, counted):
    assert counted.keys() == recorded.keys()
    found = {name: answer for name, item in counted.items() if (answer := grown(item, recorded[name]))}
    text = "\n".join(f"{name}: {reported}" for name, reported in found.items())
    assert not found, f"over budget (make budgets writes new ones, if that is what you want):\n{text}"


def test_a_count_that_falls_lowers_its_budget(recorded, counted):
    """Else what was won could be lost again unnoticed."""
    low = {name: f"{item.value:.1f} of {recorded[name].value:.1f}" for name, item in counted.items()
           if item.value < recorded[name].value / SLACK}  # fmt: skip
    assert not low, f"make budgets writes what was won: {low}"


def test_a_change_is_reported_with_the_files_that_grew():
    budget = Counted(100.0, {"a.py": 60.0, "b.py": 40.0})
    now = attrs.evolve(budget, value=106.0, of={"a.py": 60.5, "b.py": 30.0, "new.py": 15.5})
    assert grown(now, budget) == "100.0 -> 106.0\n  new.py 0.0 -> 15.5\n  a.py 60.0 -> 60.5"
    assert grown(attrs.evolve(now, value=104.9), budget) == ""
