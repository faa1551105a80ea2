"""Whole clusters whose proxies hear of each other's clients, or do not (V20)."""

from pathlib import Path

import pytest

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import most_severe
from emulator.analysis.run_measures import measures_of
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run

CLUSTER = """
[scenario]
name = "reports-of-proxies"
seed = 1
run_for_s = 260

[[broker]]
name = "broker-a"

[[proxy]]
name = "proxy-1"

[[proxy]]
name = "proxy-2"

[[topic]]
name = "orders"
queues = 4

[[consumer]]
group = "billing"
names = ["billing-1", "billing-2"]
topics = ["orders"]
mode = "push5"
endpoints = ["proxy-1"]

[[consumer]]
group = "audit"
names = ["audit-1"]
topics = ["orders"]
mode = "push5"
endpoints = ["proxy-2"]
"""
LOST = """
[[fault]]
kind = "loss"
from = "proxies"
to = "brokers"
topic = "{topic}"
percent = 100
at_s = 40
for_s = {for_s}
"""
SYNCER_TOPIC = "DefaultHeartBeatSyncerTopic"


def disagreements(tmp_path: Path, *faults: str) -> tuple[bool, tuple[str, ...]]:
    """Whether V20 is broken, and about which groups proxies differed once all had started."""
    run = run_scenario(loads(CLUSTER + "".join(faults), "proxies.toml"), runs=tmp_path)
    report = judge_run(open_run(run.path))
    later = [row for row in report.rows["proxy_disagreements"] if row.start_ns > 30_000_000_000]
    return "V20" in broken(report), tuple(sorted(row.subject for row in later))


@pytest.mark.parametrize(
    "faults",
    [
        (),
        ('[[fault]]\ndo = "kill proxy-1"\nat_s = 40\nfor_s = 130\n',),
        ('[[fault]]\ndo = "suspend proxy-2"\nat_s = 40\nfor_s = 130\n',),
        ('[[fault]]\ndo = "kill billing-1"\nat_s = 40\n',),
        (LOST.format(topic=SYNCER_TOPIC, for_s=15),),
        (LOST.format(topic="orders", for_s=210),),
    ],
    ids=("healthy", "proxy-killed", "proxy-suspended", "client-killed", "reports-lost-once", "another-topic"),
)
def test_proxies_agree_within_two_heartbeats(tmp_path: Path, faults: tuple[str, ...]) -> None:
    assert not disagreements(tmp_path, *faults)[0]


def test_what_a_frozen_proxy_has_not_read_yet_stalls_no_application(tmp_path: Path) -> None:
    frozen = '[[fault]]\ndo = "suspend proxy-2"\nat_s = 40\nfor_s = 130\n'
    report = judge_run(open_run(run_scenario(loads(CLUSTER + frozen, "proxies.toml"), runs=tmp_path).path))
    longest_s = {row.topic: (row.end_ns - row.start_ns) / 1e9 for row in report.rows["stalls"]}
    assert longest_s[SYNCER_TOPIC] > 100
    assert set(longest_s) == {SYNCER_TOPIC}
    assert measures_of(report)["stalled_s"] == 0
    assert SymptomKind.STALLED not in [item.kind for item in most_severe(report)]


def test_a_client_of_rocketmq_4_that_dies_is_listed_by_other_proxies_until_it_was_silent(tmp_path: Path) -> None:
    old = CLUSTER.replace('mode = "push5"\nendpoints = ["proxy-1"]', 'options = { namesrvAddr = "proxy-1" }')
    run = run_scenario(loads(old + '[[fault]]\ndo = "kill billing-1"\nat_s = 100\n', "proxies.toml"), runs=tmp_path)
    report = judge_run(open_run(run.path))
    lasted_s = [(row.end_ns - row.start_ns) / 1e9 for row in report.rows["proxy_disagreements"]]
    assert 110 < max(lasted_s) < 131
    assert "V20" not in broken(report)


def test_proxies_whose_reports_are_lost_forget_each_others_members_after_two_minutes(tmp_path: Path) -> None:
    is_broken, groups = disagreements(tmp_path, LOST.format(topic=SYNCER_TOPIC, for_s=300))
    assert (is_broken, groups) == (True, ("audit", "billing"))
