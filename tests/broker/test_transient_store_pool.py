"""The buffers of a log are lent and returned as by the real store, and a broker without a free buffer refuses sends."""

from nodes.broker.tables.requests.transient_store_pool import Allocation, TransientStorePool
from support.every_case import each_case

FILE_BYTES = 4_096
MESSAGE_BYTES = FILE_BYTES // 2
REAL = (
    (1, False, "0 0 0 0 0 0 0 0 0 0 c1 0 c0 0 0 0"),
    (1, True, "0 0 x0 x0 x0 x0 x0 x0 x0 x0 c1 0 c0 0 x0 x0"),
    (2, False, "0 0 0 0 0 0 0 0 0 0 c1 0 c1 1 0 0"),
    (2, True, "0 0 0 0 x0 x0 x0 x0 x0 x0 c1 0 c1 1 0 0"),
    (3, False, "1 1 0 0 0 0 0 0 0 0 c1 0 c1 1 0 0"),
    (3, True, "1 1 0 0 0 0 x0 x0 x0 x0 c1 0 c1 1 0 0"),
    (5, False, "3 3 2 2 1 1 0 0 0 0 c1 0 c1 1 0 0"),
    (5, True, "3 3 2 2 1 1 0 0 0 0 c1 0 c1 1 0 0"),
)
"""Buffers of the pool; fastFailIfNoBufferInStorePool; free buffers after each of 14 messages, two to a file.

`x`: the message failed with CREATE_MAPPED_FILE_FAILED. `c`: after a commit. Answers of the class DefaultMessageStore of
RocketMQ 5.3.3, with files of 4,096 bytes, and without commits but those two.
"""


@each_case(("size", "fast_fail", "answers"), REAL)
def test_buffers_are_lent_and_returned_as_the_real_store_does(size, fast_fail, answers):
    pool, end, found = TransientStorePool(size, FILE_BYTES, fast_fail=fast_fail), 0, []
    for answer in answers.split():
        if answer.startswith("c"):
            pool.commit(pool.committable_offset(end, 0))
            found.append(f"c{pool.available}")
            continue
        is_taken = pool.allocate(end) is not Allocation.NONE
        end += MESSAGE_BYTES if is_taken else 0
        found.append(f"{'' if is_taken else 'x'}{pool.available}")
    assert " ".join(found) == answers


def test_two_buffers_are_too_few():
    pool = TransientStorePool(2, FILE_BYTES, fast_fail=False)
    assert not pool.is_deficient
    pool.allocate(0)
    assert pool.is_deficient


def test_a_file_of_an_earlier_process_has_no_buffer():
    pool = TransientStorePool(5, FILE_BYTES, fast_fail=False)
    assert pool.allocate(FILE_BYTES + 1) is Allocation.PAGE_CACHE
    assert pool.available == 5
    assert pool.allocate(2 * FILE_BYTES) is Allocation.BUFFER
    assert pool.available == 3


def test_a_commit_waits_for_enough_pages_and_stops_at_the_end_of_a_file():
    pool = TransientStorePool(5, 4 * FILE_BYTES, fast_fail=False)
    pool.allocate(0)
    assert pool.committable_offset(2 * FILE_BYTES, least_pages=3) == 0
    assert pool.committable_offset(3 * FILE_BYTES, least_pages=3) == 3 * FILE_BYTES
    assert pool.committable_offset(100, least_pages=0) == 100
    assert pool.committable_offset(9 * FILE_BYTES, least_pages=4) == 4 * FILE_BYTES
