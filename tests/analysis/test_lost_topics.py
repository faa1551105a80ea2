"""Topics that an elected master did not have, from traces small enough to check by eye."""

import pytest

from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.measures.lost_topics import LostTopic

END_S = 100
MASTER, SLAVE, NAMESERVER, NEWS = "broker-a", "broker-a-s1", "ns-1", "news"
REPLICAS = {MASTER: 1, SLAVE: 2}
COPIED_S, LISTED_S, ELECTED_S = 10, 20, 30


def serves(trace, node, how):
    replica = REPLICAS[node]
    epoch = sum(row[5] == "broker_role" for row in trace.rows["beliefs"])
    role = {"replica": replica, "serves_as": how, "master": replica if how == "master" else 3 - replica, "epoch": epoch}
    return trace.believe(node, role, "broker-a", "broker_role")


def lists(trace, *brokers, topic=NEWS):
    return trace.believe(
        NAMESERVER, {name: {"addrs": {"0": name}, "queues": [4, 4, 6]} for name in brokers}, topic, "route"
    )


def copies(trace, version, node=SLAVE):
    return trace.believe(node, {"counter": version}, "topics", "data_version")


def a_group():
    """A master, and a slave that has copied its topics at 10 s."""
    trace = HandMadeTrace()
    trace.roles |= {MASTER: "broker", SLAVE: "broker", NAMESERVER: "nameserver"}
    serves(trace.at(1), MASTER, "master")
    serves(trace, SLAVE, "slave")
    return copies(trace.at(COPIED_S), 1)


def until_the_election():
    """A nameserver lists `news` at 20 s, and the slave becomes master at 30 s."""
    return serves(lists(a_group().at(LISTED_S), "broker-a").at(ELECTED_S), SLAVE, "master")


def lost(trace):
    return found_in(trace, END_S)["lost_topics"]


def row(end_s=END_S, *, censored=True, topic=NEWS):
    times_ns = (second * SECOND for second in (LISTED_S, ELECTED_S, end_s))
    return LostTopic(topic, "broker-a", MASTER, SLAVE, *times_ns, censored=censored)


def test_a_topic_that_is_listed_after_the_last_copy_is_lost_until_the_end():
    assert lost(until_the_election()) == (row(),)


def test_a_topic_that_was_copied_before_the_election_is_there():
    trace = copies(lists(a_group().at(LISTED_S), "broker-a").at(25), 2)

    assert lost(serves(trace.at(ELECTED_S), SLAVE, "master")) == ()


def test_a_slave_that_has_never_copied_loses_all_topics():
    trace = HandMadeTrace()
    trace.roles |= {MASTER: "broker", SLAVE: "broker", NAMESERVER: "nameserver"}
    lists(serves(trace.at(1), MASTER, "master").at(LISTED_S), "broker-a")
    lists(trace, "broker-a", topic="orders")

    assert lost(serves(trace.at(ELECTED_S), SLAVE, "master")) == (row(), row(topic="orders"))


def test_the_first_listing_counts_and_what_brokers_and_clients_believe_does_not():
    trace = lists(a_group().at(LISTED_S), "broker-a").at(25)
    lists(trace, "broker-a").believe("c1", {"broker-a": {}}, "weather", "route")

    assert lost(serves(trace.at(ELECTED_S), SLAVE, "master")) == (row(),)


@pytest.mark.parametrize("request_name", ["UPDATE_AND_CREATE_TOPIC", "UPDATE_AND_CREATE_TOPIC_LIST"])
def test_a_topic_that_is_created_again_is_there_from_then_on(request_name):
    trace = until_the_election().at(40).admin(SLAVE, request_name, topic=NEWS)

    assert lost(trace) == (row(40, censored=False),)


def test_a_topic_of_which_the_new_master_stores_a_message_is_there_from_then_on():
    trace = until_the_election().at(45).message(SLAVE, "stored", 0, topic=NEWS)

    assert lost(trace) == (row(45, censored=False),)


@pytest.mark.parametrize("at_s", [25, 40])
@pytest.mark.parametrize(
    ("request_name", "broker_name"), [("DELETE_TOPIC_IN_BROKER", "broker-a"), ("DELETE_TOPIC_IN_NAMESRV", "")]
)
def test_a_topic_that_an_administrator_deletes_before_or_after_the_election_is_not_lost(
    at_s, request_name, broker_name
):
    trace = lists(a_group().at(LISTED_S), "broker-a")
    if at_s < ELECTED_S:
        trace.at(at_s).admin(MASTER, request_name, topic=NEWS, broker_name=broker_name)
    serves(trace.at(ELECTED_S), SLAVE, "master")
    if at_s > ELECTED_S:
        trace.at(at_s).admin(SLAVE, request_name, topic=NEWS, broker_name=broker_name)

    assert lost(trace) == ()


def test_what_happens_to_another_topic_or_at_another_broker_group_changes_nothing():
    trace = until_the_election().at(40)
    trace.admin("broker-b", "UPDATE_AND_CREATE_TOPIC", topic=NEWS, broker_name="broker-b")
    trace.admin(SLAVE, "DELETE_TOPIC_IN_BROKER", topic="orders")
    trace.admin("broker-b", "DELETE_TOPIC_IN_BROKER", topic=NEWS, broker_name="broker-b")
    trace.message(SLAVE, "stored", 0, topic="orders")
    trace.message("broker-b", "stored", 0, topic=NEWS, broker_name="broker-b")

    assert lost(trace) == (row(),)


def test_a_topic_of_another_broker_group_is_not_lost_at_this_election():
    trace = lists(a_group().at(LISTED_S), "broker-b")

    assert lost(serves(trace.at(ELECTED_S), SLAVE, "master")) == ()


def test_a_master_that_stays_master_loses_nothing():
    trace = lists(a_group().at(LISTED_S), "broker-a")
    serves(trace.at(ELECTED_S), MASTER, "master")
    serves(trace, SLAVE, "slave")

    assert lost(trace) == ()


def test_a_topic_that_is_lost_at_two_elections_is_counted_once_from_the_first():
    assert lost(serves(until_the_election().at(40), MASTER, "master")) == (row(),)
