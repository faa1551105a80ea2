"""Why something is missing: from a belief, by hand and in whole clusters, and an owner from a queue."""

import attrs
import pytest

from emulator.testing import ConsoleUser, a_scenario, run_at_console
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
from emulator.why.question import WhyError
from why.written_traces import TracedByHand, address, client_id

HEART_BEAT = 34
SUBSCRIBED = {"expression": "*", "type": "TAG", "model": "CLUSTERING"}


@pytest.fixture
def traced(tmp_path):
    traced = TracedByHand(tmp_path)
    for node in ("broker-a", "broker-b", "c1", "c2"):
        traced.life(node, "started")
    return traced


def members(*nodes):
    return [client_id(node) for node in nodes]


def view(*nodes, **queues):
    return {"cids": members(*nodes), "queues": {name.replace("_", "-"): count for name, count in queues.items()}}


def subscribe(traced, *nodes, group="g"):
    for node in nodes:
        traced.belief(node, "subscription", f"{group}/orders", SUBSCRIBED)


def allocated(traced, node, *others, broker_a=8):
    traced.belief(node, "view", "g/orders", view(node, *others, broker_a=broker_a), source=address("broker-a"))


# --- something that is missing from a belief ----------------------------------------------


def test_a_member_that_was_never_heard_of(traced):
    subscribe(traced, "c1", "c2")
    traced.at(1).belief("broker-a", "consumer_ids", "g", members("c1"))
    reported = traced.why("no c2 in consumer_ids g at 40s")

    assert reported == (
        "at 40.000 s broker-a does not have c2 in consumer_ids g",
        "  broker-a never had it",
        "",
        "signals that it missed (0.000 s - 40.000 s; broker-a, c2):",
        "  no fault was active",
        "  no heartbeat or registration of c2 has reached broker-a",
    )


def test_a_member_that_was_removed_and_of_whom_the_list_is_reported_on(traced):
    subscribe(traced, "c1", "c2")
    traced.at(1).frame("c2", "broker-a", HEART_BEAT)
    traced.belief("broker-a", "consumer_ids", "g", members("c1", "c2"))
    traced.at(2).belief("c1", "view", "g/orders", view("c1", "c2", broker_a=8), source=address("broker-a"))
    scan = traced.at(130).timer("broker-a", "scanExceptionChannel")
    traced.belief("broker-a", "consumer_ids", "g", members("c1"), cause=scan)
    traced.at(131).belief("c1", "view", "g/orders", view("c1", broker_a=8), source=address("broker-a"))
    reported = traced.why("no c2 in view g/orders of c1")

    assert reported[:4] == (
        "c1 does not have c2 in view g/orders",
        "  c1 had it until 131.000 s",
        "  broker-a, which sent c1 its value at 131.000 s, does not have it either",
        "  broker-a had it until 130.000 s",
    )
    assert " 130.000 s  broker-a  consumer_ids g: 1 members: c1 (c2 gone)" in reported
    assert sum("the last HEART_BEAT (34) of c2 reached broker-a at 1.000 s" in line for line in reported) == 1


def test_a_node_that_has_not_asked_again_since_the_other_one_knows(traced):
    traced.at(1).belief("broker-a", "consumer_ids", "g", members("c1"))
    traced.at(2).belief("c1", "view", "g/orders", view("c1", broker_a=8), source=address("broker-a"))
    traced.at(3).belief("broker-a", "consumer_ids", "g", members("c1", "c2"))
    reported = traced.why("no c2 in view g/orders at 9s")

    assert reported[2] == (
        "  broker-a, which sent c1 its value at 2.000 s, has it since 3.000 s: c1 has not heard since"
    )


@pytest.mark.parametrize(
    ("event", "answer"),
    [
        ("killed", "  the process of c2 ended at 5.000 s (killed)"),
        ("suspended", "  c2 stands still since 5.000 s"),
        ("resumed", "  c2 is no member of g: it consumes for h"),
    ],
)
def test_the_state_of_the_node_that_is_missing(traced, event, answer):
    subscribe(traced, "c2", group="h")
    traced.belief("broker-a", "consumer_ids", "g", members("c1"))
    traced.at(5).life("c2", event)

    assert answer in traced.why("no c2 in consumer_ids g")


def test_what_is_there_is_said_to_be_there(traced):
    traced.at(1).belief("broker-a", "consumer_ids", "g", members("c1"))
    traced.at(2).belief("broker-b", "consumer_ids", "g", members("c1"))

    assert traced.why("no c1 in consumer_ids g")[0] == (
        "c1 is in consumer_ids g: broker-a since 1.000 s, broker-b since 2.000 s"
    )


def test_of_several_nodes_the_one_that_lacks_it_is_reported_about(traced):
    traced.at(1).belief("broker-a", "consumer_ids", "g", members("c1"))
    traced.at(2).belief("broker-b", "consumer_ids", "g", members("c1", "c2"))

    assert traced.why("no c2 in consumer_ids g")[0] == "broker-a does not have c2 in consumer_ids g"


@pytest.mark.parametrize("item", ["broker-b", address("broker-b"), "127.1.2.2"])
def test_a_broker_is_named_by_its_name_or_by_its_address(traced, item):
    addrs = {"broker-a": {"addrs": {"0": address("broker-a")}, "queues": [8, 8, 6]}}
    traced.at(1).belief("ns-1", "route", "orders", addrs)

    assert traced.why(f"no {item} in route orders")[0] == f"ns-1 does not have {item} in route orders"


def test_an_unknown_item_or_subject_gets_one_line(traced):
    traced.at(1).belief("broker-a", "consumer_ids", "g", members("c1"))

    with pytest.raises(
        WhyError, match=r"nothing that consumer_ids g ever had, named c3; there are .*broker-a, broker-b, c1, c2"
    ):
        traced.why("no c3 in consumer_ids g")
    with pytest.raises(WhyError, match="there is no subject of consumer_ids h"):
        traced.why("no c1 in consumer_ids h")


# --- a queue without an owner ---------------------------------------------------------------


def test_who_counts_a_member_that_is_dead_leaves_the_queue_to_it(traced):
    subscribe(traced, "c1", "c2")
    traced.at(1).owned("c2", "acquired")
    allocated(traced, "c1", "c2")
    traced.at(5).life("c2", "killed")
    reported = traced.why("queue orders/broker-a/3 at 9s")

    assert reported[:2] == (
        "at 9.000 s queue orders/broker-a/3 of group g has no owner: c2 lost it last, at 5.000 s",
        "  c1: it leaves the queue to others; since 1.000 s it counts 2 members, also c2 (killed at 5.000 s)",
    )


def test_the_member_that_should_have_the_queue_comes_first_and_one_that_sleeps_second(traced):
    subscribe(traced, "c1", "c2")
    traced.at(1).owned("c1", "acquired")
    traced.at(2).owned("c1", "dropped")
    traced.at(3).life("c1", "suspended")
    traced.belief("c2", "assignment", "g/orders", [["broker-a", 3]])
    reported = traced.why("queue orders/broker-a/3")

    assert reported[1:3] == (
        "  c2: it should have the queue since 3.000 s, and has not taken it; no pass has ended",
        "  c1: suspended since 3.000 s, so it makes no pass",
    )


def test_a_member_that_does_not_know_the_queue_says_what_it_knows(traced):
    subscribe(traced, "c1", "c2")
    traced.at(1).owned("c1", "acquired")
    traced.at(2).owned("c1", "dropped")
    for node in ("c1", "c2"):
        allocated(traced, node, broker_a=2)

    assert traced.why("queue orders/broker-a/3")[1] == (
        "  c1 and c2: it does not know the queue; since 2.000 s it allocates 2 of broker-a"
    )


def test_a_group_whose_members_are_all_gone(traced):
    subscribe(traced, "c1")
    traced.at(1).owned("c1", "acquired")
    traced.at(2).life("c1", "killed")

    assert traced.why("queue orders/broker-a/3")[1] == "  g has no member: the process of c1 at 2.000 s (killed) ended"


def test_no_one_ever_owned_it_since_a_member_of_the_group_does_not_consume_the_topic(traced):
    subscribe(traced, "c1")
    traced.at(1).owned("c1", "acquired", queue="orders/broker-a/0")
    allocated(traced, "c1", "c2")
    reported = traced.why("queue orders/broker-a/3")

    assert reported[1].endswith("it counts 2 members, also c2 (which does not consume orders)")
    assert any("view g/orders: 2 members: c1 c2" in line for line in reported)


# --- whole clusters ----------------------------------------------------------------------------


def test_a_cluster_explains_a_member_that_one_broker_does_not_count(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(15_000)
        await me.say("cut c2 broker-b one-way")

    scenario = attrs.evolve(a_scenario(consumers=2, brokers=("broker-a", "broker-b")), run_for_ms=170_000)
    path, _ = run_at_console(scenario, tmp_path, sitting)
    reported = answer_of_run(["no c2 in consumer_ids g at 165s"], open_run(path))

    assert reported[0] == "at 165.000 s broker-b does not have c2 in consumer_ids g"
    assert any(line.startswith("  cut-1 (cut c2 -> broker-b)") for line in reported)
    assert any("the last HEART_BEAT (34) of c2 reached broker-b" in line for line in reported)
