"""Pods allocate queues by their ordinals and the replicas that the API server reports, without asking any broker."""

import attrs

from emulator.spec.model.scenario import TopicSpec
from emulator.testing import GROUP, TOPIC, execute
from nodes.beliefs import OwnershipEvent
from nodes.protocol.codes import RequestCode
from support.statefulsets import ORDINAL, a_statefulset


def owned(trace, topic=TOPIC):
    """Pod -> queues that it has now."""
    found = {}
    for row in trace.select("ownership", topic=topic):
        queues = found.setdefault(row.node, [])
        if row.event == OwnershipEvent.ACQUIRED:
            queues.append(row.queue_id)
        elif row.event == OwnershipEvent.DROPPED and row.queue_id in queues:
            queues.remove(row.queue_id)
    return {node: sorted(queues) for node, queues in found.items()}


def counts(trace, pod):
    return [(row.at_s, row.held) for row in trace.select("beliefs", kind="replicas", node=pod)]


def test_ten_queues_on_four_replicas_are_two_two_two_and_four():
    trace = execute(a_statefulset(4, queues=10), for_ms=40_000)

    assert owned(trace) == {
        "consumer-0": [0, 1],
        "consumer-1": [2, 3],
        "consumer-2": [4, 5],
        "consumer-3": [6, 7, 8, 9],
    }
    assert list(owned(trace, f"%RETRY%{GROUP}")) == ["consumer-0"]
    assert trace.select("rpc", code=int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)) == []


def test_a_new_number_of_replicas_is_known_within_a_second_and_moves_queues_at_once():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin(f"scale {GROUP} 3")

    trace = execute(a_statefulset(4, queues=12), script, for_ms=40_000)

    (first_s, first), (then_s, then) = counts(trace, "consumer-0")
    assert (first, then) == (4, 3)
    assert first_s <= 1
    assert 30 <= then_s <= 31.1
    assert all(row.source.endswith(":6443") for row in trace.select("beliefs", kind="replicas"))
    assert owned(trace) == {
        "consumer-0": [0, 1, 2, 3],
        "consumer-1": [4, 5, 6, 7],
        "consumer-2": [8, 9, 10, 11],
        "consumer-3": [],
    }


def test_until_the_replicas_are_known_a_pod_has_no_queue():
    async def script(stage):
        stage.cut("consumer-0", "kubernetes")
        await stage.at_ms(15_000)
        assert owned(stage.trace).get("consumer-0", []) == []
        stage.heal("consumer-0", "kubernetes")

    trace = execute(a_statefulset(1), script, for_ms=40_000)

    assert owned(trace)["consumer-0"] == [0, 1, 2, 3]


def test_without_the_api_server_the_last_known_number_stays_so_queues_have_no_owner_or_two():
    async def script(stage):
        await stage.at_ms(30_000)
        stage.cut("consumer-0", "kubernetes")
        await stage.begin(f"scale {GROUP} 3")

    # The probes fail, too: at 51 s the pod would be restarted.
    trace = execute(a_statefulset(2, queues=12), script, for_ms=45_000)

    assert [count for _, count in counts(trace, "consumer-0")] == [2]
    assert owned(trace) == {
        "consumer-0": [0, 1, 2, 3, 4, 5],
        "consumer-1": [4, 5, 6, 7],
        "consumer-2": [8, 9, 10, 11],
    }


def test_the_queues_of_a_dead_pod_are_nobodys_until_it_is_revived():
    async def script(stage):
        await stage.at_ms(30_000)
        fault = await stage.begin("kill consumer-1")
        await stage.at_ms(90_000)
        assert owned(stage.trace)["consumer-0"] == [0, 1]
        await stage.end(fault)

    trace = execute(a_statefulset(2), script, for_ms=120_000)

    acquired = [row for row in trace.select("ownership", topic=TOPIC, event="acquired") if row.at_s > 30]
    assert {(row.node, row.queue_id) for row in acquired} == {("consumer-1", 2), ("consumer-1", 3)}
    assert min(row.at_s for row in acquired) > 90


def test_a_scaler_stores_the_replicas_and_notifies_all_pods_at_once():
    async def script(stage):
        await stage.at_ms(31_000)
        await stage.begin(f"scale {GROUP} 3")

    trace = execute(a_statefulset(2, queues=12, scaler="scaler"), script, for_ms=60_000)

    reported = {pod: counts(trace, pod)[-1] for pod in ("consumer-0", "consumer-1")}
    assert [count for _, count in reported.values()] == [3, 3]
    assert reported["consumer-0"][0] == reported["consumer-1"][0] > 44
    # The new pod is notified the number that the scaler has stored, which is the old one: it has no queue until then.
    assert [count for _, count in counts(trace, "consumer-2")] == [2, 3]
    assert owned(trace)["consumer-2"] == [8, 9, 10, 11]


def test_pods_learn_from_the_scaler_what_it_has_stored_while_the_api_server_is_away():
    async def script(stage):
        await stage.at_ms(40_000)
        await stage.kill("kubernetes")
        await stage.kill("scaler")
        await stage.kill("consumer-0")
        for name in ("scaler", "consumer-0"):
            stage.start(name)

    trace = execute(a_statefulset(2, scaler="scaler"), script, for_ms=70_000)

    again = [row for row in trace.select("beliefs", kind="replicas", node="consumer-0") if row.incarnation == 2]
    assert [(row.held, row.at_s < 43) for row in again] == [(2, True)]


def test_a_notification_that_is_lost_is_not_repeated_while_the_connection_lives():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin("loss 100 scaler consumer-0")
        await stage.begin(f"scale {GROUP} 3")
        await stage.at_ms(50_000)
        await stage.end("script-1")

    trace = execute(a_statefulset(2, queues=12, scaler="scaler"), script, for_ms=100_000)

    assert [count for _, count in counts(trace, "consumer-0")] == [2]
    assert [count for _, count in counts(trace, "consumer-1")] == [2, 3]


def test_partitions_may_be_topics_of_one_queue():
    names = tuple(f"OrderEvents-P{number}" for number in range(5))
    consumer = attrs.evolve(ORDINAL, partition_prefix="OrderEvents-P", partition_count=5)
    topics = tuple(TopicSpec(name, ("broker-a",), 1) for name in names)
    trace = execute(a_statefulset(2, consumer=consumer, topics=topics), for_ms=30_000)

    found = {name: list(owned(trace, name)) for name in names}
    assert list(found.values()) == [["consumer-0"]] * 2 + [["consumer-1"]] * 3
