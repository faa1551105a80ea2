"""Clients of RocketMQ 5 that reach no proxy, from traces small enough to check by eye."""

from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.measures.measured_symptoms import measured_symptoms
from emulator.analysis.run_measures import measures_of

END_S = 100
SHOP, BILLING = "shop", "billing-1"
BOTH = "127.1.187.1:8081;127.1.187.2:8081"
NAMES = {"127.1.187.1": "proxy-1", "127.1.187.2": "proxy-2"}


def connect(trace, node, proxy, endpoints=BOTH):
    return trace.believe(node, proxy, endpoints, "proxy")


def clients():
    trace = HandMadeTrace().life(SHOP, "started", role="producer").life(BILLING, "started")
    return connect(connect(trace.at(1), SHOP, "127.1.187.1:8081"), BILLING, "127.1.187.2:8081")


def without(trace):
    rows = found_in(trace, END_S)["without_proxy"]
    return [(row.node, row.start_ns / SECOND, row.end_ns / SECOND, row.censored) for row in rows]


def symptoms(trace):
    found = measured_symptoms(found_in(trace, END_S), Context(END_S * SECOND, NAMES, {}))
    return [(item.severity, item.text) for item in found if item.kind is SymptomKind.WITHOUT_PROXY]


def test_a_client_that_goes_on_with_another_proxy_is_not_without():
    assert without(connect(clients().at(40), SHOP, "127.1.187.2:8081")) == []


def test_a_client_is_without_a_proxy_from_the_first_failure_until_it_is_connected():
    trace = connect(connect(clients().at(40), SHOP, None).at(41), SHOP, None).at(45.5)
    assert without(connect(trace, SHOP, "127.1.187.1:8081")) == [(SHOP, 40, 45.5, False)]


def test_a_client_that_a_new_route_leads_to_other_endpoints_is_not_without_the_old_ones():
    trace = connect(clients().at(40), SHOP, None).at(52)
    assert without(connect(trace, SHOP, "127.1.187.2:18083", "127.1.187.1:18083;127.1.187.2:18083")) == [
        (SHOP, 40, 52, False)
    ]


def test_a_client_that_ends_needs_no_proxy():
    assert without(connect(clients().at(40), SHOP, None).at(60).life(SHOP, "killed")) == [(SHOP, 40, 60, False)]


def test_clients_of_the_same_endpoints_share_a_symptom_that_names_the_proxies():
    trace = connect(connect(clients().at(40), SHOP, None).at(60), BILLING, None)
    assert symptoms(connect(trace.at(65), BILLING, "127.1.187.1:8081")) == [
        (6.0, "shop, billing-1 could not connect with proxy-1 or proxy-2; shop for 60.0 s from 40.0 s on")
    ]
    assert symptoms(connect(connect(clients().at(40), SHOP, None).at(50), SHOP, "127.1.187.1:8081"))[0][0] == 1.0


def test_runs_are_compared_by_the_seconds_of_all_clients():
    trace = connect(connect(clients().at(40), SHOP, None).at(60), BILLING, None)
    assert measures_of(found_in(connect(trace.at(65), BILLING, "127.1.187.1:8081"), END_S))["without_proxy_s"] == 65.0
    assert measures_of(found_in(clients(), END_S))["without_proxy_s"] == 0.0
