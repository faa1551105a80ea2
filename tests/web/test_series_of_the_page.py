"""Series below the time line: thinned, and nothing that stood out is lost."""

from hypothesis import given
from hypothesis import strategies as st

from emulator.analysis.live.load import SecondOfLoad
from emulator.analysis.measures.traffic import StormRequest
from emulator.web.seconds import LAGS_MAX, Seconds

PULLS = StormRequest("PULL_MESSAGE", "PULL_RETRY_IMMEDIATELY", "c1", "b", overhead=True)


def load(second, stored=0, lag=None, maximum=0):
    return SecondOfLoad(second, {"stored": stored}, lag or {}, PULLS if maximum else None, maximum)


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=200), st.sampled_from([2, 8, 32]))
def test_each_bucket_has_the_most_of_its_seconds_and_there_are_never_too_many(per_s, buckets_max):
    seconds = Seconds(buckets_max)
    for second, number in enumerate(per_s):
        seconds.note(load(second, number), {})
        assert len(seconds.entries) <= buckets_max
    assert all(entry["width_s"] == seconds.width_s for entry in seconds.entries.values())
    for begin, entry in seconds.entries.items():
        assert entry["counts"]["stored"] == max(per_s[int(begin) : int(begin) + seconds.width_s])
    assert len(seconds.entries) == -(-len(per_s) // seconds.width_s)


def test_a_bucket_names_what_was_asked_most_often():
    seconds = Seconds(2)
    for second, maximum in enumerate((7, 500, 0)):
        seconds.note(load(second, maximum=maximum), {"no owner": second})
    first, second = seconds.entries.values()
    assert first["busiest"] == [500, "c1 -> b PULL_MESSAGE answered PULL_RETRY_IMMEDIATELY"]
    assert "busiest" not in second
    assert [entry["counts"]["no owner"] for entry in (first, second)] == [1, 2]


def test_only_the_largest_lags_are_retained_also_when_buckets_become_one():
    seconds = Seconds(2)
    for second in range(3):
        seconds.note(load(second, lag={(f"g{second}{number:02}", "t"): number + 1 for number in range(20)}), {})
    lags = seconds.entries["0"]["lag"]
    assert len(lags) == LAGS_MAX
    assert sorted(lags.values()) == [17, 17, 18, 18, 19, 19, 20, 20]
