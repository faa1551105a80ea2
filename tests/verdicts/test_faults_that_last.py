"""A fault that lasts is no violation by itself: each kind, in each kind of group; and what it does not explain."""

import pytest

from analysis.trace_rows import GROUP, HandMadeTrace, found_in
from emulator.analysis.judge import judge_run
from emulator.analysis.report import RulesVerdict, judgements
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from faults.catalogue import FAULTS
from nodes.protocol.codes import RequestCode

BEGIN_S, END_S = 100, 340
"""When the fault begins, and when the run ends: silence and a pass together explain less than 200 s."""
CLUSTER = """
[scenario]
name = "long-fault"
run_for_s = {end_s}
seed = 3
{preset}
[nameserver]
count = 2
[[broker]]
name = "broker-a"
{slave}
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
queues = 2
[[consumer]]
group = "shop"
topics = ["orders"]
names = ["shop-1", "shop-2"]
{options}
[[producer]]
group = "tills"
topic = "orders"
rate_per_s = 2
"""
PLAIN = {"preset": "", "slave": ""}
RIP32 = {"preset": 'preset = "rip32"', "slave": '[[broker]]\nname = "broker-a"\nid = 1'}
CLUSTERS = {"plain": PLAIN, "rip32 with a slave": RIP32}
GROUPS = {
    "cluster": "",
    "ordered": "options = { consumeOrderly = true }",
    "broadcasting": 'options = { messageModel = "BROADCASTING" }',
}
LASTING: dict[str, str] = {
    "cut": 'from = "shop-1"',
    "partition": 'shape = "isolate"\namong = "*"\nnode = "shop-1"',
    "loss": 'from = "shop-1"\npercent = 100',
    "tcp_loss": 'from = "shop-1"\npercent = 100',
    "delay": 'from = "shop-1"\ndelay_ms = 10000',
    "drop": 'from = "shop-1"',
    "refuse": 'from = "shop-1"\ncode = "PULL_MESSAGE"\nresponse = "SYSTEM_BUSY"',
    "kill": 'node = "shop-1"',
    "restart": 'node = "shop-1"',
    "power_off": 'node = "shop-1"',
    "suspend": 'node = "shop-1"',
    "slow_cpu": 'node = "shop-1"\nturn_ms = 10000',
    "clock_skew": 'node = "broker-a"\noffset_ms = 60000',
    "clock_drift": 'node = "broker-a"\nppm = 100000',
    "clock_jump": 'node = "broker-a"\nby_ms = 60000',
    "slow_disk": 'node = "broker-a"\nflush_ms = 10000',
    "lost_writes": 'node = "broker-a"',
    "permission": 'node = "broker-a"\nperm = 2',
    "scale": 'group = "shop"\nmembers = 4',
    "rebalance": 'group = "shop"\nby = "broker"',
    "consume_mode": 'group = "shop"\nmode = "pop"',
    "reconfigure": 'node = "shop-1"\noptions = { pullBatchSize = 16 }',
    "upgrade": 'node = "shop-1, shop-2"\noptions = { pullBatchSize = 16 }\napart_ms = 60000',
}
"""Mapping kind -> its fields, at a member or at a broker."""
OF_SERVERS = {
    "a broker is cut off": ("cut", 'from = "broker-a"'),
    "a nameserver is cut off": ("cut", 'from = "ns-1"'),
    "a broker is far away": ("delay", 'from = "broker-a"\ndelay_ms = 10000'),
    "a broker is killed": ("kill", 'node = "broker-a"'),
    "a broker is suspended": ("suspend", 'node = "broker-a"'),
    "a nameserver is suspended": ("suspend", 'node = "ns-1"'),
    "a broker is read only": ("permission", 'node = "broker-a"\nperm = 4'),
}
"""Mapping what happens to a server -> (kind, its fields)."""
DEFAULT = ("cut", "loss", "delay", "refuse", "suspend")
"""Kinds of which a plain cluster is judged each time; all others are proofs."""


def grid():
    for kind, fields in LASTING.items():
        for cluster in CLUSTERS:
            for group in GROUPS:
                is_slow = kind not in DEFAULT or (cluster, group) != ("plain", "cluster")
                marks = [pytest.mark.slow] * is_slow
                yield pytest.param(kind, fields, cluster, group, marks=marks, id=f"{kind}-{cluster}-{group}")


@pytest.fixture
def judged(tmp_path):
    """Judges a cluster with one fault."""

    def judge(kind, fields, cluster="plain", group="cluster", for_s=None, end_s=END_S):
        text = CLUSTER.format(end_s=end_s, options=GROUPS[group], **CLUSTERS[cluster])
        lasts = "" if for_s is None else f"for_s = {for_s}\n"
        text += f'[[fault]]\nat_s = {BEGIN_S}\n{lasts}kind = "{kind}"\n{fields}\n'
        run = run_scenario(loads(text, "long-fault"), runs=tmp_path, level=TraceLevel.FINDINGS)
        return judge_run(open_run(run.path))

    return judge


def broken(report):
    return {judgement.id for judgement in judgements(report) if judgement.violations}


def test_every_kind_has_a_row_here():
    assert list(LASTING) == list(FAULTS)
    assert {kind for kind, _ in OF_SERVERS.values()} < set(FAULTS)


@pytest.mark.parametrize(("kind", "fields", "cluster", "group"), list(grid()))
def test_a_fault_that_lasts_is_no_violation_by_itself(judged, kind, fields, cluster, group):
    report = judged(kind, fields, cluster, group)
    assert (report.verdict, report.reasons) == (RulesVerdict.VALID, ())


@pytest.mark.slow
@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("subject", OF_SERVERS)
def test_a_fault_of_a_server_that_lasts_is_no_violation_by_itself(judged, subject, cluster):
    report = judged(*OF_SERVERS[subject], cluster)
    assert (report.verdict, report.reasons) == (RulesVerdict.VALID, ())


@pytest.mark.slow
def test_a_member_that_broadcasts_and_does_not_reach_a_master_with_a_slave_is_no_violation(judged):
    report = judged("cut", 'from = "shop-1"\nto = "broker-a"', "rip32 with a slave", "broadcasting")
    assert (report.verdict, report.reasons) == (RulesVerdict.VALID, ())


def test_a_consumer_that_one_of_two_brokers_does_not_see_has_queues_that_others_have(judged):
    report = judged("cut", 'from = "shop-1"\nto = "broker-b"')
    assert (report.verdict, broken(report)) == (RulesVerdict.INVALID, {"V1", "V6"})


def test_an_owner_that_was_cut_off_for_long_sets_offsets_back_when_it_is_heard_again(judged):
    report = judged("cut", 'from = "shop-1"', for_s=240, end_s=380)
    assert (report.verdict, broken(report)) == (RulesVerdict.INVALID, {"V4"})


# --- by hand --------------------------------------------------------------------------------------


def two_owners(model="CLUSTERING"):
    """A group of two members: each owns one queue, and all is consumed at first."""
    trace = HandMadeTrace()
    trace.roles["broker-a"] = "broker"
    trace.life("broker-a", "ready", role="broker")
    for queue_id, node in enumerate(("a", "b")):
        trace.life(node, "ready", GROUP, role="consumer").subscribe(node, model=model)
        trace.believe(node, 1).own(node, "acquired", queue_id, offset=0)
    return trace


def stalls_of(trace, end_s=500):
    """Mapping (queue, node if the group broadcasts) -> whether it is a violation that the queue stood still."""
    return {(row.queue.queue_id, row.node): row.violation for row in found_in(trace, end_s)["stalls"]}


def test_a_refusal_of_pulls_explains_that_the_queues_of_its_member_stand_still_and_no_others():
    trace = two_owners().at(100).fault("begin", "f", "refuse", "a -> broker-a", code=int(RequestCode.PULL_MESSAGE))
    trace.at(110).store(0, queue_id=0).store(0, queue_id=1)
    assert stalls_of(trace) == {(0, ""): False, (1, ""): True}


def test_a_member_that_broadcasts_and_stands_still_without_a_fault_is_a_violation():
    trace = two_owners("BROADCASTING").at(1).own("b", "acquired", 0, offset=0)
    trace.at(100).store(0, 1, queue_id=0).at(100.5).consume("a", 0, 1)
    assert stalls_of(trace) == {(0, "b"): True}


@pytest.mark.parametrize(("subject", "violation"), [("b <-> broker-a", False), ("a <-> broker-a", True)])
def test_a_cut_explains_that_a_member_that_broadcasts_stands_still_if_it_cuts_this_member(subject, violation):
    trace = two_owners("BROADCASTING").at(1).own("b", "acquired", 0, offset=0)
    trace.at(50).fault("begin", "f", "cut", subject)
    trace.at(100).store(0, 1, queue_id=0).at(100.5).consume("a", 0, 1)
    assert stalls_of(trace) == {(0, "b"): violation}


def behind_a_slave(master_dies=False):
    """A member that broadcasts is cut off from the master of a queue, but not from the slave."""
    trace = two_owners("BROADCASTING").at(1).own("b", "acquired", 0, offset=0)
    trace.life("broker-a-s1", "ready", role="broker").at(50).fault("begin", "f", "cut", "b <-> broker-a")
    trace.at(100).store(0, 1, queue_id=0).at(100.5).consume("a", 0, 1)
    if master_dies:
        trace.at(250).life("broker-a", "killed")
    names = {"broker-a": "broker-a", "broker-a-s1": "broker-a"}
    (found,) = found_in(trace, 500, broker_names=names)["stalls"]
    return found.node, found.violation


def test_a_member_that_reaches_only_the_slave_cannot_consume_while_the_master_runs():
    assert behind_a_slave() == ("b", False)
    assert behind_a_slave(master_dies=True) == ("b", True)
