"""Lag by queue: by hand, and against the lag of the topic and a count of each instant."""

from hypothesis import given
from hypothesis import strategies as st

from analysis.trace_rows import HandMadeTrace, RowsOf, found_in
from emulator.analysis.measures.queue_lags import QueueLags
from emulator.history.presence import Presence
from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import watch
from nodes.units import NS_PER_S

QUEUES = 3
NOTHING = [0] * QUEUES


def begun():
    trace = HandMadeTrace().life("broker-a", "started", role="broker").life("c1", "started", "g").subscribe("c1")
    for queue_id in range(QUEUES):
        trace.own("c1", "acquired", queue_id, offset=0)
    return trace


def lags(trace, every_s, end_s):
    """Mapping queue id and node -> what waited when most of the topic did, and the most."""
    presence = Presence({})
    progress = GroupProgress(presence)
    found = QueueLags(progress, every_s, round(end_s * NS_PER_S))
    watch(RowsOf(trace), (presence, progress, found))
    found.finish(round(end_s * NS_PER_S))
    return {(item.queue.queue_id, item.node): (list(item.waiting), list(item.maximum)) for item in found.series()}


def test_a_queue_counts_when_most_of_the_topic_waits_and_has_its_own_most():
    trace = begun().at(1).store(0, 1).at(2).consume("c1", 0, 1).store(0, 1, 2, queue_id=1).at(9).consume("c1", 0)
    assert lags(trace, 5, 10) == {(0, ""): ([0, 0], [2, 0]), (1, ""): ([3, 3], [3, 3])}


def test_what_waited_when_an_interval_began_counts_in_it():
    trace = begun().at(1).store(0, 1).at(5).consume("c1", 0).at(6).consume("c1", 1)
    assert lags(trace, 5, 15) == {(0, ""): ([2, 2, 0], [2, 2, 0])}


def test_a_queue_of_which_nothing_has_come_yet_has_no_lag_until_then():
    assert lags(begun().at(12).store(0), 5, 15) == {(0, ""): ([0, 0, 1], [0, 0, 1])}


def test_the_last_second_is_whole_and_what_comes_with_the_end_is_not_in_it():
    assert lags(begun().at(4.2).store(0), 2, 4.5) == {(0, ""): ([0, 0, 1], [0, 0, 1])}
    assert lags(begun().at(1).store(0).at(4).consume("c1", 0).store(0, queue_id=1), 3, 4) == {(0, ""): ([1, 1], [1, 1])}


def test_each_consumer_that_broadcasts_has_its_own():
    trace = HandMadeTrace().life("broker-a", "started", role="broker")
    for node in ("c1", "c2"):
        trace.life(node, "started", "g").subscribe(node, model="BROADCASTING").own(node, "acquired", offset=0)
    trace.at(1).store(0, 1).at(2).consume("c1", 0, 1)
    assert lags(trace, 2, 4) == {(0, "c1"): ([2, 2], [2, 2]), (0, "c2"): ([2, 2], [2, 2])}


steps = st.tuples(st.sampled_from(("store", "consume")), st.integers(0, QUEUES - 1), st.sampled_from((0, 0.5, 1, 7)))


@given(st.lists(steps, max_size=40), st.integers(1, 6))
def test_it_is_what_a_count_of_each_instant_gives_and_adds_up_to_the_lag_of_the_topic(acts, every_s):
    trace, at_s = begun(), 1.0
    stored, done = list(NOTHING), list(NOTHING)
    waited = {0.0: list(NOTHING)}
    for act, queue_id, later_s in acts:
        at_s += later_s
        trace.at(at_s)
        if act == "store":
            trace.store(stored[queue_id], queue_id=queue_id)
            stored[queue_id] += 1
        elif done[queue_id] < stored[queue_id]:
            trace.consume("c1", done[queue_id], queue_id=queue_id)
            done[queue_id] += 1
        waited[at_s] = [end - begin for end, begin in zip(stored, done, strict=True)]
    end_s = int(at_s) + 1
    expected = {(queue_id, ""): ([], []) for queue_id in range(QUEUES)}
    for start_s in range(0, end_s, every_s):
        before = waited[max((known for known in waited if known < start_s), default=0.0)]
        instants = [before, *(now for known, now in waited.items() if start_s <= known < start_s + every_s)]
        at_most = max(instants, key=sum)
        for queue_id in range(QUEUES):
            expected[queue_id, ""][0].append(at_most[queue_id])
            expected[queue_id, ""][1].append(max(now[queue_id] for now in instants))
    found = lags(trace, every_s, end_s)
    assert found == {key: value for key, value in expected.items() if any(value[1])}

    sums = [sum(waiting) for waiting in zip(*(item for item, _ in found.values()), strict=True)]
    per_s = next((item.per_s for item in found_in(trace, end_s)["lag_series"]), ())
    assert sums == [max(per_s[at : at + every_s]) for at in range(0, len(per_s), every_s)]
