"""When a scan of pops or of held pops finds something to do: not before the instant that the table says."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.pop.buffer import NOT_STORED, PopBufferMerge, PopBufferOptions
from nodes.broker.tables.pop.check_point import AckMsg, PopCheckPoint
from nodes.broker.tables.pop.polling import PopLongPolling, PopPollingOptions

NOW_MS = 50_000
FAR_MS = 1_000_000


def does_something(pops: PopBufferMerge, now_ms: int) -> bool:
    """Whether a scan stores, drops or commits anything."""
    tried = copy.deepcopy(pops)
    before, commits = len(tried.buffer), []
    stores = [
        found
        for found in tried.scan()
        if tried.leaves_memory(found, now_ms) or (found.just_offset and found.revive_queue_offset == NOT_STORED)
    ]
    tried.scan_commit_offset(lambda found: not commits.append(found))
    return bool(stores) or bool(commits) or len(tried.buffer) != before


KINDS = ("merged", "acknowledged", "stored", "refused", "being stored", "mock")
POPS = st.tuples(st.sampled_from(KINDS), st.integers(NOW_MS - 9_000, NOW_MS), st.integers(5_000, 60_000))


@given(st.lists(POPS, max_size=6))
def test_no_scan_of_pops_does_anything_before_the_next_one_and_that_one_does(popped) -> None:
    pops = PopBufferMerge(PopBufferOptions(enable_pop_buffer_merge=True))
    for number, (kind, pop_time_ms, invisible_ms) in enumerate(popped):
        queue_id = number % 2
        ck = PopCheckPoint("t", "g", queue_id, number, pop_time_ms, invisible_ms, 1, "b", (0,))
        if kind == "mock":
            pops.add_ck_mock(ck, 0, number + 1)
        elif kind in ("merged", "acknowledged"):
            pops.add_ck(ck, 0, number + 1, pop_time_ms)
            if kind == "acknowledged":
                pops.add_ak(AckMsg(number, number, "g", "t", queue_id, pop_time_ms, "b"), pop_time_ms)
        else:
            found = pops.add_ck_just_offset(ck, 0, number + 1)
            assert found is not None
            found.storing()
            if kind != "being stored":
                found.stored(7 if kind == "stored" else None)

    due_ms = pops.next_scan_ms(NOW_MS)

    if due_ms is None:
        assert not does_something(pops, FAR_MS)
    else:
        assert does_something(pops, due_ms)
        assert due_ms == NOW_MS or not does_something(pops, due_ms - 1)


@given(st.lists(st.integers(1_000, 20_000), max_size=5))
def test_no_held_pop_times_out_before_the_instant_that_is_reported(ends) -> None:
    polls = PopLongPolling[int, str](PopPollingOptions(), lambda _: True)
    for number, end_ms in enumerate(ends):
        polls.polling(number, "t", "g", number % 2, born_ms=0, poll_ms=end_ms, now_ms=0)

    due_ms = polls.next_timeout_ms()

    if due_ms is None:
        assert ends == []
    else:
        assert list(copy.deepcopy(polls).timed_out(due_ms - 1)) == []
        assert list(polls.timed_out(due_ms)) != []


def test_a_service_that_stops_gives_all_requests_back_but_those_of_closed_channels() -> None:
    polls = PopLongPolling[int, str](PopPollingOptions(), lambda number: number != 1)
    for number in range(3):
        polls.polling(number, "t", "g", number, born_ms=0, poll_ms=1_000, now_ms=0)

    assert list(polls.release_all()) == [0, 2]
    assert polls.next_timeout_ms() is None
