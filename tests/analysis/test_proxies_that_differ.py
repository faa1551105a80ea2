"""V20: proxies agree on members of groups and settings of clients, from traces small enough to check by eye."""

import pytest

from analysis.trace_rows import GROUP, SECOND, HandMadeTrace, found_in
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import Cause
from emulator.analysis.judge import broken, sentences
from emulator.analysis.oracles.proxies import PROXIES

END_S = 500
CALM_S = 200
"""After all that the starts explain."""
P1, P2 = "proxy-1", "proxy-2"
BOTH = {"c1": P1, "c2": P2}


def two_proxies():
    """Each has a client of the group, and each has reported it to the other."""
    trace = HandMadeTrace().life(P1, "started", role="proxy").life(P2, "started", role="proxy")
    trace.life("ba", "started", role="broker")
    for node in ("c1", "c2"):
        trace.life(node, "started", GROUP).life(node, "ready", GROUP)
    return members(members(trace.at(1), P1, BOTH), P2, BOTH)


def members(trace, proxy, value):
    return trace.believe(proxy, value, GROUP, "proxy_members")


def settings(trace, proxy, client, *topics, group=GROUP):
    return trace.believe(proxy, {"group": group, "topics": list(topics)}, client, "client_settings")


def reported(trace):
    found = found_in(trace, END_S)
    rows = found["proxy_disagreements"]
    assert ("V20" in broken(found)) is any(row.violation for row in rows)
    return [(row.kind, row.start_ns / SECOND, row.end_ns / SECOND, row.violation) for row in rows]


def test_proxies_that_agree_have_nothing_to_report():
    assert reported(two_proxies()) == []


@pytest.mark.parametrize(("lasts_s", "violation"), [(21, False), (21.1, True)])
def test_a_report_that_is_lost_is_made_up_for_by_the_next_heartbeats(lasts_s, violation):
    trace = members(two_proxies().at(CALM_S), P1, BOTH | {"c3": P1})
    trace = members(trace.at(CALM_S + lasts_s), P2, BOTH | {"c3": P1})
    assert reported(trace) == [("proxy_members", CALM_S, CALM_S + lasts_s, violation)]


def test_a_proxy_that_lists_no_member_any_more_differs_from_one_that_does():
    trace = members(members(two_proxies().at(CALM_S), P1, {"c1": P1}), P2, {"c1": P1})
    assert reported(members(trace.at(CALM_S + 10), P2, {})) == [("proxy_members", CALM_S + 10, END_S, True)]


def test_a_proxy_that_starts_has_not_heard_of_the_group_and_differs_from_none():
    trace = two_proxies().at(CALM_S).life(P2, "killed")
    assert reported(members(trace, P1, {"c1": P1, "c2": P1}).at(CALM_S + 50).life(P2, "started")) == []


def test_proxies_that_take_a_client_for_that_of_different_proxies_differ():
    assert reported(members(two_proxies().at(CALM_S), P2, {"c1": P2, "c2": P2})) == [
        ("proxy_members", CALM_S, END_S, True)
    ]


def test_a_proxy_that_sleeps_acts_on_nothing():
    trace = two_proxies().at(CALM_S).life(P2, "suspended")
    ((_, start_s, end_s, violation),) = reported(members(trace, P1, {"c1": P1}))
    assert (start_s, end_s, violation) == (CALM_S, END_S, False)


def test_the_death_of_a_proxy_explains_that_the_groups_of_proxies_differ_and_no_others():
    trace = two_proxies().at(CALM_S).life("proxy-3", "killed", role="proxy")
    trace = members(trace.at(CALM_S + 1), P1, {"c1": P1}).at(CALM_S + 40)
    assert reported(members(trace, P2, {"c1": P1})) == [("proxy_members", CALM_S + 1, CALM_S + 40, False)]
    for node in ("m1", "m2"):  # members of a group that no proxy lists, which differ at the same time
        trace.at(CALM_S + 2).believe(node, {"cids": [node], "queues": {"ba": 4}}, "direct/t")
    (row,) = [row for row in found_in(trace, END_S)["views"] if row.kind == "view"]
    assert (row.violation, row.cause) == (True, Cause.NONE)


@pytest.mark.parametrize("event", ["killed", "stopped", "powered_off"])
@pytest.mark.parametrize(("lasts_s", "violation"), [(150, False), (180, True)])
def test_the_end_of_a_proxy_explains_that_others_list_its_clients_until_they_expire(event, lasts_s, violation):
    """Clients of RocketMQ 4 that have moved to another proxy are listed twice until then (trap G55)."""
    trace = two_proxies().at(CALM_S).life("proxy-3", event, role="proxy")
    trace = members(trace.at(CALM_S + 1), P1, BOTH | {"c3": "proxy-1;proxy-3"})
    trace = members(trace.at(CALM_S + 1 + lasts_s), P2, BOTH | {"c3": "proxy-1;proxy-3"})
    assert reported(trace) == [("proxy_members", CALM_S + 1, CALM_S + 1 + lasts_s, violation)]


def test_the_end_of_a_member_explains_that_another_proxy_lists_it_until_it_was_silent_for_two_minutes():
    trace = members(two_proxies().at(CALM_S).life("c2", "killed"), P2, {"c1": P1})
    trace = members(trace.at(CALM_S + 130), P1, {"c1": P1})
    assert reported(trace) == [("proxy_members", CALM_S, CALM_S + 130, False)]


def test_members_differ_while_a_fault_keeps_a_proxy_from_all_brokers():
    trace = two_proxies().at(CALM_S).fault("begin", "f", "cut", "proxy-2 <-> ba", one_way=False)
    trace = members(trace.at(CALM_S + 130), P2, {"c2": P2})
    assert reported(trace) == [("proxy_members", CALM_S + 130, END_S, False)]


def test_settings_of_a_client_that_differ_are_reported_and_settings_that_a_proxy_has_not_are_not():
    trace = settings(settings(two_proxies().at(CALM_S), P1, "c1", "t"), P2, "c1", "t", "u")
    assert reported(trace) == [("client_settings", CALM_S, END_S, True)]
    assert reported(settings(two_proxies().at(CALM_S), P1, "shop", "t", group=None)) == []


def test_the_sentence_counts_what_differed_and_names_the_worst_group():
    found = found_in(members(two_proxies().at(CALM_S), P2, {"c1": P1}), END_S)
    (sentence,) = sentences(found)
    assert sentence == (
        "V20 is broken, proxies agree on the members of groups and on the settings of clients: members of a group "
        "differed 1 times; worst: g, 300.0 s without a cause"
    )


def test_a_finding_names_the_proxy_of_each_member():
    nobody, two = {}, {"c1": "127.1.187.1%8080%8081", "c2": "127.1.187.2%8080%8081"}
    found = found_in(members(members(two_proxies().at(CALM_S), P1, two), P2, nobody), END_S)
    (row,) = found["proxy_disagreements"]
    described = PROXIES.describe(row, Context(END_S * SECOND, {"127.1.187.1": P1, "127.1.187.2": P2}, {}))
    assert described == (
        "proxies differed about the members of group g: proxy-2: no members; "
        "proxy-1: 2 members: c1 at proxy-1, c2 at proxy-2; from 200.000 s to 500.000 s, the end of the run"
    )
