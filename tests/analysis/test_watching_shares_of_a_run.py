"""A run that is watched in shares: they find what one watch finds, and their state does not grow with the run."""

import random

import attrs
import pytest

from analysis.trace_rows import HandMadeTrace
from emulator.analysis.live.changes import LAG_EVERY_NS, READS, LiveWatch, WatchedDifference, reached_by, shares_of_row
from emulator.history.rows.shares import RunShare
from emulator.trace.schema import TABLES

GROUPS = ("g", "h", "k")
ENDS = ("stopped", "killed", "powered_off")


def eventful_trace(seed, steps=160):
    """Views, owners, messages and deaths of three groups, several at one instant included."""
    chance = random.Random(seed)
    trace = HandMadeTrace(f"run-{seed}")
    offsets = [0, 0]
    now = 0.0
    for node in "abc":
        trace.life(node, "started", "g, h, k")
        for group in GROUPS:
            trace.subscribe(node, group=group)
    for _ in range(steps):
        now += chance.choice((0, 0, 0, 0.1, 0.3, 0.5, 1.7))
        step(trace.at(now), chance, offsets)
    return trace


def step(trace, chance, offsets):
    node, group, queue_id = chance.choice("abc"), chance.choice(GROUPS), chance.choice((0, 1))
    subject = chance.random()
    if subject < 0.2:
        members = chance.sample(("127.1.0.1@1", "127.1.0.2@1", "127.1.0.3@1"), 2)
        value = {"cids": sorted(members), "queues": {"broker-a": 2}} if chance.random() < 0.9 else None
        trace.believe(node, value, subject=f"{group}/t")
    elif subject < 0.35:
        event = chance.choice(("acquired", "acquired", "dropped"))
        trace.own(node, event, queue_id=queue_id, group=group, offset=chance.choice((-1, 0, offsets[queue_id])))
    elif subject < 0.55:
        trace.store(offsets[queue_id], queue_id=queue_id)
        offsets[queue_id] += 1
    elif subject < 0.8 and offsets[queue_id]:
        trace.message(node, "consumed", chance.randrange(offsets[queue_id]), queue_id=queue_id, group=group)
    elif subject < 0.85:
        event, of = chance.choice((("committed", group), ("reset", group), ("reset", ""), ("expired", "")))
        trace.message("broker-a", event, chance.randint(0, offsets[queue_id]), queue_id=queue_id, group=of)
    elif subject < 0.95:
        trace.life(node, chance.choice(("started", "suspended", "resumed", *ENDS)), chance.choice(("g", "g, h, k")))
    elif subject < 0.98:
        trace.passed(node, group=group)
    else:
        refused = chance.choice(({}, {"OVERLOAD": 2}))
        value = chance.choice((None, {"waiting": 1, "waited_max_ms": 300, "refused": refused}))
        trace.believe(
            chance.choice(("broker-a", "broker-b")), value, chance.choice(("heartbeat", "sendMessage")), "busy"
        )


def rows_of(trace):
    return sorted(
        ((table.name, row) for table in TABLES for row in trace.rows[table.name]), key=lambda item: item[1][0]
    )


def whole(rows):
    watch = LiveWatch({})
    found = [item for name, row in rows for item in watch.take(name, row[1], row if name in READS else None)]
    return sorted(map(attrs.astuple, [*found, *watch.rest(time_passes=False)]))


def in_shares(rows, of, chance):
    """The changes that shares find, which are stored and restored now and then."""
    watches = [LiveWatch({}, RunShare(number, of)) for number in range(of)]
    found = []
    for name, row in rows:
        shares = shares_of_row(name, row, of) if name in READS else ()
        for number in shares:
            found += watches[number].take(name, row[1], row)
        if chance.random() < 0.05:
            for number in range(of):
                found += watches[number].reach(reached_by(name, row[1]))
                watches[number] = LiveWatch.restored(watches[number].state())
    for watch in watches:
        found += watch.rest(time_passes=False)
    return sorted(map(attrs.astuple, found))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 6 else ()) for seed in range(20)])
def test_shares_that_are_stored_and_restored_find_what_one_watch_finds(seed):
    rows = rows_of(eventful_trace(seed))
    expected = whole(rows)

    for of in (1, 2, 5):
        assert in_shares(rows, of, random.Random(seed)) == expected
    assert {WatchedDifference.LAG, WatchedDifference.ORPHAN} <= {item[1] for item in expected}


def test_these_traces_have_differences_of_every_kind():
    found = {item[1] for seed in range(5) for item in whole(rows_of(eventful_trace(seed)))}
    assert found == set(WatchedDifference)


def test_a_row_of_another_share_ends_an_instant():
    watch = LiveWatch({}, RunShare(0, 1))
    trace = HandMadeTrace().life("a", "started", "g").life("b", "started", "g")
    trace.at(1).own("a", "acquired").own("b", "acquired")
    assert [item for name, row in rows_of(trace) for item in watch.take(name, row[1], row)] == []
    assert list(watch.reach(1_000_000_000)) == [], "more rows of the instant may come"
    assert [item.what for item in watch.reach(1_000_000_001)] == [WatchedDifference.OVERLAP]


def test_the_state_of_a_watch_does_not_grow_with_the_run():
    trace = HandMadeTrace().life("a", "started", "g").life("b", "started", "g").subscribe("a").subscribe("b")
    watch = LiveWatch({})
    sizes = []
    done = 0
    for turn in range(400):
        trace.at(1 + turn).believe("a", {"cids": [str(turn % 2)], "queues": {"broker-a": 1}})
        trace.own("ab"[turn % 2], "acquired", offset=turn).store(turn)
        trace.at(1.1 + turn).message("broker-a", "reset", turn + 1)
        trace.at(1.2 + turn).consume("ab"[turn % 2], turn).own("ab"[turn % 2], "dropped")
        trace.life("b", ("suspended", "resumed")[turn % 2])
        rows = rows_of(trace)
        for name, row in rows[done:]:
            list(watch.take(name, row[1], row))
        done = len(rows)
        sizes.append(len(watch.state()))

    assert sizes[-1] < 1.02 * max(sizes[:40])


def test_the_lag_is_taken_at_every_half_second_whenever_rows_come():
    trace = HandMadeTrace().life("a", "started", "g").subscribe("a").own("a", "acquired", offset=0)
    trace.at(1.13).store(0, 1).at(100).passed("a")
    (begins,) = [item for item in whole(rows_of(trace)) if item[1] is WatchedDifference.LAG]

    assert begins[0] == 2_000_000_000
    assert begins[0] % LAG_EVERY_NS == 0
