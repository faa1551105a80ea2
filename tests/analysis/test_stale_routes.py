"""Routes that clients use and no nameserver gives any more, from traces small enough to check by eye."""

import pytest

from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.measures.measured_symptoms import measured_symptoms
from support.every_case import each_case

END_S, TOPIC = 300, "orders"
NAMESERVER, PROXY, DIRECT, BEHIND = "ns", "proxy-1", "c4", "c5"
OLD_S, NEW_S = 1, 100


def route(*brokers, queues=(4, 4, 6), ids=("0",)):
    return {name: {"addrs": {number: f"{name}-{number}" for number in ids}, "queues": list(queues)} for name in brokers}


def answer(*brokers, queues=4, ids=(0,)):
    return {name: {"endpoints": ["p:8081"], "ids": list(ids), "queues": queues * len(ids)} for name in brokers}


def a_cluster(before=None, through=None):
    """A nameserver, a proxy that has cached the topic, and two clients."""
    trace = HandMadeTrace()
    trace.roles |= {NAMESERVER: "nameserver", PROXY: "proxy"}
    for node in (NAMESERVER, PROXY, DIRECT, BEHIND):
        trace.life(node, "started")
    trace.at(OLD_S)
    for node in (NAMESERVER, PROXY, DIRECT):
        trace.believe(node, before or route("a", "b"), TOPIC, "route")
    return trace.believe(BEHIND, through or answer("a", "b"), TOPIC, "proxy_route")


def stale(trace):
    rows = found_in(trace, END_S)["stale_routes"]
    return [(row.node, row.behind_proxy, row.start_ns / SECOND, row.end_ns / SECOND) for row in rows]


def severity(trace):
    found = measured_symptoms(found_in(trace, END_S), Context(END_S * SECOND, {}, {}))
    return max((item.severity for item in found if item.kind is SymptomKind.STALE_ROUTES), default=0)


def changed(after_direct_s, after_behind_s):
    """Broker b goes; the proxy never loads the route again."""
    trace = a_cluster().at(NEW_S).believe(NAMESERVER, route("a"), TOPIC, "route")
    trace.at(NEW_S + after_direct_s).believe(DIRECT, route("a"), TOPIC, "route")
    return trace.at(NEW_S + after_behind_s).believe(BEHIND, answer("a"), TOPIC, "proxy_route")


def test_a_client_is_stale_until_it_has_what_a_nameserver_gives_and_an_idle_cache_of_a_proxy_is_not():
    assert stale(a_cluster()) == []
    assert stale(changed(20, 60)) == [(DIRECT, False, 100, 120), (BEHIND, True, 100, 160)]


@pytest.mark.parametrize(("direct_s", "behind_s", "is_symptom"), [(31, 71, False), (31.5, 71, True), (31, 71.5, True)])
def test_a_client_behind_a_proxy_may_be_stale_for_as_long_as_both_caches_allow(direct_s, behind_s, is_symptom):
    assert (severity(changed(direct_s, behind_s)) > 1) is is_symptom


@each_case(
    ("given", "answered"),
    [
        (route("a", queues=(8, 4, 6)), answer("a", queues=8)),
        (route("a", queues=(8, 4, 2)), answer("a", queues=4)),
        (route("a", queues=(8, 4, 4)), answer("a", queues=8)),
        (route("a", queues=(8, 4, 0)), answer("a", queues=8)),
        (route("a", ids=("1", "0")), answer("a", ids=(0, 1))),
    ],
    ids=("surplus", "only-written", "only-read", "closed", "slave"),
)
def test_what_proxies_answer_follows_from_the_route(given, answered):
    assert stale(a_cluster(given, answered)) == []


def test_a_client_that_has_ended_is_not_stale():
    trace = a_cluster().at(50).life(DIRECT, "killed").life(BEHIND, "killed")
    assert stale(trace.at(NEW_S).believe(NAMESERVER, route("a"), TOPIC, "route")) == []
