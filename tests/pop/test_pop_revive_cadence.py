"""When a revive thread looks at its queue, against the thread itself, step by step."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.pop.revive_cadence import ReviveCadence

MS = 1_000_000
INTERVAL_MS, SLOW_MAX, SCAN_MS = 1_000, 3, 10_000
END_MS = 90_000


def thread(records: list[int], *, off: tuple[int, int] | None = None) -> list[int]:
    """The looks of RocketMQ's thread until `END_MS`, with records of no use at these instants, in ms."""
    looks: list[int] = []
    waiting = sorted(records)
    now, slow = 0, 1
    while now < END_MS:
        now += INTERVAL_MS
        began, sleeps = now, 0
        if off is not None and off[0] <= now < off[1]:
            looks.append(now)
            continue
        while True:
            looks.append(now)
            if waiting and waiting[0] <= now:
                waiting = [at for at in waiting if at > now]
                if now - began > SCAN_MS:
                    break
                sleeps = 0
            now += 100
            sleeps += 1
            if sleeps > 40:
                break
        now += slow * INTERVAL_MS
        slow = min(slow + 1, SLOW_MAX)
    return looks


@given(st.lists(st.integers(1, 60_000), max_size=12), st.integers(0, 80_000))
def test_the_next_look_is_that_of_the_thread(records: list[int], requested: int) -> None:
    cadence = ReviveCadence(0, INTERVAL_MS, SLOW_MAX, SCAN_MS, running=True)
    come = sorted(at for at in records if at < requested)
    for at in come:
        cadence.on_record(at * MS)

    assert cadence.next_look_ns(requested * MS) == min(look for look in thread(come) if look >= requested) * MS


@given(st.integers(0, 80_000))
def test_a_thread_that_may_not_revive_looks_once_per_pause(requested: int) -> None:
    cadence = ReviveCadence(0, INTERVAL_MS, SLOW_MAX, SCAN_MS, running=False)

    looks = thread([], off=(0, END_MS * 2))
    assert cadence.next_look_ns(requested * MS) == min(look for look in looks if look >= requested) * MS


def test_a_pass_with_a_check_point_is_followed_by_no_rest() -> None:
    cadence = ReviveCadence(0, INTERVAL_MS, SLOW_MAX, SCAN_MS, running=True)
    for ended, found, following in ((5_000, False, 7_000), (12_000, False, 15_000), (20_000, True, 21_000)):
        cadence.pass_ended(ended * MS, found=found)
        assert cadence.next_look_ns(ended * MS) == following * MS


def test_a_thread_that_may_revive_again_begins_with_its_next_look() -> None:
    cadence = ReviveCadence(0, INTERVAL_MS, SLOW_MAX, SCAN_MS, running=True)
    cadence.change(1_250 * MS, running=False)
    assert cadence.next_look_ns(1_300 * MS) == 2_300 * MS
    cadence.change(5_000 * MS, running=True)
    assert cadence.next_look_ns(5_000 * MS) == 5_300 * MS
