"""Where two runs differ in beliefs and owners, instant by instant."""

import json
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.comparison.beliefs import OWNERS, held_differences
from emulator.trace.run_directory import RunDirectory
from emulator.why.words import NodeNames
from why.written_traces import IPS, NS, TracedByHand, client_id

NAMES = NodeNames(IPS)


@pytest.fixture
def traced(tmp_path):
    """A trace in which some nodes have started."""
    number = count()

    def make():
        trace = TracedByHand(tmp_path / str(next(number)))
        for node in ("c1", "c2", "broker-a"):
            trace.at(0).life(node, "started")
        return trace

    return make


def run_of(trace, end_s):
    return RunDirectory(trace.written(), {"virtual_s": end_s})


def differences(a, b, end_s=100.0, other_end_s=100.0, names=NAMES):
    return held_differences(run_of(a, end_s), run_of(b, other_end_s), (names, names))


def brief(found):
    """(who, about what, from, until, value of the one, value of the other)."""
    return [
        (
            item.about.node,
            item.about.subject,
            item.begin_ns / NS,
            None if item.end_ns is None else item.end_ns / NS,
            item.first and item.first.value,
            item.second and item.second.value,
        )
        for item in found
    ]


def test_what_is_held_at_the_same_instants_does_not_differ(traced):
    a, b = traced(), traced()
    for trace in (a, b):
        trace.at(1).belief("c1", "route", "orders", {"x": 1})
    b.at(2).timer("c1", "x")  # seq and causes do not matter
    a.at(3).belief("c1", "route", "orders", None)
    b.at(3).belief("c1", "route", "orders", None)

    assert differences(a, b) == ()


def test_a_belief_that_one_run_has_earlier_differs_until_the_other_has_it(traced):
    a, b = traced(), traced()
    a.at(1).belief("c1", "route", "orders", {"x": 1})
    b.at(4).belief("c1", "route", "orders", {"x": 1})

    assert brief(differences(a, b)) == [("c1", "orders", 1, 4, '{"x": 1}', None)]


def test_only_the_last_value_of_an_instant_counts(traced):
    a, b = traced(), traced()
    a.at(1).belief("c1", "route", "orders", {"x": 1})
    b.at(1).belief("c1", "route", "orders", {"x": 2})
    b.at(1).belief("c1", "route", "orders", {"x": 1})

    assert differences(a, b) == ()


def test_a_difference_goes_on_while_its_values_change(traced):
    a, b = traced(), traced()
    a.at(1).belief("c1", "route", "orders", 1)
    b.at(2).belief("c1", "route", "orders", 2)
    a.at(3).belief("c1", "route", "orders", 3)
    (found,) = differences(a, b)

    assert (found.begin_ns, found.end_ns, found.lasts_ns(100 * NS)) == (NS, None, 99 * NS)


def test_after_the_shorter_run_has_ended_nothing_is_compared(traced):
    a, b = traced(), traced()
    b.at(50).belief("c1", "route", "orders", 1)

    assert differences(a, b, end_s=40.0) == ()
    assert len(differences(a, b, end_s=60.0)) == 1


def test_client_ids_that_depend_on_instants_of_starts_are_the_same_node(traced):
    a, b = traced(), traced()
    a.at(1).belief("broker-a", "consumer_ids", "g", [client_id("c1")])
    b.at(1).belief("broker-a", "consumer_ids", "g", [client_id("c1").replace("#7", "#8")])

    assert differences(a, b) == ()


@pytest.mark.parametrize(
    ("kind", "item", "same", "other"),
    [
        ("data_version", [0, 1_000, 2], [0, 2_000, 2], [0, 1_000, 3]),
        ("ha_state", {"state": "transfer", "offset": 1}, {"state": "transfer", "offset": 9}, {"state": "ready"}),
    ],
)
def test_instants_and_offsets_inside_values_do_not_matter(traced, kind, item, same, other):
    a, b, c = traced(), traced(), traced()
    for trace, value in ((a, item), (b, same), (c, other)):
        trace.at(1).belief("broker-a", kind, "topics", value)

    assert differences(a, b) == ()
    assert len(differences(a, c)) == 1


def test_a_node_that_is_dead_in_one_run_believes_nothing_different(traced):
    a, b = traced(), traced()
    for trace in (a, b):
        trace.at(1).belief("c1", "route", "orders", 1)
    a.at(10).life("c1", "killed")
    b.at(12).belief("c1", "route", "orders", 2)
    a.at(20).life("c1", "started", incarnation=2)
    a.at(21).belief("c1", "route", "orders", 2)

    assert brief(differences(a, b)) == [("c1", "orders", 20, 21, None, "2")]


def test_a_difference_ends_when_its_node_dies(traced):
    a, b = traced(), traced()
    a.at(1).belief("c1", "route", "orders", 1)
    b.at(5).life("c1", "killed")

    assert brief(differences(a, b)) == [("c1", "orders", 1, 5, "1", None)]


def test_owners_of_queues_differ_by_name(traced):
    a, b = traced(), traced()
    for trace in (a, b):
        trace.at(1).owned("c1", "acquired")
        trace.at(1).owned("c1", "locked")
    a.at(5).owned("c2", "acquired")
    a.at(9).owned("c1", "dropped")
    b.at(9).owned("c1", "dropped")
    b.at(9).owned("c2", "acquired")
    (found,) = differences(a, b)

    assert (found.about.kind, found.about.node) == (OWNERS, "")
    assert brief([found]) == [("", "orders/broker-a/3 of g", 5, 9, "c1 and c2", "c1")]


def test_a_process_that_ends_owns_nothing_any_more(traced):
    a, b = traced(), traced()
    for trace in (a, b):
        trace.at(1).owned("c1", "acquired")
    a.at(5).life("c1", "killed")

    assert brief(differences(a, b)) == [("", "orders/broker-a/3 of g", 5, None, "no consumer", "c1")]


def test_a_suspended_process_holds_what_it_held(traced):
    a, b = traced(), traced()
    for trace in (a, b):
        trace.at(1).owned("c1", "acquired")
    a.at(5).life("c1", "suspended")

    assert differences(a, b) == ()


EVENTS = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.sampled_from(["c1", "c2"]),
        st.sampled_from(["x", "y", "started", "killed"]),
        st.sampled_from([None, 1, 2]),
    ),
    max_size=12,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


def naive(events, node, subject, second):
    """(alive, value) at the end of a second."""
    alive, value = True, None
    for at, client, description, answer in events:
        if at > second or client != node:
            continue
        if description in ("started", "killed"):
            alive, value = description == "started", None
        elif alive and description == subject:
            value = answer
    return alive, None if value is None else json.dumps(value)


@given(EVENTS, EVENTS)
def test_it_is_what_a_look_at_every_instant_finds(first, second):
    with tempfile.TemporaryDirectory() as folder:
        traces = []
        for name, events in (("a", first), ("b", second)):
            trace = TracedByHand(Path(folder, name))
            for node in ("c1", "c2"):
                trace.at(0).life(node, "started")
            processes = Counter({"c1": 1, "c2": 1})
            for at, node, description, value in events:
                if description == "started":
                    trace.at(at).life(node, "killed")
                    processes[node] += 1
                    trace.life(node, "started", incarnation=processes[node])
                elif description == "killed":
                    trace.at(at).life(node, "killed")
                else:
                    trace.at(at).belief(node, "route", description, value)
            traces.append(trace)
        found = differences(*traces, end_s=10.0)
    for node in ("c1", "c2"):
        for subject in ("x", "y"):
            for at in range(1, 7):
                (alive, value), (lives, other) = (naive(events, node, subject, at) for events in (first, second))
                within = [
                    item
                    for item in found
                    if (item.about.node, item.about.subject) == (node, subject)
                    and item.begin_ns <= at * NS
                    and (item.end_ns is None or item.end_ns > at * NS)
                ]
                assert len(within) == (alive and lives and value != other)
    assert [item.begin_ns for item in found] == sorted(item.begin_ns for item in found)
