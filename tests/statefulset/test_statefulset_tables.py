"""What the StatefulSet controller and the kubelet decide, compared with what Kubernetes promises."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.config import StatefulSetConfig
from nodes.config.statefulset import PodManagementPolicy, UpdateStrategy
from nodes.statefulset.tables.controller import CreatePod, DeletePod, Revisions, Wanted, is_updated, next_step
from nodes.statefulset.tables.pod import Pod, PodAction, PodPhase, ProbeKind

CONFIG = StatefulSetConfig()


def a_pod(ordinal=0, *, ready=True, config=CONFIG):
    pod = Pod(f"consumer-{ordinal}", config)
    pod.started(0)
    if ready:
        pod.probed(ProbeKind.READINESS, succeeded=True)
    return pod


def settle(pods, replicas):
    """Do all steps, each pod being ready at once and gone at once; returns what was done."""
    done = []
    while (step := next_step(pods, Wanted(replicas))) is not None:
        done.append(step)
        if isinstance(step, CreatePod):
            pods[step.ordinal] = a_pod(step.ordinal)
        else:
            del pods[step.ordinal]
    return done


@given(before=st.integers(0, 20), after=st.integers(0, 20))
def test_a_scale_creates_upwards_and_deletes_downwards(before, after):
    pods = {ordinal: a_pod(ordinal) for ordinal in range(before)}

    done = settle(pods, after)

    created, deleted = (
        list(map(CreatePod, range(before, after))),
        list(map(DeletePod, range(before - 1, after - 1, -1))),
    )
    assert done == created + deleted
    assert sorted(pods) == list(range(after))


@given(
    pods=st.dictionaries(st.integers(0, 6), st.sampled_from(["ready", "running", "terminating"])),
    replicas=st.integers(0, 6),
)
def test_no_pod_is_created_before_its_predecessors_are_ready_and_none_deleted_before_its_successors_are_gone(
    pods, replicas
):
    made = {ordinal: a_pod(ordinal, ready=state == "ready") for ordinal, state in pods.items()}
    for ordinal, state in pods.items():
        if state == "terminating":
            made[ordinal].delete()

    step = next_step(made, Wanted(replicas))

    if isinstance(step, CreatePod):
        assert all(pods.get(ordinal) == "ready" for ordinal in range(step.ordinal))
        assert step.ordinal < replicas
    if isinstance(step, DeletePod):
        assert all(pods.get(ordinal) == "ready" for ordinal in range(replicas))
        assert step.ordinal == max(pods)
        assert pods[step.ordinal] != "terminating"


def test_a_pod_that_keeps_ending_is_started_after_longer_and_longer_pauses():
    pod, now_ms, pauses = Pod("consumer-0", CONFIG), 0, []
    for _ in range(8):
        assert pod.next_action(now_ms) is PodAction.START
        pod.started(now_ms)
        pod.ended(now_ms)
        pause = next(s for s in range(301) if pod.next_action(now_ms + s * 1_000) is PodAction.START)
        pauses.append(pause)
        now_ms += pause * 1_000

    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_pod_that_ran_for_ten_minutes_is_started_at_once_again():
    pod = Pod("consumer-0", CONFIG)
    for now_ms in (0, 1_000):
        pod.started(now_ms)
        pod.ended(now_ms)
    pod.started(20_000)
    pod.ended(620_000)

    assert pod.next_action(620_000) is PodAction.START


def test_the_third_liveness_failure_in_a_row_ends_the_process_and_a_success_starts_the_count_again():
    pod = a_pod()
    for succeeded in (False, False, True, False, False):
        pod.probed(ProbeKind.LIVENESS, succeeded=succeeded)
        assert pod.next_action(0) is None

    pod.probed(ProbeKind.LIVENESS, succeeded=False)

    assert pod.next_action(1_000) is PodAction.TERMINATE
    assert pod.next_action(30_999) is None
    assert pod.next_action(31_000) is PodAction.KILL
    assert pod.phase is PodPhase.RUNNING


def test_the_third_readiness_failure_in_a_row_only_marks_the_pod_unready():
    pod = a_pod()
    for _ in range(3):
        assert pod.phase is PodPhase.READY
        pod.probed(ProbeKind.READINESS, succeeded=False)

    assert pod.phase is PodPhase.RUNNING
    assert pod.next_action(10**9) is None


def test_a_deleted_pod_is_never_ready_again_and_is_removed_when_its_process_has_ended():
    pod = a_pod()
    pod.delete()
    pod.probed(ProbeKind.READINESS, succeeded=True)

    assert pod.phase is PodPhase.TERMINATING
    assert pod.next_action(0) is PodAction.TERMINATE
    pod.ended(1_000)
    assert pod.next_action(1_000) is PodAction.REMOVE


NEW = Revisions(current=1, update=2, newest=2, previous=1)


def rolled_out(pods, config, replicas, *, broken=()):
    """Carry out an update step by step, each pod being ready at once unless it is broken; returns the steps."""
    done, wanted = [], Wanted(replicas, config, NEW)
    while (step := next_step(pods, wanted)) is not None:
        done.append(step)
        if isinstance(step, DeletePod):
            del pods[step.ordinal]
        else:
            pods[step.ordinal] = a_pod(step.ordinal, ready=step.ordinal not in broken)
            pods[step.ordinal].revision = step.revision
    return done


@given(replicas=st.integers(0, 8), partition=st.integers(0, 9), policy=st.sampled_from(PodManagementPolicy))
def test_an_update_goes_down_to_the_partition_one_pod_after_the_other(replicas, partition, policy):
    pods = {ordinal: a_pod(ordinal) for ordinal in range(replicas)}
    config = StatefulSetConfig(partition=partition, pod_management_policy=policy)

    done = rolled_out(pods, config, replicas)

    updated = range(replicas - 1, partition - 1, -1)
    assert done == [step for ordinal in updated for step in (DeletePod(ordinal), CreatePod(ordinal, 2))]
    assert [pod.revision for _, pod in sorted(pods.items())] == [
        1 if ordinal < partition else 2 for ordinal in range(replicas)
    ]
    assert is_updated(pods, Wanted(replicas, config, NEW)) == (partition == 0 or replicas == 0)


def test_on_delete_updates_a_pod_when_something_else_has_deleted_it():
    config = StatefulSetConfig(update_strategy=UpdateStrategy.ON_DELETE)
    pods = {ordinal: a_pod(ordinal) for ordinal in range(3)}
    assert rolled_out(pods, config, 3) == []

    del pods[1]

    assert rolled_out(pods, config, 3) == [CreatePod(1, 2)]


def test_a_pod_below_the_partition_that_is_created_again_has_the_old_revision():
    pods = {ordinal: a_pod(ordinal) for ordinal in range(4)}
    config = StatefulSetConfig(partition=2)
    rolled_out(pods, config, 4)

    del pods[0], pods[3]

    assert rolled_out(pods, config, 4) == [CreatePod(0, 1), CreatePod(3, 2)]


def test_a_broken_revision_stops_the_update_and_going_back_does_not_mend_an_ordered_one():
    """Kubernetes issue 67250: with OrderedReady the broken pod has to be deleted by hand."""
    back = NEW.rolled(undo=True)
    for policy, mended in ((PodManagementPolicy.ORDERED_READY, None), (PodManagementPolicy.PARALLEL, DeletePod(3))):
        pods = {ordinal: a_pod(ordinal) for ordinal in range(4)}
        config = StatefulSetConfig(pod_management_policy=policy)
        assert rolled_out(pods, config, 4, broken=(3,)) == [DeletePod(3), CreatePod(3, 2)]

        assert next_step(pods, Wanted(4, config, back)) == mended


@given(before=st.integers(0, 8), after=st.integers(0, 8))
def test_parallel_creates_and_deletes_all_pods_without_waiting(before, after):
    config = StatefulSetConfig(pod_management_policy=PodManagementPolicy.PARALLEL)
    pods, done = {ordinal: a_pod(ordinal) for ordinal in range(before)}, []
    while (step := next_step(pods, Wanted(after, config))) is not None:
        done.append(step)
        if isinstance(step, CreatePod):
            pods[step.ordinal] = a_pod(step.ordinal, ready=False)
        else:
            pods[step.ordinal].delete()

    assert done == [*map(CreatePod, range(before, after)), *map(DeletePod, range(before - 1, after - 1, -1))]


def test_going_back_twice_is_going_forth():
    assert NEW.rolled(undo=True).rolled(undo=True) == NEW
    assert NEW.rolled(undo=True).rolled(undo=False).update == 3
