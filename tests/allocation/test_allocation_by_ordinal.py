"""ORDINAL, the rule of the StatefulSet design."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.allocation.ordinal import AllocatePartitions, allocate_by_ordinal, ordinal_of, ordinal_range, pod_name
from nodes.allocation.strategy import AllocationError
from nodes.protocol.model import MessageQueue

some = st.integers(0, 200)


def queues(count):
    return [MessageQueue("t", "b", number) for number in range(count)]


def pods(count):
    return [pod_name("consumer", ordinal) for ordinal in range(count)]


@pytest.mark.parametrize(
    ("partitions", "replicas", "sizes"),
    [
        (10, 4, [2, 2, 2, 4]),
        (11, 4, [2, 2, 2, 5]),
        (16, 6, [2, 2, 2, 2, 2, 6]),
        (3, 5, [1, 1, 1, 0, 0]),
        (0, 2, [0, 0]),
    ],
)
def test_the_last_pod_gets_the_whole_remainder(partitions, replicas, sizes):
    assert [len(ordinal_range(ordinal, replicas, partitions)) for ordinal in range(replicas)] == sizes


@given(replicas=st.integers(1, 200), partitions=some)
def test_the_runs_of_all_pods_are_the_partitions_in_order(replicas, partitions):
    runs = [number for ordinal in range(replicas) for number in ordinal_range(ordinal, replicas, partitions)]

    assert runs == list(range(partitions))


@given(replicas=some, partitions=some, beyond=some)
def test_a_pod_beyond_the_replicas_or_the_partitions_gets_nothing(replicas, partitions, beyond):
    assert not ordinal_range(min(replicas, partitions) + beyond, replicas, partitions)


@given(replicas=st.integers(1, 200), partitions=some)
def test_all_pods_with_partitions_but_the_last_have_equally_many(replicas, partitions):
    sizes = [len(ordinal_range(ordinal, replicas, partitions)) for ordinal in range(min(replicas, partitions))]

    assert len(set(sizes[:-1])) <= 1
    assert all(size <= sizes[-1] < size + replicas for size in sizes[:-1])


@given(ordinal=st.integers(0, 10**6), stem=st.text(min_size=1))
def test_a_pod_knows_its_ordinal_from_its_name(ordinal, stem):
    assert ordinal_of(pod_name(stem, ordinal)) == ordinal


@pytest.mark.parametrize("name", ["consumer", "consumer-", "-1", "consumer-x", "consumer-²", "billing+4", ""])
def test_a_name_without_ordinal_is_no_name_of_a_pod(name):
    with pytest.raises(AllocationError, match="expected a pod's name such as consumer-0"):
        ordinal_of(name)


def test_who_the_members_are_does_not_matter_so_the_queues_of_a_dead_pod_are_nobodys():
    shares = {name: allocate_by_ordinal("g", name, queues(11), pods(4)) for name in pods(5)}

    assert [q.queue_id for q in shares["consumer-3"]] == [6, 7, 8, 9, 10]
    assert shares["consumer-4"] == []
    assert allocate_by_ordinal("g", "consumer-0", queues(11), []) == []


def test_a_topic_without_queues_is_an_error_as_for_every_strategy():
    with pytest.raises(AllocationError, match="mqAll"):
        allocate_by_ordinal("g", "consumer-0", [], pods(1))


@given(replicas=st.integers(1, 20), partitions=st.integers(1, 40))
def test_a_partition_that_is_a_topic_has_the_owner_of_its_number(replicas, partitions):
    allocate = AllocatePartitions("OrderEvents-P", partitions)

    for number in range(partitions):
        topic = [MessageQueue(f"OrderEvents-P{number}", "b", 0)]
        owners = [ordinal for ordinal in range(replicas) if allocate("g", f"consumer-{ordinal}", topic, pods(replicas))]
        assert len(owners) == 1
        assert number in ordinal_range(owners[0], replicas, partitions)


@pytest.mark.parametrize("topic", ["%RETRY%g", "OrderEvents-Px", "OrderEvents-P", "OrderEvents"])
def test_the_queues_of_other_topics_are_allocated_as_without_partitions(topic):
    allocate, listed = AllocatePartitions("OrderEvents-P", 4), [MessageQueue(topic, "b", number) for number in range(5)]

    assert [len(allocate("g", name, listed, pods(2))) for name in pods(2)] == [2, 3]
