"""When nodes of a kind start."""

from emulator.cluster.starting import even_start_offsets_ms, start_offsets_ms
from support.every_case import each_case

SPREAD_MS = 30_000
SEEDS = range(1, 31)


def widest_gap_ms(offsets_ms):
    ordered = sorted(offsets_ms)
    return max(b - a for a, b in zip([0, *ordered], [*ordered, SPREAD_MS], strict=True))


def test_without_a_spread_all_start_at_once():
    assert start_offsets_ms(1, "start", 3, 0) == even_start_offsets_ms(1, "start", 3, 0, 0) == [0, 0, 0]


def test_each_seed_has_instants_of_its_own_and_always_the_same():
    assert start_offsets_ms(1, "start", 3, SPREAD_MS) == start_offsets_ms(1, "start", 3, SPREAD_MS)
    assert start_offsets_ms(1, "start", 3, SPREAD_MS) != start_offsets_ms(2, "start", 3, SPREAD_MS)


@each_case("node", range(6))
def test_thirty_even_seeds_leave_no_gap_of_more_than_a_tenth_of_the_spread(node):
    offsets_ms = [even_start_offsets_ms(seed, "start", 6, SPREAD_MS, 0)[node] for seed in SEEDS]

    assert widest_gap_ms(offsets_ms) <= SPREAD_MS / 10
    assert all(0 <= offset_ms <= SPREAD_MS for offset_ms in offsets_ms)


def test_nodes_do_not_move_in_step_from_seed_to_seed():
    pairs = [even_start_offsets_ms(seed, "start", 2, SPREAD_MS, 0) for seed in SEEDS]

    assert widest_gap_ms([(b - a) % SPREAD_MS for a, b in pairs]) <= SPREAD_MS / 5
