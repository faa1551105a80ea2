"""Two consumers of RocketMQ's own Java client, of whom one is cut off for longer than brokers forgive: who says so."""

import subprocess
from pathlib import Path

import pytest

import emulator
from emulator.analysis.rendering.shown_report import analyze
from emulator.analysis.rendering.tables import print_report
from emulator.spec import loads

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_JVM_WITHIN_S = 900
_EXPELLED_WITHIN = "150s"
"""120 s of silence, a scan every 10 s, and a pass every 20 s in which the other one takes over."""
_ROUND = "25s"
"""Longer than a healthy rebalance may have two owners."""
THE_CUT = "cut mail <-> broker-a begins"

SCENARIO = """
[scenario]
name = "two-guest-members"
run_for_s = 3600
guests = ["shop", "mail"]

[network]
delay_ms = 0

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[topic]]
name = "orders"
queues = 4

[[producer]]
group = "till"
topic = "orders"
rate_per_s = 5
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory, need):
    need("mvn", "java")
    scratch = tmp_path_factory.mktemp("members")
    classpath = scratch / "classpath"
    build = ["mvn", "-q", "-f", str(HERE / "java"), "dependency:build-classpath", f"-Dmdep.outputFile={classpath}"]
    subprocess.run(build, check=True, capture_output=True, timeout=_JVM_WITHIN_S)
    java = ["java", "-cp", classpath.read_text().strip(), str(HERE / "java" / "GroupMember.java")]
    members = []
    try:
        with emulator.launch(loads(SCENARIO, "two members"), mode="live", runs=scratch) as cluster:
            cluster.until("agree", "within", "60s")
            for name in ("shop", "mail"):
                words = [cluster.namesrv_addr_of(name), "billing", "orders"]
                members.append(subprocess.Popen([*java, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
                assert members[-1].stdout.readline() == b"started\n"
            cluster.run_for("45s")
            shared = cluster.owners().lines
            cluster.cut("mail", "broker-a")
            cluster.run_for(_EXPELLED_WITHIN)
            cluster.run_for(_ROUND)
            path = cluster.path
    finally:
        for member in members:
            member.kill()
            member.communicate()
    found = analyze(path)
    print_report(found)
    return found, shared


def test_the_two_share_the_queues_as_long_as_nothing_is_wrong(report):
    orders = [line.rpartition(" ")[2] for line in report[1] if "  orders/" in line]
    assert sorted(orders) == ["mail", "mail", "shop", "shop"]


def test_both_own_what_the_one_does_not_know_it_has_lost(report):
    found = [row for row in report[0]["overlaps"] if row.censored]
    assert {row.explained_by for row in found} == {THE_CUT}
    assert [(row.queue.topic, row.owners) for row in found] == [("orders", ("mail", "shop"))] * 2


def test_they_work_from_different_lists_of_members(report):
    found = [row for row in report[0]["views"] if row.kind == "view" and row.censored]
    assert {row.explained_by for row in found} == {THE_CUT}
    assert sorted(row.subject for row in found) == ["billing/%RETRY%billing", "billing/orders"]
    for row in found:
        assert {holders.nodes: holders.value.count("@") for holders in row.holders} == {("mail",): 2, ("shop",): 1}


def test_the_cut_explains_all_of_it(report):
    assert [row for name in ("overlaps", "views", "orphans") for row in report[0][name] if row.violation] == []


def test_what_they_consumed_is_not_taken_for_lost(report):
    assert report[0]["losses"] == ()
