"""Partitions: who sees whom, for every number of nodes."""

from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.link import Partition
from faults.scope import PartitionScope, Shape
from faults.target import ANY
from nodes.fields import FieldError
from support.every_case import each_case

counts = st.integers(4, 9)
seeds = st.integers(0, 1_000)


@attrs.frozen
class Servers:
    """A cluster that has nothing but these."""

    names: tuple[str, ...]

    def pool(self, pool):
        return self.names if pool in ("servers", "nodes") else ()

    def leads(self, lead, of):
        return ()


def servers(count):
    return Servers(tuple(f"n{i}" for i in range(count)))


def seen_by(scope, names):
    """Node -> whom it sees, itself included."""
    return {name: tuple(item for item in names if item == name or not scope.matches(name, item)) for name in names}


def allocated(shape, count, seed, **answer):
    cluster = servers(count)
    scope = PartitionScope(shape, **answer).resolve(cluster, Random(seed))
    for name in cluster.names:
        for other in cluster.names:
            assert scope.matches(name, other) == scope.matches(other, name)
    return scope, seen_by(scope, cluster.names)


@given(count=counts, seed=seeds)
def test_on_a_ring_everybody_sees_a_majority_and_no_two_the_same_one(count, seed):
    _, seen = allocated("majorities-ring", count, seed)

    assert all(len(whom) > count / 2 for whom in seen.values())
    assert len(dict.fromkeys(seen.values())) == count
    assert all(len(whom) < count for whom in seen.values())


@given(count=st.integers(3, 9), seed=seeds)
def test_a_bridge_joins_two_halves_that_do_not_see_each_other(count, seed):
    _, seen = allocated("bridge", count, seed)

    bridges = [name for name, whom in seen.items() if len(whom) == count]
    assert len(bridges) == 1
    halves = list(dict.fromkeys(whom for name, whom in seen.items() if name not in bridges))
    item, other = (tuple(name for name in half if name not in bridges) for half in halves)
    assert not [name for name in item if name in other]
    assert len(item) + len(other) == count - 1
    assert abs(len(item) - len(other)) <= 1


@given(count=st.integers(2, 9), seed=seeds)
def test_isolated_nodes_see_each_other_and_no_one_of_the_rest(count, seed):
    scope, seen = allocated("isolate", count, seed)

    alone = tuple(name for name in seen if name in scope.node.split(", "))
    rest = tuple(name for name in seen if name not in alone)
    assert alone
    assert rest
    assert all(seen[name] == alone for name in alone)
    assert all(seen[name] == rest for name in rest)


@pytest.mark.parametrize("shape", list(Shape))
def test_links_to_others_than_those_allocated_are_not_hit(shape):
    scope, _ = allocated(shape, 9, 1, among="n0, n1, n2, n3, n4", node="n0")

    assert not any(scope.matches(name, "n7") or scope.matches("n7", name) for name in servers(9).names)
    assert any(scope.matches("n0", name) for name in ("n1", "n2", "n3", "n4"))


def test_named_nodes_keep_their_order_and_others_are_drawn():
    named = [allocated("majorities-ring", 5, seed, among="n4, n0, n2, n1, n3")[0].among for seed in range(20)]
    drawn = [allocated("majorities-ring", 5, seed)[0].among for seed in range(20)]

    assert dict.fromkeys(named) == {"n4, n0, n2, n1, n3": None}
    assert len(dict.fromkeys(drawn)) > 10
    assert drawn == [allocated("majorities-ring", 5, seed)[0].among for seed in range(20)]


def test_all_nodes_are_divided_where_the_star_is_said():
    assert len(allocated("bridge", 6, 1, among=ANY)[0].among.split(", ")) == 6


@pytest.mark.parametrize(
    ("shape", "count", "reported"),
    [
        ("isolate", 1, "among: expected 2 nodes at least for isolate: servers"),
        ("majorities-ring", 3, "among: expected 4 nodes at least for majorities-ring: servers"),
        ("bridge", 2, "among: expected 3 nodes at least for bridge: servers"),
    ],
)
def test_too_few_nodes_are_reported(shape, count, reported):
    with pytest.raises(FieldError) as error:
        PartitionScope(shape).resolve(servers(count), Random(1))
    assert str(error.value) == reported


def test_no_one_of_those_allocated_cannot_be_isolated():
    with pytest.raises(FieldError, match="node: expected at least one node: no node is n9 now"):
        PartitionScope("isolate", node="n9").resolve(servers(4), Random(1))


@each_case("shape", ["ring", "", None, 3])
def test_a_shape_is_one_of_three(shape):
    with pytest.raises(FieldError, match="shape: expected one of isolate, majorities-ring, bridge, not"):
        PartitionScope(shape)


def test_it_describes_itself():
    isolate = Partition(PartitionScope("isolate", "n0, n1", "n0"))

    assert isolate.describe() == "partition: isolate n0 among n0, n1"
    assert isolate.parameters() == {"shape": "isolate"}
    assert Partition(PartitionScope("bridge")).describe() == "partition: bridge among servers"
