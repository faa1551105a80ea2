"""What a change of a group's members costs: by hand, and next to a naive computation on random traces."""

from math import sqrt

from analysis.naive_oracles import ENDS
from analysis.random_traces import END_S, random_trace
from analysis.trace_rows import GROUP, SECOND, HandMadeTrace, found_in
from emulator.analysis.measures.rebalances import balance_degree, max_retained
from support.every_case import each_case

TRACES = 150
HOLDS = ("acquired", "dropped")


def seed_000(trace):
    """Eight queues and three members, of which C1 leaves at 40 s."""
    for place, node in enumerate(("C0", "C1", "C2")):
        trace.at(1).life(node, "started", GROUP)
        for queue_id in range(place, 8, 3):
            trace.at(2).own(node, "acquired", queue_id)
    trace.at(10).store(0, 1, queue_id=1).at(11).consume("C1", 0, queue_id=1)
    trace.at(40).life("C1", "killed")
    trace.at(45).own("C2", "acquired", 1).at(46).own("C0", "acquired", 4).at(47).own("C2", "acquired", 7)
    return trace.at(50).consume("C2", 0, 1, queue_id=1)


def test_the_worked_example_of_the_sticky_strategy_has_the_metrics_of_its_document():
    first, left = found_in(seed_000(HandMadeTrace()), 100)["rebalances"]

    assert (first.joined, first.left, first.members, first.queues) == (("C0", "C1", "C2"), (), 3, 8)
    assert (first.stickiness, first.balance_degree) == (-1, round(sqrt(2 / 9), 3))
    assert (left.start_ns, left.end_ns) == (40 * SECOND, 100 * SECOND)
    assert (left.joined, left.left, left.members) == ((), ("C1",), 2)
    assert (left.balance_degree, left.stickiness, left.normalised_stickiness) == (0, 0.625, 1)
    assert (left.moved, left.acquired) == (3, 3)
    assert (left.settled_ns, left.settled) == (7 * SECOND, True)
    assert (left.orphan_ns, left.overlap_ns) == ((5 + 6 + 7) * SECOND, 0)
    # Queues 4 and 7 had no message.
    assert (left.resumed_ns, left.resumed, left.duplicates) == (10 * SECOND, False, 1)


def test_an_uneven_allocation_keeps_no_more_than_all():
    trace = HandMadeTrace().at(1).life("a", "started", GROUP).life("b", "started", GROUP)
    for queue_id in range(4):
        trace.at(2).own("a", "acquired", queue_id)
    trace.at(40).life("c", "started", GROUP).passed("c")
    _, joined = found_in(trace, 100)["rebalances"]

    assert (joined.stickiness, joined.normalised_stickiness) == (1, 1)


def test_members_that_change_within_a_second_are_one_change():
    trace = seed_000(HandMadeTrace())
    trace.at(60).life("C0", "killed").at(60.9).life("C3", "started", GROUP).at(62).life("C4", "started", GROUP)
    changes = [(row.start_ns / SECOND, row.joined, row.left) for row in found_in(trace, 100)["rebalances"]]

    assert changes[2:] == [(60, ("C3",), ("C0",)), (62, ("C4",), ())]


def test_requests_and_bytes_are_those_of_passes_since_the_change():
    trace = HandMadeTrace().at(1).life("C0", "started", GROUP).life("C1", "started", GROUP)
    trace.at(30).passed("C0", requests=1, size=100).at(40).life("C1", "stopped")
    trace.at(41).passed("C0", requests=2, size=30).at(42).passed("C0")
    first, left = found_in(trace, 100)["rebalances"]

    assert (first.passes, first.requests, first.bytes) == (1, 1, 100)
    assert (left.passes, left.requests, left.bytes) == (2, 2, 30)


def test_a_group_that_broadcasts_allocates_nothing():
    trace = HandMadeTrace().at(1).life("a", "started", GROUP).subscribe("a", model="BROADCASTING").own("a", "acquired")
    assert found_in(trace, 100)["rebalances"] == ()


@each_case(
    ("owners", "members", "queues", "maximum"),
    [("aabbcc", "abc", 6, 6), ("aabbcc", "ab", 6, 4), ("aaab", "abc", 4, 3), ("", "ab", 4, 0), ("ab", "", 2, 0)],
)
def test_how_many_queues_can_keep_their_owner(owners, members, queues, maximum):
    assert max_retained(owners, members, queues) == maximum


def test_the_degree_of_balance_is_a_standard_deviation():
    assert balance_degree([]) == balance_degree([3, 3]) == 0
    assert balance_degree([3, 1]) == 1


class Naive:
    """Asks at every second, as everything in a random trace happens at a whole one."""

    def __init__(self, trace):
        self.trace = trace

    def alive(self, node, incarnation, t_ns, seq=10**9):
        return not any(
            row[1] <= t_ns and row[0] < seq and (row[2], row[4]) == (node, incarnation) and row[5] in ENDS
            for row in self.trace.rows["lifecycle"]
        )

    def members(self, group, t_ns):
        return {
            (row[2], row[4])
            for row in self.trace.rows["lifecycle"]
            if row[1] <= t_ns
            and row[3] == "consumer"
            and row[5] in ("started", "ready")
            and group in [name.strip() for name in row[6].split(",")]
            and self.alive(row[2], row[4], t_ns)
            and self.alive(row[2], row[4], row[1], row[0])
        }

    def owners(self, group, t_ns, of=None):
        """queue id -> owners, of all queues that anybody has owned."""
        held = {}
        for row in self.trace.rows["ownership"]:
            process, event = (row[2], row[4]), row[5]
            if row[1] > t_ns or row[6] != group or event not in HOLDS:
                continue
            if not self.alive(*process, row[1], row[0]):
                continue
            owners = held.setdefault(row[9], set())
            owners.add(process) if event == "acquired" else owners.discard(process)
        return {queue_id: {owner for owner in owners if self.alive(*owner, t_ns)} for queue_id, owners in held.items()}

    def changes(self, group):
        """(start, end) of each change."""
        named = [
            row[1]
            for row in self.trace.rows["ownership"]
            if row[6] == group and row[5] in HOLDS and self.alive(row[2], row[4], row[1], row[0])
        ]
        if not named:
            return
        starts, before = [], set()
        for t_ns in range(min(named), END_S * SECOND, SECOND):
            now = self.members(group, t_ns)
            if now != before and (not starts or t_ns - starts[-1] > SECOND):
                starts.append(t_ns)
            before = now
        yield from zip(starts, [*starts[1:], END_S * SECOND], strict=False)

    def times(self, group, start, end):
        seconds = [self.owners(group, t_ns) for t_ns in range(start, end, SECOND)]
        none = sum(not owners for held in seconds for owners in held.values())
        several = sum(len(owners) > 1 for held in seconds for owners in held.values())
        return none * SECOND, several * SECOND


def test_balance_and_queue_time_equal_brute_force_on_random_traces():
    seen = 0
    for seed in range(TRACES):
        trace = random_trace(seed)
        naive, found = Naive(trace), found_in(trace, END_S)["rebalances"]
        for group in ("g", "h"):
            lines = [row for row in found if row.group == group]
            spans = list(naive.changes(group))
            assert [(row.start_ns, row.end_ns) for row in lines] == spans, f"random trace {seed}"
            for row, (start, end) in zip(lines, spans, strict=True):
                last = end - 1
                members, held = naive.members(group, last), naive.owners(group, last)
                assert (row.members, row.queues) == (len(members), len(held)), f"random trace {seed}"
                counts = [sum(member in owners for owners in held.values()) for member in members]
                assert row.balance_degree == round(balance_degree(counts), 3)
                assert row.settled == (bool(held) and all(len(owners) == 1 for owners in held.values()))
                assert (row.orphan_ns, row.overlap_ns) == naive.times(group, start, end), f"random trace {seed}"
                seen += 1
    assert seen > TRACES
