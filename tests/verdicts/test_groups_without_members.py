"""A group whose members are all gone: its messages wait, whatever its kind; the twin in which they live is calm."""

from pathlib import Path

import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import Report, Service, symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run

SCENARIO = """
[scenario]
name = "gone"
run_for_s = 120
start_spread_s = 1

[[broker]]
name = "broker-a"

[[proxy]]
name = "proxy-1"

[[topic]]
name = "orders"
queues = 2

[[consumer]]
group = "shop"
names = ["shop-1", "shop-2"]
topics = ["orders"]
HOW

[[producer]]
group = "tills"
topic = "orders"
rate_per_s = 5
"""
MODES = {
    "push": "",
    "orderly": "options = { consumeOrderly = true }",
    "pull": 'mode = "pull"',
    "pop": 'mode = "pop"',
    "push5": 'mode = "push5"\nendpoints = ["proxy-1"]',
    "simple": 'mode = "simple"\nendpoints = ["proxy-1"]',
}
FAULT = """
[[fault]]
do = "kill NODE"
at_s = 40
"""


def judged(folder: Path, how: str, *nodes: str) -> Report:
    text = SCENARIO.replace("HOW", how) + "".join(FAULT.replace("NODE", node) for node in nodes)
    return judge_run(open_run(run_scenario(loads(text, "gone.toml"), runs=folder).path))


@pytest.mark.parametrize("how", MODES.values(), ids=list(MODES))
def test_a_group_without_members_is_behind_and_the_deaths_are_the_cause(tmp_path: Path, how: str) -> None:
    report = judged(tmp_path, how, "shop-1", "shop-2")
    lag = next(item for item in symptoms(report) if item.kind == "consumer lag")
    assert (broken(report), report.service) == ((), Service.PAGING)
    assert lag.text.startswith("shop was at least 3")
    assert "messages of orders behind for 10 s" in lag.text
    assert [share.what for share in lag.causes if share.share > 0.05] == ["kill shop-1", "kill shop-2"]


def test_a_group_with_one_member_left_is_calm(tmp_path: Path) -> None:
    assert judged(tmp_path, MODES["push"], "shop-1").service is Service.CALM
