"""Guests in the analysis of a run: they own, overlap and differ like other members."""

import pytest

import emulator
from emulator.analysis.judge import judge_run
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.trace.schema import LIFECYCLE
from nodes.beliefs import BeliefKind
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from support.findings import views_of
from support.run_rows import table_rows

SCENARIO = """
[scenario]
name = "guest-members"
run_for_s = 3600

[network]
delay_ms = 0

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[topic]]
name = "orders"
queues = 2

[[producer]]
group = "till"
topic = "orders"
rate_per_s = 20

[[consumer]]
group = "audit"
topics = ["orders"]
names = ["c1"]
options = { pollNameServerInterval = 1000 }
"""


class Member:
    """A consumer of a guest, one call after the other."""

    def __init__(self, namesrv_addr, client_id):
        from support.remoting_program import Caller

        self.client_id = client_id
        self.nameserver = Caller(*namesrv_addr.split(":"))
        self.broker = Caller(namesrv_addr.replace(".1.1:9876", ".2.1"), 10911)

    def ask_route(self):
        requested = headers.GetRouteInfoRequestHeader("orders")
        return self.nameserver.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, requested)

    def beat(self):
        subscriptions = (SubscriptionData("orders"),)
        where = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        group = ConsumerData("billing", ConsumeType.CONSUME_PASSIVELY, MessageModel.CLUSTERING, where, subscriptions)
        self.broker.ask(RequestCode.HEART_BEAT, None, HeartbeatData(self.client_id, (), (group,)))

    def rebalance(self):
        self.broker.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, headers.ConsumerGroupRequestHeader("billing"))

    def pull(self, queue_id):
        header = headers.PullMessageRequestHeader("billing", "orders", queue_id, 0, 32, 4, 0, 0, 0, "*", "TAG")
        return self.broker.ask(RequestCode.PULL_MESSAGE, header)

    def commit(self, queue_id, offset):
        header = headers.UpdateConsumerOffsetRequestHeader("billing", "orders", queue_id, offset)
        return self.broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    def close(self):
        self.nameserver.close()
        self.broker.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two members that pull one queue, have an old route, and do not know of each other; one ends without farewell."""
    with emulator.launch(loads(SCENARIO, "spec"), mode="live", runs=tmp_path_factory.mktemp("runs")) as cluster:
        cluster.until("agree", "within", "60s")
        cluster.run_for("1s")
        shop, mail = (Member(cluster.namesrv_addr, client_id) for client_id in ("10.0.0.1@shop", "10.0.0.2@mail"))
        for member in (shop, mail):
            member.ask_route()
            member.beat()
            member.rebalance()
        found = [member.pull(queue_id).code for member, queue_id in ((shop, 0), (shop, 1), (mail, 1))]
        shop.commit(0, 3)
        cluster.kill("broker-b")
        cluster.run_for("2s")
        reported = {verb: getattr(cluster, verb)().lines for verb in ("owners", "nodes", "views")}
        why = cluster.why("queue orders/broker-a/1 of billing").lines
        mail.close()
        cluster.run_for("1s")
        path = cluster.path
        shop.close()
    return path, found, reported, why


@pytest.fixture(scope="module")
def report(run):
    return judge_run(open_run(run[0]))


def test_a_queue_that_two_guests_pull_has_two_owners_until_one_of_them_is_gone(run, report):
    assert run[1] == [ResponseCode.SUCCESS] * 3
    (found,) = report["overlaps"]
    assert found.queue.name == "orders/broker-a/1"
    assert found.owners == ("guest", "guest/2")
    of_mail = (("node", "==", "guest/2"), ("event", "==", "killed"))
    assert [row["t_ns"] for row in table_rows(run[0], LIFECYCLE, ("t_ns",), *of_mail)] == [found.end_ns]


def test_no_queue_of_theirs_is_an_orphan_while_one_of_them_pulls_it(report):
    owned = {hold.queue: hold.start_ns for hold in reversed(report["holds"])}
    assert [row for row in report["orphans"] if row.start_ns >= owned.get(row.queue, report.end_ns)] == []


def test_who_was_notified_an_old_route_or_an_old_list_differs_from_who_was_notified_the_new_one(report):
    routes = [
        row.holders
        for row in report["beliefs"]
        if (row.role, row.kind, row.subject) == ("consumer", BeliefKind.ROUTE, "orders")
    ]
    assert {holder.nodes: "broker-b" in holder.value for holders in routes for holder in holders} == {
        ("guest",): True,
        ("c1",): False,
    }
    (members,) = [row.holders for row in views_of(report) if row.subject == "billing/orders"]
    assert {member.nodes: member.value.count("@") for member in members} == {("guest",): 1, ("guest/2",): 2}


def test_what_a_guest_has_committed_is_not_lost_although_no_one_saw_it_consumed(report):
    assert [row for row in report["losses"] if row.queue.group == "billing"] == []


def test_the_verbs_that_look_show_them_like_others(run):
    _, _, reported, why = run
    assert "billing  orders/broker-a/1: guest guest/2 (2 owners)" in reported["owners"]
    assert [line.split() for line in reported["nodes"]][-2:] == [
        ["guest", "consumer", "10.0.0.1@shop", "outside"],
        ["guest/2", "consumer", "10.0.0.2@mail", "outside"],
    ]
    assert reported["views"][0].split()[-2:] == ["guest", "guest/2"]
    assert any(line.startswith("view billing/orders") and line.endswith("they differ") for line in reported["views"])
    assert "has 2 owners: guest since" in why[0]
    assert any("broker-a answered GET_CONSUMER_LIST_BY_GROUP (38)" in line for line in why)
