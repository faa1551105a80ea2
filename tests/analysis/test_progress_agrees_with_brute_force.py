"""Stalls and losses by identity, against asking at each instant, on many random traces."""

import random

import pytest

from analysis.trace_rows import GROUP, SECOND, HandMadeTrace, found_in
from emulator.history.progress import SHORTEST_NS

END_S = 120
QUEUES = (0, 1)


def random_trace(seed):
    """Messages that are stored, lost with a disk, filtered, consumed again or passed, while members come and go."""
    chance = random.Random(seed)
    trace = HandMadeTrace().life("a", "ready", GROUP, role="consumer").subscribe("a")
    end = dict.fromkeys(QUEUES, 0)
    alive = {"a": True, "b": False}
    for second in range(1, END_S):
        trace.at(second)
        queue, subject = chance.choice(QUEUES), chance.random()
        if subject < 0.35:
            trace.message("broker-a", "stored", end[queue], queue, stored_ms=second)
            end[queue] += 1
        elif subject < 0.55 and end[queue]:
            offset = chance.randrange(end[queue])
            trace.message("a", chance.choice(("consumed", "filtered")), offset, queue, stored_ms=second)
        elif subject < 0.62:
            trace.commit("a", chance.randrange(end[queue] + 1), queue)
        elif subject < 0.66:
            trace.own("a", "acquired", queue, offset=chance.randrange(end[queue] + 1))
        elif subject < 0.70 and end[queue]:
            end[queue] = chance.randrange(end[queue])  # the next message gets an offset that is taken
        elif subject < 0.74:
            _come_or_go(trace, chance.choice("ab"), alive)
    return trace


def _come_or_go(trace, node, alive):
    alive[node] = not alive[node]
    if alive[node]:
        trace.life(node, "started", GROUP, role="consumer").subscribe(node)
    else:
        trace.life(node, "killed")


class Naive:
    """Asks all rows up to an instant, again for each instant."""

    def __init__(self, trace):
        every = [(row, table) for table, rows in trace.rows.items() for row in rows]
        self.rows = sorted(every, key=lambda entry: entry[0][0])

    def members(self, upto_ns):
        there = {}
        for row, table in self.rows:
            if row[1] <= upto_ns and table == "beliefs":
                there[row[2], row[4]] = row[0]
            elif row[1] <= upto_ns and table == "lifecycle" and row[5] == "killed":
                there.pop((row[2], row[4]), None)
        return there

    def has_subscribed(self, upto_ns):
        """Whether any member ever has: where none lives, the subscription of the last one counts."""
        return any(table == "beliefs" for row, table in self.rows if row[1] <= upto_ns)

    def state(self, queue, upto_ns):
        """Offset below which everything is done, end of the backlog, whether it moved in the last instant."""
        done, end, log_end, last, moved, begun = None, 0, 0, -1, False, False
        for row in (row for row, table in self.rows if table in ("ownership", "messages") and row[9] == queue):
            if row[1] > upto_ns:
                break
            event, offset = row[5], row[10]
            if event == "stored":
                rewritten, log_end = offset < log_end, offset + 1
                if self.has_subscribed(row[1]):
                    done, end = offset if done is None else done, offset + 1
                if rewritten and done is not None:
                    done, end = min(done, offset), min(end, offset + 1)
                continue
            reached = offset if event in ("committed", "acquired") else offset + 1
            news = (done is not None and reached > done) or (event == "consumed" and offset != last)
            moved = moved or (row[1] == upto_ns and event != "acquired" and news)
            is_first = event == "acquired" and not begun  # it may begin with messages that are older than the group
            done = reached if done is None or is_first else max(done, reached)
            if event == "acquired" and self.has_subscribed(row[1]):
                end = max(end, log_end)
            begun = True
            last = last if event == "acquired" else offset
        return done, end, moved

    def stalls(self):
        instants = sorted({row[1] for row, _ in self.rows})
        for queue in QUEUES:
            since = None
            for t_ns in instants:
                done, end, moved = self.state(queue, t_ns)
                stalls = done is not None and end > done and self.members(t_ns)
                if since is not None and (moved or not stalls):
                    if t_ns - since >= SHORTEST_NS:
                        yield queue, since, t_ns, False
                    since = None
                if stalls and since is None:
                    since = t_ns
            if since is not None:
                yield queue, since, END_S * SECOND, True


@pytest.fixture(scope="module", params=[25, pytest.param(80, marks=pytest.mark.slow)])
def runs(request):
    traces = [random_trace(seed) for seed in range(request.param)]
    return [(found_in(trace, END_S), Naive(trace)) for trace in traces]


def test_stalls_equal_brute_force(runs):
    seen = 0
    for number, (found, naive) in enumerate(runs):
        expected = sorted(naive.stalls())
        stalls = [(row.queue.queue_id, row.start_ns, row.end_ns, row.censored) for row in found["stalls"]]
        assert sorted(stalls) == expected, f"random trace {number}"
        seen += len(expected)
    assert seen > len(runs)
