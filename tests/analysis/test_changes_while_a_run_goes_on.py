"""What a live watch reports: the intervals that the judge finds, at their instants, whatever comes between the rows."""

import random

import pytest

from analysis.random_traces import END_S, random_trace
from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.live.changes import READS, LiveWatch, WatchedDifference
from emulator.trace.schema import BELIEFS, COUNTS, TABLES
from support.every_case import each_case
from support.findings import views_of

VALUE = BELIEFS.index("value")
NAMES = {"127.1.0.1": "consumer-1"}


def in_order(trace):
    """(table, row) of all rows, in order of seq."""
    return sorted(
        ((table.name, row) for table in TABLES for row in trace.rows[table.name]), key=lambda item: item[1][0]
    )


def changes_of(trace, rests=lambda: False):
    """All changes in a hand-made trace."""
    watch = LiveWatch({})
    found = []
    for name, row in in_order(trace):
        found += watch.take(name, row[1], row if name in READS else None)
        if rests():
            found += watch.rest(time_passes=False)
    return [*found, *watch.rest(time_passes=False)]


def lines_of(trace):
    return [change.line(NAMES).strip() for change in changes_of(trace)]


def spans(changes, subject):
    """(about, begin, end) of each difference that has ended and was not over at once, in order."""
    ended = [change for change in changes if change.what is subject and change.ended]
    return sorted((item.about, item.since_ns, item.t_ns) for item in ended if item.since_ns < item.t_ns)


def test_a_busy_pool_has_a_line_when_it_begins_when_it_refuses_and_when_it_ends():
    trace = HandMadeTrace()
    for at_s, refused in ((1, {}), (2, {}), (3, {"OVERLOAD": 2}), (4, {"OVERLOAD": 3})):
        trace.at(at_s).believe(
            "ba", {"waiting": 1, "waited_max_ms": 100 * at_s, "refused": refused}, "heartbeat", "busy"
        )
    trace.at(5).believe("ba", None, "heartbeat", "busy")

    assert lines_of(trace) == [
        "1.000  busy        ba heartbeat: requests wait for threads",
        "3.000  busy        ba heartbeat: requests are refused",
        "5.000  busy        ba heartbeat: ended after 4.000 s, longest wait 400 ms, refused: 5 x OVERLOAD",
    ]


def test_the_line_of_a_broker_that_dies_while_it_is_busy_ends_with_it():
    busy = {"waiting": 1, "waited_max_ms": 200, "refused": {}}
    trace = HandMadeTrace().life("ba", "started", role="broker")
    trace.at(1).believe("ba", busy, "sendMessage", "busy").at(4).life("ba", "killed")
    trace.at(9).life("ba", "started").at(10).life("ba", "ready")

    assert lines_of(trace) == [
        "1.000  busy        ba sendMessage: requests wait for threads",
        "4.000  busy        ba sendMessage: ended after 3.000 s, longest wait 200 ms, refused: none",
    ]


def a_view(*members):
    return {"cids": list(members), "queues": {"broker-a": 4}}


def test_a_change_is_reported_when_it_begins_when_it_is_another_one_and_when_it_ends():
    trace = HandMadeTrace().life("a", "started", "g").life("b", "started", "g").life("c", "started", "g")
    trace.at(1).own("a", "acquired").at(2).own("b", "acquired").at(3).own("c", "acquired")
    trace.at(4).own("a", "dropped").own("b", "dropped").at(5).own("c", "dropped").at(7.5).own("b", "acquired")

    assert lines_of(trace) == [
        "2.000  overlap     g t/broker-a/0: a, b",
        "3.000  overlap     g t/broker-a/0: a, b, c",
        "4.000  overlap     g t/broker-a/0: ended after 2.000 s, now c",
        "5.000  orphan      g t/broker-a/0: no owner",
        "7.500  orphan      g t/broker-a/0: ended after 2.500 s, now b",
    ]


def test_views_that_differ_are_reported_with_who_holds_which():
    trace = HandMadeTrace().life("a", "started", "g").life("b", "started", "g")
    both = a_view("127.1.0.1@1", "127.1.0.2@1")
    trace.at(1).believe("a", both).believe("b", both).at(2).believe("a", a_view("127.1.0.1@1")).at(3).believe("a", both)

    begin, end = (line for line in lines_of(trace) if "divergence" in line)
    assert begin.startswith("2.000  divergence  g/t: ")
    assert sorted(begin.partition("g/t: ")[2].split(" | ")) == [
        "a: 1 members: consumer-1; 4 queues",
        "b: 2 members: consumer-1 127.1.0.2@1; 4 queues",
    ]
    assert end == "3.000  divergence  g/t: ended after 1.000 s, all agree"


def test_a_lag_is_reported_when_messages_wait_when_it_doubles_and_when_it_is_over():
    trace = HandMadeTrace().life("a", "started", "g").subscribe("a").own("a", "acquired", offset=0)
    trace.at(1).store(0).at(1.1).consume("a", 0)  # every message waits a little
    trace.at(2).store(1, 2).at(2.6).passed("a").at(3.2).store(3).at(3.9).store(4).at(4.5).passed("a")
    trace.at(5).consume("a", 1, 2, 3, 4).at(5.7).passed("a").at(6.4).passed("a")

    assert lines_of(trace) == [
        "2.500  lag         g: 2 messages of 1 queue, most in t/broker-a/0 (2)",
        "4.500  lag         g: 4 messages of 1 queue, most in t/broker-a/0 (4)",
        "5.000  lag         g: ended after 2.500 s, 4 messages at most",
    ]


def test_messages_that_no_one_is_left_to_consume_lag_although_no_row_comes_any_more():
    trace = HandMadeTrace().life("a", "started", "g").subscribe("a").own("a", "acquired", offset=0)
    trace.at(1).life("a", "killed").store(0, 1, 2)
    watch = LiveWatch({})
    for name, row in in_order(trace):
        list(watch.take(name, row[1], row))

    assert [item.line({}).strip() for item in watch.rest(time_passes=True)] == [
        "1.500  lag         g: 3 messages of 1 queue, most in t/broker-a/0 (3)"
    ]
    assert list(watch.rest(time_passes=True)) == [], "it is reported once"
    assert [difference.what for difference in watch.differences] == [WatchedDifference.LAG]


def test_rows_that_no_one_reads_report_that_an_instant_is_over():
    trace = HandMadeTrace().life("a", "started", "g").life("b", "started", "g")
    trace.at(1).own("a", "acquired").own("b", "acquired")
    watch = LiveWatch({})
    early = [item for name, row in in_order(trace) for item in watch.take(name, row[1], row)]
    assert early == [], "more rows of the instant may come"
    assert [item.what for item in watch.take(COUNTS.name, 0, None)] == [], "this second is over at the same instant"
    assert [item.what for item in watch.take(COUNTS.name, SECOND, None)] == [WatchedDifference.OVERLAP]
    assert watch.rows[COUNTS.name] == 2


def judged(item):
    return f"{item.queue.group} {item.queue.name}", item.start_ns, item.end_ns


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 49 else ()) for seed in range(150)]
)
def test_what_is_reported_is_what_the_judge_finds(seed):
    trace = random_trace(seed)
    views = trace.rows[BELIEFS.name]
    for place, row in enumerate(views):
        if row[VALUE] != "null":
            value = f'{{"cids":["{row[VALUE]}"],"queues":{{"broker-a":2}}}}' if row[5] == "view" else "{}"
            views[place] = (*row[:VALUE], value, *row[VALUE + 1 :])
    found = found_in(trace, END_S)
    changes = changes_of(trace)

    overlaps = sorted(judged(item) for item in found["overlaps"] if not item.censored)
    orphans = sorted(judged(item) for item in found["orphans"] if not item.censored)
    divergences = sorted((item.subject, item.start_ns, item.end_ns) for item in views_of(found) if not item.censored)
    assert spans(changes, WatchedDifference.OVERLAP) == overlaps
    assert spans(changes, WatchedDifference.ORPHAN) == orphans
    if all(row[3] == "consumer" or row[5] != "view" for row in views):  # subjects of producers have the same name
        assert spans(changes, WatchedDifference.DIVERGENCE) == divergences


@each_case("seed", range(20))
def test_rests_between_instants_change_nothing(seed):
    chance = random.Random(seed)
    trace = HandMadeTrace()
    for node in "abc":
        trace.life(node, "started", "g")
    for second in range(1, 40):
        trace.at(second).own(
            chance.choice("abc"), chance.choice(("acquired", "dropped")), queue_id=chance.choice((0, 1))
        )

    assert changes_of(trace, rests=lambda: chance.random() < 0.4) == changes_of(trace)
