"""Queues that no consumer reads: a topic with fewer read queues, and a group with more retry queues than its topic."""

import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.spec.warnings.queue_checks import unread_queues
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run

CLUSTER = """
[scenario]
name = "unread"
run_for_s = 120
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
queues = 2
[[consumer]]
group = "billing"
topics = ["orders"]
fail_times = {fail_times}
[[producer]]
group = "till"
topic = "orders"
rate_per_s = 2
start_after_s = 12
"""
ACT = '[[admin]]\nat_s = {at_s}\ndo = "{do}"\n'
MORE_WRITTEN = ACT.format(at_s=10, do="update-topic orders read 2 write 3")
READ_TOO = ACT.format(at_s=11, do="update-topic orders queues 3")
MORE_RETRIES = ACT.format(at_s=10, do="update-sub-group billing retryQueueNums=2")
MORE_QUEUES = ACT.format(at_s=11, do="update-topic %RETRY%billing queues 2")


class Ended:
    """A run of the cluster, and what was found."""

    def __init__(self, text, runs):
        scenario = loads(text, "unread")
        self.warned = [(found.name, found.where) for found in unread_queues(scenario)]
        self.run = open_run(run_scenario(scenario, runs=runs).path)
        self.report = judge_run(self.run)

    @property
    def stalls(self):
        return {row.queue.name for row in self.report["stalls"] if row.end_ns - row.start_ns > 60e9}

    @property
    def causes(self):
        """Causes of the symptom of stalled queues, in words."""
        (found,) = [item for item in symptoms(self.report) if item.kind.value == "stalled queues"]
        return [share.id for share in found.causes]


def ended(runs, *acts, fail_times=0):
    return Ended(CLUSTER.format(fail_times=fail_times) + "".join(acts), runs)


@pytest.mark.parametrize(
    ("act", "fail_times", "queue", "warning", "line", "cause"),
    [
        pytest.param(
            MORE_WRITTEN,
            0,
            "orders/broker-a/2",
            ("more-write-queues-than-read-queues", "orders"),
            "producers send to 3 queues of it (writeQueueNums)",
            "update-topic-1",
            id="fewer read queues",
        ),
        pytest.param(
            MORE_RETRIES,
            1,
            "%RETRY%billing/broker-a/1",
            ("more-retry-queues-than-its-topic-has", "billing"),
            "a broker chooses one of the retryQueueNums queues of its group",
            "update-sub-group-1",
            id="rocketmq 3953",
        ),
    ],
)
def test_what_is_stored_in_a_queue_beyond_the_read_queues_waits_and_why_says_so(
    tmp_path, act, fail_times, queue, warning, line, cause
):
    found = ended(tmp_path, act, fail_times=fail_times)
    topic, _, number = queue.split("/")

    assert found.warned == [warning]
    assert found.stalls == {queue}
    assert "V8" not in broken(found.report)  # a queue that no consumer reads is no broken promise of RocketMQ
    assert found.causes == [cause]
    reported = answer_of_run([f"stall {queue} of billing at 110s"], found.run)
    assert f"{topic} has {number} read queue" in reported[0]
    assert f"at broker-a, so no consumer reads queue {number} or a later one" in reported[0]
    assert line in reported[1]


@pytest.mark.parametrize(
    ("acts", "fail_times"),
    [((MORE_WRITTEN, READ_TOO), 0), ((MORE_RETRIES, MORE_QUEUES), 1)],
    ids=["read queues follow", "retry queues follow"],
)
def test_as_soon_as_its_number_is_raised_the_queue_is_read(tmp_path, acts, fail_times):
    found = ended(tmp_path, *acts, fail_times=fail_times)

    assert found.warned == []
    assert found.stalls == set()
    assert "V8" not in broken(found.report)
