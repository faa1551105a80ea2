"""Lines of `rmqemu watch`: what happens to many at once is one line, and repeats are counted."""

from emulator.analysis.live.changes import DifferenceChange, WatchedDifference
from emulator.analysis.live.grouped import GroupedLines

NS = 1_000_000_000


def orphan(queue, t_s, since_s=None, *, ended=False):
    since_ns = round((t_s if since_s is None else since_s) * NS)
    text = f"ended after {t_s - since_ns / NS:.3f} s, now c1" if ended else "no owner"
    return DifferenceChange(
        round(t_s * NS), WatchedDifference.ORPHAN, f"g orders/broker-a/{queue}", since_ns, text, ended=ended
    )


def lines(*batches):
    grouped = GroupedLines()
    return [line for batch in batches for line in grouped.lines(batch, {})]


def test_many_queues_at_once_are_one_line_with_their_number_and_an_example():
    begin = [orphan(queue, 0.2) for queue in range(36)]
    end = [orphan(queue, 1.5 + queue / 1_000, 0.2, ended=True) for queue in range(36)]

    assert lines(begin, end) == [
        "     0.200  orphan      36 queues, such as g orders/broker-a/0: no owner",
        f"     1.500  orphan      36 queues ended within 0.035 s, such as {end[0].about}: ended after 1.300 s, now c1",
    ]


def test_what_comes_later_and_other_differences_have_lines_of_their_own():
    overlap = DifferenceChange(200_000_000, WatchedDifference.OVERLAP, "g orders/broker-a/3", 200_000_000, "c1, c2")

    assert lines([orphan(0, 0.2), orphan(1, 0.2), overlap, orphan(2, 0.71)]) == [
        "     0.200  orphan      2 queues, such as g orders/broker-a/0: no owner",
        "     0.200  overlap     g orders/broker-a/3: c1, c2",
        "     0.710  orphan      g orders/broker-a/2: no owner",
    ]


def test_one_change_is_the_line_that_all_prints():
    change = orphan(3, 2.5)

    assert lines([change]) == [change.line({})]


def test_what_begins_again_is_counted_and_what_goes_on_is_not():
    first, second = orphan(0, 1), orphan(0, 5)
    goes_on = DifferenceChange(6 * NS, WatchedDifference.ORPHAN, "g orders/broker-a/0", 5 * NS, "no owner, still")

    assert lines([first], [orphan(0, 2, 1, ended=True)], [second], [goes_on]) == [
        "     1.000  orphan      g orders/broker-a/0: no owner",
        "     2.000  orphan      g orders/broker-a/0: ended after 1.000 s, now c1",
        "     5.000  orphan      g orders/broker-a/0: no owner (2 times so far)",
        "     6.000  orphan      g orders/broker-a/0: no owner, still",
    ]


def test_among_many_the_largest_number_of_repeats_is_named():
    again = [orphan(0, 9), orphan(1, 9)]

    assert lines([orphan(0, 1)], [orphan(0, 2, 1, ended=True)], again)[-1] == (
        "     9.000  orphan      2 queues, such as g orders/broker-a/0: no owner (up to 2 times so far)"
    )


def test_changes_of_one_difference_at_once_are_its_newest_text_and_their_number():
    held = [
        DifferenceChange(at * 100_000_000, WatchedDifference.DIVERGENCE, "g/orders", 1, f"value {at}")
        for at in (1, 2, 4)
    ]

    assert lines(held) == ["     0.100  divergence  g/orders: value 4 (3 changes within 0.300 s)"]
