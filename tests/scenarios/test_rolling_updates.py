"""Rolling updates of the pods of a StatefulSet: order, partition, and what members of the group see."""

import attrs
import pytest

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.testing import execute
from nodes.config import Exclusivity, StatefulSetConfig
from nodes.config.statefulset import PodManagementPolicy, UpdateStrategy
from nodes.protocol.headers_statefulset import ProbePath
from support.statefulsets import ORDINAL, a_statefulset, at_once, processed

LEASE = attrs.evolve(ORDINAL, exclusivity=Exclusivity.LEASE)
PROBES = {"liveness_probe_path": ProbePath.LIVENESS, "readiness_probe_path": ProbePath.READINESS}
CONSUME_MS = 100


async def nothing(_stage):
    """The acts are all that happens."""


def executed(*acts, script=nothing, replicas=4, consumer=ORDINAL, for_ms=200_000, **options):
    """A run in which acts, lines with instants in ms, are carried out."""
    config = StatefulSetConfig(**PROBES, readiness_probe_period_seconds=1, **options)
    base = a_statefulset(replicas, consumer=consumer, config=config, consume_ms=CONSUME_MS, rate_per_s=4)
    timed = (TimedAct(f"act-{number}", act_of(line), at_ms) for number, (at_ms, line) in enumerate(acts))
    return execute(attrs.evolve(base, acts=tuple(timed)), script, for_ms=for_ms)


RESTART = (30_000, "rollout-restart consumer")


def starts_after(trace, ms):
    return [row.node for row in trace.select("lifecycle", event="started") if row.at_ms > ms and row.role == "consumer"]


def last_revisions(trace):
    return trace.select("beliefs", kind="pods")[-1].held.get("revisions")


def test_pods_are_replaced_one_after_the_other_from_the_highest_ordinal_down():
    trace = executed(RESTART)

    assert starts_after(trace, 30_000) == ["consumer-3", "consumer-2", "consumer-1", "consumer-0"]
    assert set(last_revisions(trace).values()) == {2}
    for row in trace.select("beliefs", kind="pods"):
        if row.at_ms > 30_000:
            assert list(row.held["pods"].values()).count("ready") >= 3


def test_a_partition_keeps_the_lower_pods_at_their_revision_also_when_they_are_killed():
    async def script(stage):
        await stage.at_ms(120_000)
        await stage.kill("consumer-0")

    trace = executed(RESTART, script=script, partition=2)

    assert starts_after(trace, 30_000) == ["consumer-3", "consumer-2", "consumer-0"]
    assert last_revisions(trace) == {"consumer-0": 1, "consumer-1": 1, "consumer-2": 2, "consumer-3": 2}


def test_on_delete_replaces_no_pod():
    trace = executed(RESTART, update_strategy=UpdateStrategy.ON_DELETE)

    assert starts_after(trace, 30_000) == []


def test_going_back_replaces_the_pods_again():
    trace = executed(RESTART, (120_000, "rollout-undo consumer"), replicas=2, for_ms=240_000)

    assert starts_after(trace, 30_000) == ["consumer-1", "consumer-0", "consumer-1", "consumer-0"]
    assert set(last_revisions(trace).values()) == {1}


@pytest.mark.parametrize("policy", PodManagementPolicy)
def test_parallel_starts_pods_at_the_same_time_and_updates_them_one_after_the_other_all_the_same(policy):
    trace = executed((60_000, "rollout-restart consumer"), pod_management_policy=policy)

    first = [row.at_ms for row in trace.select("lifecycle", event="started") if row.node.startswith("consumer-")][:4]
    assert (first[-1] - first[0] < 1_000) is (policy is PodManagementPolicy.PARALLEL)
    assert starts_after(trace, 60_000) == ["consumer-3", "consumer-2", "consumer-1", "consumer-0"]


def test_a_pod_that_is_replaced_hands_nothing_over_since_ordinals_stay_and_its_queues_pause():
    trace = executed(RESTART, consumer=LEASE)

    done = processed(trace, CONSUME_MS)
    assert at_once(done) == []
    messages = [(item.queue_id, item.offset) for item in done]
    assert len(messages) == len(set(messages))


def test_an_api_server_that_is_restarted_goes_on_with_the_update():
    async def script(stage):
        await stage.at_ms(33_000)
        await stage.begin("restart kubernetes")

    trace = executed(RESTART, script=script)

    assert set(last_revisions(trace).values()) == {2}
