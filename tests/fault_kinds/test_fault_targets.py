"""Target a fault hits: how it is said, who that is, and what is refused."""

from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.scope import ANY, LinkScope, NodeScope
from faults.target import ROLES, Lead, Leading, Names, NodePool, PoolShare, group_of, target
from nodes.fields import FieldError
from support.every_case import each_case

SERVERS = {"nameservers": ("ns-1", "ns-2"), "brokers": ("a", "b", "c", "d", "e"), "members of g": ("c1", "c2", "c3")}


@attrs.frozen
class Known:
    """A cluster of pools and leads that are given."""

    pools: dict[str, tuple[str, ...]] = attrs.Factory(lambda: SERVERS)
    leading: dict[tuple[Lead, str], tuple[str, ...]] = attrs.Factory(dict)

    def pool(self, pool):
        return self.pools.get(pool, ())

    def leads(self, lead, of):
        return self.leading.get((lead, of), ())


def found(text, seed=1, cluster=None):
    return target(text).find(cluster or Known(), Random(seed))


@each_case(
    ("text", "read"),
    [
        ("broker-a", Names(("broker-a",))),
        ("broker-a,broker-b", Names(("broker-a", "broker-b"))),
        (" broker-a ,  c1 ", Names(("broker-a", "c1"))),
        ("*", Names(("*",))),
        ("minor", Names(("minor",))),
        ("master", Names(("master",))),
        ("g+4", Names(("g+4",))),
        *((role, NodePool(role)) for role in ROLES),
        ("members of g", NodePool("members of g")),
        ("members  of   g", NodePool("members of g")),
        ("minor brokers", NodePool("brokers", PoolShare.MINOR)),
        ("major members of g", NodePool("members of g", PoolShare.MAJOR)),
        ("random nodes", NodePool("nodes", PoolShare.RANDOM)),
        ("one of members  of g", NodePool("members of g", PoolShare.ONE)),
        ("one", Names(("one",))),
        ("master of broker-a", Leading(Lead.MASTER, "broker-a")),
        ("slaves of broker-a", Leading(Lead.SLAVES, "broker-a")),
        ("acting master of broker-a", Leading(Lead.ACTING_MASTER, "broker-a")),
        ("leader of controllers", Leading(Lead.LEADER, "controllers")),
        ("owner of orders/broker-a/3", Leading(Lead.OWNER, "orders/broker-a/3")),
        ("owner of orders/broker-a/3 of g", Leading(Lead.OWNER, "orders/broker-a/3 of g")),
    ],
)
def test_it_is_read_as_it_is_written(text, read):
    assert target(text) == read


@each_case(
    ("text", "reported"),
    [
        (
            "a,,b",
            'expected the exact name of a node, "*", or a target by meaning: brokers, acting master of BROKER; not',
        ),
        ("", "expected the exact name of a node"),
        ("broker-*", "expected the exact name of a node"),
        ("acting master of ", "expected the exact name of a node"),
        ("members of ", "expected the exact name of a node"),
        ("some brokers", "expected the exact name of a node"),
        (
            "minor broker-a",
            "expected one of nodes, servers, nameservers, brokers, proxies, consumers, producers, apiservers, ",
        ),
        ("random master of a", "expected one of nodes, servers"),
    ],
)
def test_what_says_no_one_is_refused_in_one_line(text, reported):
    with pytest.raises(FieldError) as error:
        target(text)
    assert error.value.problem.startswith(reported)
    assert "\n" not in str(error.value)
    with pytest.raises(FieldError) as error:
        NodeScope(text)
    assert error.value.field == "node"
    with pytest.raises(FieldError) as error:
        LinkScope("a", text)
    assert error.value.field == "dst"


@given(count=st.integers(1, 30), seed=st.integers(0, 10_000))
def test_a_share_is_as_large_as_its_name_says_and_keeps_the_order_of_the_cluster(count, seed):
    names = tuple(f"n{i:02}" for i in range(count))
    cluster = Known({"brokers": names})
    minor, major, some, item = (found(f"{share} brokers", seed, cluster) for share in PoolShare)

    assert len(minor) == max(1, (count - 1) // 2)
    assert len(minor) < count / 2 or count <= 2
    assert len(major) > count / 2
    assert len(major) - 1 <= count / 2
    assert 1 <= len(some) <= count
    assert len(item) == 1
    for chosen in (minor, major, some, item):
        assert list(chosen) == sorted(dict.fromkeys(chosen))
        assert all(name in names for name in chosen)


def test_a_draw_depends_on_its_stream_alone_and_reaches_everybody():
    drawn = [found("random brokers", seed) for seed in range(200)]

    assert drawn == [found("random brokers", seed) for seed in range(200)]
    assert sorted(dict.fromkeys(map(len, drawn))) == [1, 2, 3, 4, 5]
    assert sorted(dict.fromkeys(name for names in drawn for name in names)) == list(SERVERS["brokers"])
    assert len(dict.fromkeys(found("minor brokers", seed) for seed in range(200))) == 10


def test_names_and_the_star_are_what_they_are():
    assert found("x, y") == ("x", "y")
    assert found(ANY) == (ANY,)
    assert found("brokers") == SERVERS["brokers"]


def test_a_scope_says_by_name_whom_it_has_found():
    leading = Known(leading={(Lead.ACTING_MASTER, "a"): ("a-s1",)})

    assert NodeScope("acting master of a").resolve(leading, Random(1)) == NodeScope("a-s1")
    link = LinkScope("nameservers", "acting master of a", one_way=True).resolve(leading, Random(1))
    assert link == LinkScope("ns-1, ns-2", "a-s1", one_way=True)
    assert link.describe() == "ns-1, ns-2 -> a-s1"
    assert (link.matches("ns-2", "a-s1"), link.matches("a-s1", "ns-2")) == (True, False)
    assert LinkScope(ANY, "brokers").resolve(leading, Random(1)).matches("whoever", "e")


def test_links_among_a_group_hit_each_pair_and_none_to_the_rest():
    scope = LinkScope("brokers", "brokers").resolve(Known(), Random(1))

    assert scope.matches("a", "b")
    assert scope.matches("e", "a")
    assert not scope.matches("a", "ns-1")


@pytest.mark.parametrize("scope", [NodeScope("owner of t/a/0"), NodeScope("producers"), NodeScope("minor producers")])
def test_no_one_is_reported_by_name_of_the_field(scope):
    with pytest.raises(FieldError, match=r"^node: expected at least one node: no node is .* now$"):
        scope.resolve(Known(), Random(1))


@pytest.mark.parametrize(("src", "dst", "field"), [("producers", "a", "src"), ("a", "producers", "dst")])
def test_a_link_needs_somebody_at_both_ends(src, dst, field):
    with pytest.raises(FieldError, match=f"^{field}: expected at least one node"):
        LinkScope(src, dst).resolve(Known(), Random(1))


def test_a_link_of_one_node_to_itself_is_refused_also_when_it_turns_out_later():
    leading = Known(leading={(Lead.MASTER, "a"): ("a",)})

    with pytest.raises(FieldError, match="dst: expected another node than a"):
        LinkScope("master of a", "a").resolve(leading, Random(1))


def test_a_group_is_read_from_its_pool():
    assert group_of("members of my group") == "my group"
    assert group_of("brokers") is None
