"""What is lost and what is consumed again, against counting by hand, on many random traces."""

import random

import pytest

from analysis.trace_rows import HandMadeTrace, found_in

TRACES, END_S = 40, 50


def random_messages(seed):
    """Messages of two queues, consumed with gaps and again, committed and taken over anywhere."""
    chance = random.Random(seed)
    trace = HandMadeTrace(f"run-{seed}")
    trace.at(0).store(*range(20), queue_id=0).store(*range(20), queue_id=1)
    for second in range(1, 40):
        node, queue, offset = chance.choice("ab"), chance.choice((0, 1)), chance.randrange(20)
        trace.at(second)
        subject = chance.random()
        if subject < 0.7:
            trace.consume(node, offset, queue_id=queue)
        elif subject < 0.85:
            trace.commit(node, offset, queue)
        else:
            trace.own(node, "acquired", queue, offset=offset)
    return trace


def rows_of(trace, table, event, queue):
    return [row for row in trace.rows[table] if row[5] == event and row[9] == queue]


def naive_lost(trace):
    for queue in (0, 1):
        starts = [row[10] for row in rows_of(trace, "ownership", "acquired", queue)]
        commits = [row[10] for row in rows_of(trace, "messages", "committed", queue)]
        consumed = [row[10] for row in rows_of(trace, "messages", "consumed", queue)]
        # A group of which no owner says where it began is owed what follows the lowest offset that it got.
        if (starts or consumed) and commits:
            begin = min(starts or consumed)
            found = [offset for offset in range(begin, max(commits)) if offset not in consumed]
            if found:
                skips = jumps(trace, queue)
                skipped = sum(any(low <= offset < high for low, high in skips) for offset in found)
                yield queue, found[0], found[-1], len(found), skipped


def jumps(trace, queue):
    """(last commit, start) of each start above what was committed, or first started at, before it."""
    events = rows_of(trace, "ownership", "acquired", queue) + rows_of(trace, "messages", "committed", queue)
    last, found = None, []
    for row in sorted(events):
        if row[5] == "committed" or last is None:
            last = row[10]
        elif row[10] > last:
            found.append((last, row[10]))
    return found


def naive_duplicates(trace):
    for queue in (0, 1):
        consumed = [row[10] for row in rows_of(trace, "messages", "consumed", queue)]
        if len(consumed) > len(set(consumed)):
            yield queue, len(consumed) - len(set(consumed))


@pytest.fixture(scope="module")
def runs():
    traces = [random_messages(seed) for seed in range(TRACES)]
    return [(trace, found_in(trace, END_S)) for trace in traces]


def compare(found, expected):
    assert len(expected) > TRACES / 2, "the random traces are too tame to prove anything"
    assert found == expected


def test_losses_equal_brute_force(runs):
    found = [
        (row.queue.queue_id, row.first_offset, row.last_offset, row.lost, row.skipped)
        for _, findings in runs
        for row in findings["losses"]
    ]
    compare(found, [row for trace, _ in runs for row in naive_lost(trace)])


def test_duplicates_equal_brute_force(runs):
    found = [(row.queue.queue_id, row.duplicates) for _, findings in runs for row in findings["duplicates"]]
    compare(found, [row for trace, _ in runs for row in naive_duplicates(trace)])
