"""Pods divide the queues by their ordinals and the replicas that the API server tells, without asking any broker."""

from emulator.testing import GROUP, TOPIC, play
from nodes.beliefs import OwnershipEvent
from nodes.protocol.codes import RequestCode
from support.statefulsets import a_statefulset


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
    trace = play(a_statefulset(4, queues=10), for_ms=40_000)

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

    trace = play(a_statefulset(4, queues=12), script, for_ms=40_000)

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

    trace = play(a_statefulset(1), script, for_ms=40_000)

    assert owned(trace)["consumer-0"] == [0, 1, 2, 3]


def test_without_the_api_server_the_last_known_number_stays_so_queues_have_no_owner_or_two():
    async def script(stage):
        await stage.at_ms(30_000)
        stage.cut("consumer-0", "kubernetes")
        await stage.begin(f"scale {GROUP} 3")

    # The probes fail, too: at 51 s the pod would be restarted.
    trace = play(a_statefulset(2, queues=12), script, for_ms=45_000)

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

    trace = play(a_statefulset(2), script, for_ms=120_000)

    acquired = [row for row in trace.select("ownership", topic=TOPIC, event="acquired") if row.at_s > 30]
    assert {(row.node, row.queue_id) for row in acquired} == {("consumer-1", 2), ("consumer-1", 3)}
    assert min(row.at_s for row in acquired) > 90
