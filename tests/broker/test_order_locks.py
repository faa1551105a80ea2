"""Order locks: who holds a queue, and how a majority is asked."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.clients.queue_locks import (
    LOCK_MAX_LIVE_TIME_MS,
    RebalanceLockManager,
    lock_batch,
    unlock_batch,
)
from nodes.protocol.bodies import LockBatchRequestBody
from nodes.protocol.model import MessageQueue

ONE, TWO = MessageQueue("t", "bk", 0), MessageQueue("t", "bk", 1)
MEMBERS = {0: "10.0.0.0:10911", 1: "10.0.0.1:10911", 2: "10.0.0.2:10911"}


def body(client, *queues, only_this_broker=False):
    return LockBatchRequestBody("g", client, queues, only_this_broker)


def strict(locks, requested, *, members=MEMBERS, replicas=3, now_ms=0):
    return lock_batch(
        locks,
        requested,
        now_ms=now_ms,
        lock_in_strict_mode=True,
        total_replicas=replicas,
        broker_id=0,
        members=members,
    )


STEPS = st.tuples(
    st.sampled_from(["lock", "unlock"]),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([ONE, TWO]),
    st.integers(0, LOCK_MAX_LIVE_TIME_MS + 5_000),
)


@given(st.lists(STEPS, max_size=40))
def test_a_lock_changes_hands_only_when_its_holder_lets_go_or_was_silent_for_over_60_s(steps):
    locks, now_ms = RebalanceLockManager(), 0
    held = {}
    for subject, client, queue, pause_ms in steps:
        now_ms += pause_ms
        holder, since_ms = held.get(queue, (client, now_ms))
        if subject == "unlock":
            locks.unlock_batch("g", (queue,), client)
            if holder == client:
                held.pop(queue, None)
            continue
        may = holder == client or now_ms - since_ms > LOCK_MAX_LIVE_TIME_MS
        assert locks.try_lock("g", queue, client, now_ms) is may
        if may:
            held[queue] = (client, now_ms)
    assert {queue: tuple(lock) for queue, lock in locks.locks.get("g", {}).items()} == held


def test_a_refused_attempt_does_not_renew_the_holders_lock():
    locks = RebalanceLockManager()
    locks.try_lock("g", ONE, "a", 0)

    assert not locks.try_lock("g", ONE, "b", 60_000)
    assert locks.try_lock("g", ONE, "b", 60_001)


def test_all_locks_of_a_group_are_expired_only_if_each_is():
    locks = RebalanceLockManager()
    assert locks.is_lock_all_expired("g", 0)
    locks.try_lock("g", ONE, "a", 0)
    locks.try_lock("g", TWO, "a", 10)

    assert not locks.is_lock_all_expired("g", 60_001)
    assert locks.is_lock_all_expired("g", 60_011)


def test_a_majority_of_three_locks_what_one_other_member_confirms():
    turn = strict(RebalanceLockManager(), body("a", ONE, TWO))

    assert turn.ask == (MEMBERS[1], MEMBERS[2])
    assert turn.request == body("a", ONE, TWO, only_this_broker=True)
    assert turn.answer([(TWO,), ()]) == (TWO,)
    assert turn.answer() == ()


def test_two_clients_with_a_minority_each_keep_each_other_out_until_their_locks_expire():
    here = RebalanceLockManager()
    assert strict(here, body("a", ONE)).answer([]) == ()

    assert strict(here, body("b", ONE), now_ms=60_000).locked_here == ()
    assert strict(here, body("b", ONE), now_ms=60_001).locked_here == (ONE,)


def test_only_queues_that_were_won_here_are_asked_of_others():
    here = RebalanceLockManager()
    here.try_lock("g", ONE, "a", 0)

    turn = strict(here, body("b", ONE, TWO))

    assert turn.request.mq_set == (TWO,)
    assert turn.answer([(ONE, TWO), (ONE, TWO)]) == (TWO,)


def test_a_group_of_one_and_a_peers_request_are_decided_alone():
    for turn in (
        strict(RebalanceLockManager(), body("a", ONE), replicas=1),
        strict(RebalanceLockManager(), body("a", ONE, only_this_broker=True)),
    ):
        assert (turn.ask, turn.answer()) == ((), (ONE,))


def test_a_strict_unlock_goes_to_every_polled_member_and_does_nothing_if_there_is_none():
    here = RebalanceLockManager()
    here.try_lock("g", ONE, "a", 0)

    reported = unlock_batch(here, body("a", ONE), lock_in_strict_mode=True, members=MEMBERS)
    no_node = unlock_batch(here, body("a", ONE), lock_in_strict_mode=True, members={})

    assert reported.notified == tuple(MEMBERS.values())
    assert no_node.notified == ()
    assert here.locks["g"][ONE].client_id == "a"
    unlock_batch(here, reported.request, lock_in_strict_mode=True, members=MEMBERS)
    assert ONE not in here.locks["g"]
