"""What a link makes of each frame, and that no fault disturbs the chance of another."""

import pytest

from emulator.network.link import Link, LinkEffect, LinkRule

MS = 1_000_000


def rule(fault_id, effect, **parameters):
    return LinkRule(fault_id, effect, lambda _src, _dst: True, **parameters)


def verdicts(*rules, count=2_000, seed=7, delay_ms=0, jitter_ms=0):
    link = Link(seed, "a", "b", delay_ms, jitter_ms)
    link.apply(rules)
    return [link.verdict(may_be_lost=True) for _ in range(count)]


LOSS = rule("loss-1", LinkEffect.LOSS, loss=0.2)
OTHER_LOSS = rule("loss-2", LinkEffect.LOSS, loss=0.5)


def test_a_healthy_link_only_delays():
    assert verdicts(count=3, delay_ms=5) == [("", 5 * MS)] * 3


def test_a_cut_link_takes_every_frame_and_names_the_fault_that_began_first():
    assert verdicts(rule("cut-1", LinkEffect.CUT), rule("cut-2", LinkEffect.CUT), count=3) == [("cut-1", 0)] * 3


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_the_share_of_lost_frames_is_the_one_asked_for(share):
    lost = [taken for taken, _ in verdicts(rule("f", LinkEffect.LOSS, loss=share), count=10_000) if taken]

    assert len(lost) / 10_000 == pytest.approx(share, abs=4 * (share * (1 - share) / 10_000) ** 0.5)


@pytest.mark.parametrize(("share", "lost"), [(0.0, 0), (1.0, 500)])
def test_no_loss_and_total_loss_leave_nothing_to_chance(share, lost):
    assert sum(bool(taken) for taken, _ in verdicts(rule("f", LinkEffect.LOSS, loss=share), count=500)) == lost


def test_jitter_is_uniform_on_the_millisecond_grid_with_both_bounds():
    latencies_ms = [latency / MS for _, latency in verdicts(delay_ms=10, jitter_ms=4, count=10_000)]

    counts = {ms: latencies_ms.count(ms) for ms in sorted(dict.fromkeys(latencies_ms))}
    assert list(counts) == [10, 11, 12, 13, 14]
    assert all(1_800 < count < 2_200 for count in counts.values())


def test_a_second_loss_takes_frames_of_its_own_and_leaves_the_first_its_frames():
    alone = [i for i, (taken, _) in enumerate(verdicts(LOSS)) if taken == "loss-1"]
    with_other = [i for i, (taken, _) in enumerate(verdicts(LOSS, OTHER_LOSS)) if taken == "loss-1"]
    behind_other = verdicts(OTHER_LOSS, LOSS)

    assert alone == with_other
    assert [i for i in alone if behind_other[i][0] != "loss-2"] == [
        i for i, (taken, _) in enumerate(behind_other) if taken == "loss-1"
    ]


def test_a_delay_fault_with_jitter_adds_to_the_jitter_that_each_frame_had_anyway():
    plain = [latency for _, latency in verdicts(jitter_ms=20)]
    delayed = [latency for _, latency in verdicts(rule("d", LinkEffect.DELAY, delay_ms=40, jitter_ms=3), jitter_ms=20)]

    added_ms = [(after - before) // MS for before, after in zip(plain, delayed, strict=True)]
    assert sorted(dict.fromkeys(added_ms)) == [40, 41, 42, 43]


def test_each_delay_fault_has_a_chance_of_its_own():
    item, other = (rule(name, LinkEffect.DELAY, jitter_ms=9) for name in ("one", "other"))
    alone = [[latency for _, latency in verdicts(r)] for r in (item, other)]
    both = [latency for _, latency in verdicts(item, other)]

    assert alone[0] != alone[1]
    assert both == [first + second for first, second in zip(*alone, strict=True)]
    assert [latency for _, latency in verdicts(jitter_ms=9)] not in alone


def test_a_fault_that_comes_and_goes_shifts_no_later_draw():
    untouched = [latency for _, latency in verdicts(jitter_ms=20, count=300)]
    link = Link(7, "a", "b", 0, 20)
    latencies = []
    for step in range(300):
        link.apply((rule("cut", LinkEffect.CUT),) if 100 <= step < 200 else ())
        latencies.append(link.verdict(may_be_lost=True)[1])

    assert latencies[:100] + latencies[200:] == untouched[:100] + untouched[200:]


def test_what_a_kernel_repeats_is_never_lost_but_a_cut_takes_it():
    link = Link(7, "a", "b", 0, 0)
    link.apply((rule("f", LinkEffect.LOSS, loss=1.0),))
    assert link.verdict(may_be_lost=False) == ("", 0)

    link.apply((rule("cut", LinkEffect.CUT),))
    assert link.verdict(may_be_lost=False) == ("cut", 0)


def test_links_and_seeds_have_chances_of_their_own():
    def lost(seed, src):
        link = Link(seed, src, "b", 0, 0)
        link.apply((LOSS,))
        return [i for i in range(200) if link.verdict(may_be_lost=True)[0]]

    assert lost(1, "a") == lost(1, "a")
    assert lost(1, "a") != lost(2, "a")
    assert lost(1, "a") != lost(1, "c")
