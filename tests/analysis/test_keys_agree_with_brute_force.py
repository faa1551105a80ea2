"""Order of keys and keys at two consumers, against comparing all pairs of rows, on many random traces."""

import random
from itertools import combinations, pairwise

import pytest

from analysis.trace_rows import GROUP, SECOND, TOPIC, HandMadeTrace, found_in

END_S = 120
CONSUME_MS = 1_500
KEYS, QUEUES, NODES = ("k", "l"), (0, 1), ("a", "b")
RETRY = f"%RETRY%{GROUP}"


def random_trace(seed):
    """Keyed messages that are stored, lost with a disk, consumed once, again or never, by two who fall asleep."""
    chance = random.Random(seed)
    trace = HandMadeTrace()
    model = "BROADCASTING" if seed % 4 == 0 else "CLUSTERING"
    for node in NODES:
        trace.life(node, "ready", GROUP, role="consumer").subscribe(node, model=model)
    for queue in QUEUES:
        trace.own("a", "acquired", queue, offset=chance.choice((0, 0, 2, -1)))
    stored, end, asleep = [], dict.fromkeys(QUEUES, 0), dict.fromkeys(NODES, False)
    now = 2.0
    while now < END_S:
        now += chance.choice((0, 0, 0.5, 1, 2))
        trace.at(now)
        queue, node, subject = chance.choice(QUEUES), chance.choice(NODES), chance.random()
        if subject < 0.35:
            item = {"offset": end[queue], "queue_id": queue, "stored_ms": trace.seq, "key": chance.choice(("", *KEYS))}
            trace.message("broker-a", "stored", **item)
            end[queue] += 1
            stored.append(item)
        elif subject < 0.8 and stored and not asleep[node]:
            trace.message(node, "consumed", **chance.choice(stored[-8:]))
        elif subject < 0.85 and stored and not asleep[node]:
            trace.message(node, "consumed", topic=RETRY, **chance.choice(stored))
        elif subject < 0.88 and end[queue]:
            end[queue] = chance.randrange(end[queue])
        elif subject < 0.94:
            asleep[node] = not asleep[node]
            trace.life(node, "suspended" if asleep[node] else "resumed")
            if not asleep[node] and stored and chance.random() < 0.7:
                trace.message(node, "consumed", **chance.choice(stored[-8:]))
    return trace


class Naive:
    """Compares each row with all rows before."""

    def __init__(self, trace, ordered, exclusive):
        self.ordered, self.exclusive = ordered, exclusive
        self.life = trace.rows["lifecycle"]
        keyed = [row for row in trace.rows["messages"] if row[14]]
        self.stored = [row for row in keyed if row[5] == "stored"]
        self.consumed = [row for row in keyed if row[5] == "consumed"]
        broadcasts = any('"BROADCASTING"' in row[7] for row in trace.rows["beliefs"])
        owned = [row for row in reversed(trace.rows["ownership"]) if row[10] >= 0]
        self.starts = {(row[9], row[2] if broadcasts else ""): row[10] for row in owned}
        self.consumers = NODES if broadcasts else ("",)

    def stored_seq(self, row):
        """None of a message that is not known."""
        same = [item[0] for item in self.stored if (item[7:11], item[12]) == (row[7:11], row[12])]
        return same[-1] if same else None

    def begin_ns(self, row):
        begin = row[1] - CONSUME_MS * 1_000_000
        of_node = [item for item in self.life if item[2] == row[2] and item[0] < row[0]]
        slept = [item[1] for item in of_node if item[5] == "suspended"]
        woke = [item[1] for item in of_node if item[5] == "resumed"]
        return min(begin, slept[-1]) if woke and woke[-1] == row[1] and slept else begin

    def two(self, rows, same_queue):
        """Length of the union of all overlaps of two rows of different nodes; per queue if it matters."""
        groups = [[row for row in rows if row[6:10] == queue] for queue in {row[6:10] for row in rows}]
        total = 0
        for group in groups if same_queue else [rows]:
            shared = []
            for combination, other in combinations(group, 2):
                low = max(self.begin_ns(combination), self.begin_ns(other))
                high = min(combination[1], other[1])
                if combination[2] != other[2] and low < high:
                    shared.append((low, high))
            ticks = sorted({t for span in shared for t in span})
            total += sum(
                after - at for at, after in pairwise(ticks) if any(low <= at and after <= high for low, high in shared)
            )
        return total

    def rows(self):
        """(key, node, messages, overtaken, in queue, again, late, retried, two, two in queue, violation)."""
        for key in KEYS:
            for node in self.consumers:
                mine = [row for row in self.consumed if row[14] == key and node in ("", row[2])]
                yield self.row(key, node, mine)

    def row(self, key, node, mine):
        known = [(row, self.stored_seq(row)) for row in mine if row[7] == TOPIC]
        known = [(row, seq) for row, seq in known if seq is not None]
        counts = dict.fromkeys(("messages", "overtaken", "in_queue", "again", "late"), 0)
        for place, (row, seq) in enumerate(known):
            before = known[:place]
            later = [item for item, other in before if other > seq]
            if any(other == seq for _, other in before):
                counts["again"] += 1
                counts["late"] += bool(later)
                continue
            counts["messages"] += 1
            if later and row[10] >= self.starts.get((row[9], node), 0):
                counts["overtaken"] += 1
                counts["in_queue"] += any(item[9] == row[9] for item in later)
        retried = sum(row[7] == RETRY for row in mine)
        two = (0, 0) if node else (self.two(mine, same_queue=False), self.two(mine, same_queue=True))
        violation = self.ordered and bool(counts["in_queue"] or two[1])
        violation = violation or (self.exclusive and two[1] > 0)
        return (key, node, *counts.values(), retried, *two, violation)

    def moved(self):
        for key in KEYS:
            queues = [row[9] for row in self.stored if row[14] == key]
            moves = sum(item != other for item, other in pairwise(queues))
            if moves:
                yield key, len(queues), len(set(queues)), moves


@pytest.fixture(scope="module", params=[30, pytest.param(120, marks=pytest.mark.slow)])
def runs(request):
    found = []
    for seed in range(request.param):
        trace, ordered, exclusive = random_trace(seed), seed % 3 == 0, seed % 3 == 1
        promises = {"ordered": (GROUP,) * ordered, "exclusive": (GROUP,) * exclusive}
        findings = found_in(trace, END_S + 10, consume_ms={GROUP: CONSUME_MS}, **promises)
        found.append((findings, Naive(trace, ordered, exclusive)))
    return found


def cells(row):
    numbers = (row.messages, row.overtaken, row.overtaken_in_queue, row.again, row.late, row.retried)
    return (row.key, row.node, *numbers, row.two_ns, row.two_in_queue_ns, row.violation)


def test_harm_to_keys_equals_brute_force(runs):
    seen = []
    for number, (found, naive) in enumerate(runs):
        expected = [row for row in naive.rows() if row[3] or row[6] or row[8]]
        assert sorted(map(cells, found["keys"])) == sorted(expected), f"random trace {number}"
        seen += expected
    # Each kind of harm is there, and each is missing from some rows.
    for column in (3, 4, 5, 6, 7, 8, 9, 10):
        assert len(runs) / 10 < sum(bool(row[column]) for row in seen) < len(seen)


def test_moved_keys_equal_brute_force(runs):
    for number, (found, naive) in enumerate(runs):
        moved = [(row.key, row.messages, row.queues, row.moves) for row in found["moved_keys"]]
        assert sorted(moved) == sorted(naive.moved()), f"random trace {number}"


def test_totals_of_phases_are_those_of_all_keys(runs):
    for found, _ in runs:
        assert sum(row.keys_overtaken for row in found["phases"]) == sum(row.overtaken for row in found["keys"])
        assert sum(row.keys_two_ns for row in found["phases"]) == sum(row.two_ns for row in found["keys"])


def test_harm_begins_and_ends_with_what_was_seen_of_it():
    trace = HandMadeTrace().life("a", "ready", GROUP, role="consumer").subscribe("a")
    for offset in range(4):
        trace.at(1).message("broker-a", "stored", offset, key="k")
    for second, offset in ((2, 1), (5, 0), (7, 3), (9, 2), (11, 2)):
        trace.at(second).message("a", "consumed", offset, key="k")
    trace.fault("begin", "f", "cut", "a")

    found = found_in(trace, 20)

    (row,) = found["keys"]
    assert (row.start_ns, row.end_ns) == (5 * SECOND, 11 * SECOND)
    assert (row.overtaken, row.again, row.late, row.violation) == (2, 1, 1, False)
