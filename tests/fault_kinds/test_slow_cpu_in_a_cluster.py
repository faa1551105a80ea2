"""A node whose CPU is scarce, and what else may happen to it meanwhile."""

import pytest

from emulator.time.mode import TimeMode
from fault_kinds.at_work import busy_cluster
from fault_kinds.by_script import broken, once

BEGIN_MS, END_MS = 20_000, 40_000


def sent_by(trace, node, after, until):
    """The instants at which anything left a node."""
    rows = [row for row in trace.rows["rpc"] if row.src == node and after < row.sent_ms < until]
    # What its kernel does by itself says nothing about its process.
    return list(dict.fromkeys(sorted(row.sent_ms for row in rows if row.kind != "connection")))


def test_a_broker_answers_at_its_turns_only():
    trace = broken(busy_cluster(1), once("slow-cpu broker-a 250", BEGIN_MS, END_MS), for_ms=41_000)

    during = sent_by(trace, "broker-a", BEGIN_MS, END_MS)
    assert len(during) > 20
    assert {at_ms % 250 for at_ms in during} == {0}
    assert len({at_ms % 250 for at_ms in sent_by(trace, "broker-b", BEGIN_MS, END_MS)}) > 4
    believed = trace.select("beliefs", node="broker-a", after_ms=BEGIN_MS, until_ms=END_MS)
    assert {row.at_ms % 250 for row in believed} <= {0}


@pytest.mark.parametrize("line", ["stop c1", "suspend c1", "kill c1"])
def test_a_process_is_not_freed_by_what_else_happens_to_it(line):
    async def deeds(breaker):
        await breaker.stage.at_ms(BEGIN_MS)
        await breaker.begin("slow", "slow-cpu c1 250")
        await breaker.during(line, 25_030, 30_130)
        await breaker.stage.at_ms(END_MS)
        await breaker.end("slow")
        await breaker.stage.for_ms(3_000)
        assert breaker.state("c1") == "running"

    trace = broken(busy_cluster(1), deeds)

    # A new process, and one that runs on, has its turn when it begins; then it waits like before.
    odd = [at_ms for at_ms in sent_by(trace, "c1", BEGIN_MS, END_MS) if at_ms % 250]
    assert [at_ms for at_ms in odd if at_ms != 30_130] == []
    assert len([at_ms for at_ms in sent_by(trace, "c1", 30_130, END_MS) if at_ms % 250 == 0]) > 5


def test_the_trace_is_the_same_in_memory_and_over_loopback():
    deeds = once("slow-cpu 'random nodes' 70", 5_000, 15_000)
    digests = [
        broken(busy_cluster(1), deeds, for_ms=20_000, mode=mode).digest for mode in (TimeMode.SIM, TimeMode.FAST)
    ]

    assert digests[0] == digests[1]
