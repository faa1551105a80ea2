"""What is needed and what suffices, on generated gaps; and shares of causes, added up."""

from hypothesis import given
from hypothesis import strategies as st

from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, Shares, both, by, either, ruled
from emulator.analysis.attribution.reach import needed
from emulator.analysis.findings.cause_share import RULE, CauseShare, merged_causes
from emulator.analysis.findings.cause_words import cause_words
from emulator.history.origins import Hindrance, OriginKind, TracedDisturbance
from support.every_case import each_case

A, B, C = (TracedDisturbance(name, OriginKind.FAULT, f"cut {name}", t_ns) for t_ns, name in enumerate("abc", 1))


def hindrance(of, start_ns, end_ns):
    return Hindrance(of, start_ns, end_ns)


SPANS = st.builds(
    lambda of, start_ns, lasts_ns: hindrance(of, start_ns, start_ns + lasts_ns),
    st.sampled_from([A, B, C]),
    st.integers(0, 30),
    st.integers(1, 30),
)


def longest_ns(hindrances):
    """The longest time in which something hinders, instant by instant."""
    longest = now = 0
    for t_ns in range(70):
        now = now + 1 if any(item.start_ns <= t_ns < item.end_ns for item in hindrances) else 0
        longest = max(longest, now)
    return longest


@given(st.lists(SPANS, min_size=1, max_size=6), st.integers(1, 60))
def test_what_is_needed_is_that_without_which_the_gap_is_too_short(hindrances, at_least_ns):
    least_ns = min(at_least_ns, longest_ns(hindrances))
    found = needed(hindrances, at_least_ns)
    single = {item[0] for item in found.needed if len(item) == 1}

    for of in {item.origin for item in hindrances}:
        is_enough_without = longest_ns([item for item in hindrances if item.origin != of]) >= least_ns
        assert is_enough_without == (of not in single)


@given(st.lists(SPANS, min_size=1, max_size=6), st.integers(1, 60))
def test_there_is_always_a_cause_and_it_is_one_of_the_hindrances(hindrances, at_least_ns):
    found = needed(hindrances, at_least_ns)

    assert found
    assert set(found.origins()) <= {item.origin for item in hindrances}


def test_of_two_that_leave_the_same_gap_each_suffices_and_of_two_that_follow_each_other_both_are_needed():
    same = needed([hindrance(A, 0, 100), hindrance(B, 0, 100)], 80)
    following = needed([hindrance(A, 0, 60), hindrance(B, 60, 120)], 80)

    assert same == either((A, B))
    assert following == by(A, B)


def test_without_a_hindrance_there_is_no_cause():
    assert not needed([])


def test_shares_add_up_to_the_amount_and_alternatives_stand_apart():
    shares = Shares()
    shares.add(by(A), 60)
    shares.add(either((A, B)), 30)
    shares.add(ruled(RuleOfRocketMQ.COMMIT), 10)

    assert shares.causes() == (
        CauseShare("a", "fault", "cut a", 1, 0.6, 0.3),
        CauseShare("b", "fault", "cut b", 2, 0.0, 0.3),
        CauseShare("", RULE, RuleOfRocketMQ.COMMIT, -1, 0.1, 0.0),
    )


CHAINS = st.lists(
    st.sampled_from([by(A), by(B), by(A, B), either((A, B, C)), ruled(RuleOfRocketMQ.ROUND), CauseChain()]), max_size=5
)


@given(st.lists(st.tuples(CHAINS, st.integers(0, 9)), max_size=8))
def test_no_share_is_greater_than_the_whole_and_the_greatest_is_first(parts):
    shares = Shares()
    for chains, weight in parts:
        shares.add(both(chains), weight)
    found = [item for item in shares.causes() if item.kind != RULE]

    assert all(0 <= item.share <= 1 and 0 <= item.total <= 1 for item in found)
    assert [item.total for item in found] == sorted((item.total for item in found), reverse=True)


@given(st.lists(st.tuples(st.sampled_from([by(A), by(B), by(A, B)]), st.integers(1, 9)), min_size=1, max_size=8))
def test_shares_of_parts_merge_into_those_of_the_whole(parts):
    whole = Shares()
    single = []
    for chain, weight in parts:
        whole.add(chain, weight)
        part = Shares()
        part.add(chain, weight)
        single.append((part.causes(), float(weight)))

    assert merged_causes(single) == whole.causes()


@each_case(
    ("causes", "words"),
    [
        ([("a", 1.0, 0.0)], "cut a at 0.0 s"),
        ([("a", 0.6, 0.0), ("b", 0.4, 0.0)], "cut a at 0.0 s (60 of 100 messages); cut b at 0.0 s (40)"),
        ([("a", 0.0, 1.0), ("b", 0.0, 1.0)], "cut a at 0.0 s; cut b at 0.0 s, each suffices"),
        ([("a", 1.0, 0.0), ("b", 1.0, 0.0)], "cut a at 0.0 s; cut b at 0.0 s, both are needed"),
        ([("a", 0.97, 0.0), ("b", 0.03, 0.0)], "cut a at 0.0 s"),
        ([], ""),
    ],
)
def test_causes_in_words(causes, words):
    found = [CauseShare(name, "fault", f"cut {name}", 0, share, suffices) for name, share, suffices in causes]

    assert cause_words(found, 100, "messages") == words


def test_without_a_disturbance_the_rule_is_said():
    assert cause_words([CauseShare("", RULE, RuleOfRocketMQ.ROUND, -1, 1.0, 0.0)], 1, "queues").startswith(
        "no disturbance: a member allocates"
    )
