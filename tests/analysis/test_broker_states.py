"""When a broker group was away or read only, and what the picture shows of it."""

import pytest

from analysis.trace_rows import HandMadeTrace, write_run
from emulator.analysis.rendering.picture import page
from emulator.analysis.rendering.shown_report import analyze

WHOLE = {"broker-a": {"addrs": {"0": "127.1.2.1:10911"}, "queues": [4, 4, 6]}}
NO_MASTER = {"broker-a": {"addrs": {"1": "127.1.2.1:10921"}, "queues": [4, 4, 6]}}
NO_WRITE = {"broker-a": {"addrs": {"0": "127.1.2.1:10911"}, "queues": [4, 4, 4]}}


def begun():
    trace = HandMadeTrace()
    for node, role in (("broker-a", "broker"), ("ns-1", "nameserver"), ("ns-2", "nameserver")):
        trace.life(node, "started", role=role)
    trace.life("c1", "started", "g", role="consumer").subscribe("c1").own("c1", "acquired", 0, offset=0)
    return listed(trace.at(1), WHOLE, "ns-1", "ns-2")


def listed(trace, route, *nameservers):
    for nameserver in nameservers:
        trace.believe(nameserver, route, "t", "route")
    return trace


def states(trace, folder):
    report = analyze(write_run(trace, folder / "r", 100))
    return [
        (str(item.state), item.start_ns / 1e9, item.end_ns / 1e9, item.censored) for item in report["broker_states"]
    ]


def test_a_healthy_broker_and_the_time_before_it_is_listed_count_nothing(tmp_path):
    assert states(begun(), tmp_path) == []


@pytest.mark.parametrize(
    ("route", "state"), [(NO_MASTER, "read only"), (NO_WRITE, "read only"), (None, "away"), ({}, "away")]
)
def test_what_the_nameservers_list(tmp_path, route, state):
    trace = listed(begun().at(20), route, "ns-1", "ns-2")
    assert states(listed(trace.at(50), WHOLE, "ns-1", "ns-2"), tmp_path) == [(state, 20, 50, False)]


def test_one_nameserver_that_lists_it_is_enough(tmp_path):
    assert states(listed(begun().at(20), None, "ns-1"), tmp_path) == []
    assert states(listed(begun().at(20), NO_WRITE, "ns-1").at(30).life("ns-2", "killed"), tmp_path / "2") == [
        ("read only", 30, 100, True)
    ]


def test_without_a_nameserver_clients_keep_their_routes(tmp_path):
    trace = begun().at(20).life("ns-1", "killed").life("ns-2", "killed").at(30).life("broker-a", "suspended")
    assert states(trace, tmp_path) == []


@pytest.mark.parametrize(("begin", "end"), [("suspended", "resumed"), ("killed", "started")])
def test_a_broker_whose_processes_all_sleep_or_are_dead_is_away_also_while_it_is_listed(tmp_path, begin, end):
    trace = begun().at(20).life("broker-a", begin).at(50).life("broker-a", end)
    assert states(trace, tmp_path) == [("away", 20, 50, False)]


def test_the_picture_hatches_them_and_reports_when(tmp_path):
    trace = listed(begun().at(20), NO_MASTER, "ns-1", "ns-2").at(60).life("broker-a", "killed")
    drawn = page(analyze(write_run(trace, tmp_path / "r", 100)))

    assert "broker-a is read only\n20.0 s to 60.0 s (40.0 s)" in drawn
    assert "broker-a is away\n60.0 s to 100.0 s (&gt; 40.0 s)" in drawn
    assert 'fill="url(#read-only)"' in drawn
    assert 'fill="url(#away)"' in drawn
