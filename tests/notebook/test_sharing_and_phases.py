"""Shared queues and pieces per phase, against a count of every instant."""

import random

import pandas as pd

from emulator.notebook.sharing import OF_THE_WHOLE, per_phase, shared
from support.every_case import each_case

END = 40
QUEUE = {"run": "r", "variant": "v", "seed": 1, "group": "g", "topic": "t", "broker_name": "broker-a"}


def random_holds(seed):
    """Holds of three nodes and two queues at whole instants; a node holds a queue once at a time."""
    chance, rows = random.Random(seed), []
    for queue_id in (0, 1):
        for node in "abc":
            now = chance.randrange(10)
            while now < END:
                end = min(END, now + chance.choice((0, 1, 2, 5, 30)))
                rows.append(
                    {**QUEUE, "queue_id": queue_id, "node": node, "incarnation": 1, "start_ns": now, "end_ns": end}
                )
                rows[-1]["censored"] = end == END
                now = end + chance.choice((0, 1, 4))
    return pd.DataFrame(rows)


def instants(intervals):
    """(queue id, node) -> the instants at which the node holds the queue."""
    found = {}
    for row in intervals.itertuples():
        found.setdefault((row.queue_id, row.node), []).extend(range(row.start_ns, row.end_ns))
    return found


@each_case("seed", range(30))
def test_a_queue_is_shared_at_each_instant_at_which_several_hold_it_and_only_then(seed):
    holds = random_holds(seed)
    held = instants(holds)
    expected = {
        (queue_id, node): [t for t in mine if sum(t in held.get((queue_id, other), ()) for other in "abc") > 1]
        for (queue_id, node), mine in held.items()
    }

    found = shared(holds)

    assert instants(found) == {node: sorted(when) for node, when in expected.items() if when}
    assert (found["start_ns"] < found["end_ns"]).all()
    assert list(found.columns) == list(holds.columns)
    assert found.loc[found["censored"], "end_ns"].eq(END).all()


def test_queues_of_other_runs_and_brokers_are_other_queues():
    item = {**QUEUE, "queue_id": 0, "incarnation": 1, "start_ns": 0, "end_ns": 9, "censored": False}
    places = [{}, {"run": "s"}, {"broker_name": "broker-b"}, {"topic": "u"}, {"group": "h"}]
    apart = pd.DataFrame([{**item, "node": f"n{number}", **place} for number, place in enumerate(places)])

    assert shared(apart).empty
    assert len(shared(pd.concat([apart, apart.iloc[:1].assign(node="other")]))) == 2


def test_an_interval_that_goes_on_while_others_come_and_go_stays_one():
    rows = [("a", 0, 30), ("b", 5, 15), ("c", 15, 20)]
    holds = pd.DataFrame(
        [{**QUEUE, "queue_id": 0, "node": n, "start_ns": s, "end_ns": e, "censored": False} for n, s, e in rows]
    )

    assert [tuple(row) for row in shared(holds)[["node", "start_ns", "end_ns"]].itertuples(index=False)] == [
        ("a", 5, 20),
        ("b", 5, 15),
        ("c", 15, 20),
    ]


PHASES = pd.DataFrame(
    [
        ("r", 0, 0, 10, "start"),
        ("r", 1, 10, 25, "cut begins"),
        ("r", 2, 25, END, "cut ends"),
        ("s", 0, 0, END, "start"),
    ],
    columns=["run", "phase", "start_ns", "end_ns", "what"],
)


@each_case("seed", range(10))
def test_pieces_lie_in_one_phase_each_and_lose_no_instant(seed):
    holds = random_holds(seed)

    pieces = per_phase(holds, PHASES)

    assert {node: sorted(when) for node, when in instants(pieces).items()} == {
        node: when for node, when in instants(holds).items() if when
    }
    for row in pieces.itertuples():
        phase = PHASES[(PHASES["run"] == "r") & (PHASES["phase"] == row.phase)].iloc[0]
        assert phase["start_ns"] <= row.start_ns < row.end_ns <= phase["end_ns"]
        assert row.what == phase["what"]


def test_only_the_last_piece_of_an_interval_is_censored():
    whole = pd.DataFrame([{"run": "r", "start_ns": 5, "end_ns": END, "censored": True}])

    assert list(per_phase(whole, PHASES)["censored"]) == [False, False, True]


def test_amounts_of_whole_intervals_are_not_repeated_in_pieces():
    whole = pd.DataFrame([{"run": "r", "start_ns": 5, "end_ns": 15, **dict.fromkeys(OF_THE_WHOLE, 7), "owners_max": 2}])

    assert list(per_phase(whole, PHASES).columns) == ["run", "start_ns", "end_ns", "owners_max", "phase", "what"]


def test_pieces_are_cut_again_as_they_are():
    pieces = per_phase(random_holds(1), PHASES)

    pd.testing.assert_frame_equal(per_phase(pieces, PHASES), pieces)
