"""A SYNC_MASTER whose slave is away, or that never had one: senders give up what is stored (rocketmq 3885, 2456)."""

import pytest

from emulator.analysis.judge import judge_run
from emulator.analysis.report import symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run

CLUSTER = """
[scenario]
name = "sync"
run_for_s = 60
[nameserver]
count = 1
[[broker]]
name = "broker-a"
replicas = {replicas}
options = {{ brokerRole = "{role}", inSyncReplicas = {needed} }}
[[topic]]
name = "orders"
[[consumer]]
group = "billing"
topics = ["orders"]
[[producer]]
name = "shop"
group = "shop"
topic = "orders"
rate_per_s = 2
start_after_s = 10
local_transaction = "commit"
"""
AWAY = '[[fault]]\nid = "slave-away"\ndo = "kill broker-a-s1"\nat_s = 20\nfor_s = 20\n'


def cluster(role="SYNC_MASTER", replicas=2, needed=2, fault=""):
    return loads(CLUSTER.format(role=role, replicas=replicas, needed=needed) + fault, "sync")


def failed(scenario, runs):
    """The symptom of failed sends, or None; and the answer of `why sends`."""
    run = open_run(run_scenario(scenario, runs=runs).path)
    found = [item for item in symptoms(judge_run(run)) if item.kind.value == "failed sends"]
    return (found[0] if found else None), answer_of_run(["sends of shop"], run)


def warned(scenario):
    return [(found.name, found.where) for found in check(scenario) if "replicas" in found.name]


def test_a_slave_that_is_away_is_the_cause_of_sends_that_its_master_does_not_answer_in_time(tmp_path):
    scenario = cluster(fault=AWAY)
    symptom, reported = failed(scenario, tmp_path)

    assert warned(scenario) == []
    assert symptom.causes[0].id == "slave-away"
    assert symptom.causes[0].total > 0.8
    assert "broker-a did not answer in time" in reported[0]
    assert any("its slave broker-a-s1 was away: killed at 20.000 s; a SYNC_MASTER waits" in line for line in reported)


def test_a_master_that_can_never_have_so_many_replicas_is_warned_of_and_its_rule_is_the_cause(tmp_path):
    scenario = cluster(replicas=1)
    symptom, _ = failed(scenario, tmp_path)

    assert warned(scenario) == [("more-in-sync-replicas-than-brokers", "broker-a")]
    assert [cause.what for cause in symptom.causes] == [
        "a SYNC_MASTER answers when inSyncReplicas brokers have a message"
    ]


@pytest.mark.parametrize(
    "given",
    [{"role": "ASYNC_MASTER", "fault": AWAY}, {"needed": 1, "fault": AWAY}, {}],
    ids=["async", "one", "healthy"],
)
def test_who_waits_for_no_slave_or_has_one_answers(tmp_path, given):
    scenario = cluster(**given)

    assert warned(scenario) == []
    assert failed(scenario, tmp_path)[0] is None
