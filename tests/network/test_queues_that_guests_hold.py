"""A guest's client holds the queues that it pulls, until its silence proves that it does not."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from emulator.guests.views.holds import (
    COMMIT_MS,
    FULL_FROM,
    LOCK_MS,
    PULL_AGAIN_MS,
    PULL_UNANSWERED_MS,
    ROUND_SPREAD_MS,
    ROUNDS_ALONE_MS,
    Holds,
)
from emulator.history.rows.queues import GroupQueue

ONE, OTHER = (GroupQueue("g", "t", "broker-a", number) for number in (0, 1))
ROUND_MS = 5_000


def held(*queues, now_ms=0):
    holds = Holds()
    for queue in queues:
        holds.pull(queue, f"first of {queue.name}", 0, now_ms)
    return holds


def gives_up_at(holds, queue, from_ms, until_ms=200_000, step_ms=100):
    """When its silence ends a hold, if the client goes on to say something."""
    return next((at for at in range(from_ms, until_ms, step_ms) if queue in holds.silent(at, at)), None)


def test_the_first_pull_takes_a_queue_and_the_next_ones_do_not():
    holds = Holds()

    assert [holds.pull(ONE, 1, 0, 0), holds.pull(ONE, 2, 0, 10), holds.pull(OTHER, 3, 0, 20)] == [True, False, True]
    assert holds.queues() == (ONE, OTHER)


def test_a_pull_speaks_for_its_queue_until_a_client_would_have_pulled_again():
    assert gives_up_at(held(ONE), ONE, 0) == PULL_UNANSWERED_MS


@pytest.mark.parametrize(
    ("with_messages", "ahead", "bound_ms"),
    [(False, 5_000, PULL_AGAIN_MS), (True, FULL_FROM - 1, PULL_AGAIN_MS), (True, FULL_FROM, PULL_UNANSWERED_MS)],
)
def test_an_answer_is_followed_by_the_next_pull_unless_the_cache_may_be_full(with_messages, ahead, bound_ms):
    holds = held(ONE)
    holds.pull(ONE, "second", ahead, 500)
    holds.answered(ONE, "second", 1_000, with_messages=with_messages)

    assert gives_up_at(holds, ONE, 1_000) == 1_000 + bound_ms


def test_who_commits_what_filled_the_cache_has_room_again():
    holds = held(ONE)
    holds.pull(ONE, "second", 5_000, 500)
    holds.answered(ONE, "second", 1_000, with_messages=True)
    holds.commit(ONE, 5_000, 2_000)

    assert gives_up_at(holds, ONE, 1_000) == 2_000 + COMMIT_MS


def test_the_answer_to_an_older_pull_says_nothing():
    holds = held(ONE)
    holds.pull(ONE, "second", 0, 30_000)
    holds.answered(ONE, f"first of {ONE.name}", 31_000, with_messages=False)

    assert gives_up_at(holds, ONE, 31_000) == 30_000 + PULL_UNANSWERED_MS


@pytest.mark.parametrize(("speak", "bound_ms"), [("commit", COMMIT_MS), ("lock", LOCK_MS)])
def test_commits_and_locks_speak_for_a_queue_that_is_not_pulled(speak, bound_ms):
    holds = held(ONE)
    holds.answered(ONE, f"first of {ONE.name}", 0, with_messages=False)
    holds.commit(ONE, 7, 4_000) if speak == "commit" else holds.lock(ONE, 4_000)

    assert gives_up_at(holds, ONE, 0) == 4_000 + bound_ms


def test_a_commit_takes_no_queue_because_who_lets_go_commits_too():
    holds = Holds()
    holds.commit(ONE, 7, 0)
    holds.lock(ONE, 0)

    assert holds.queues() == ()


def test_a_queue_that_is_left_out_of_a_round_of_commits_is_given_up_although_its_pull_is_held():
    holds = held(ONE, OTHER)
    for at_ms in (5_000, 10_000, 15_000):
        holds.commit(ONE, 7, at_ms)
        holds.commit(OTHER, 7, at_ms)
    holds.pull(OTHER, "held by the broker", 0, 16_000)
    holds.commit(OTHER, 7, 16_500)  # of its hand-over
    holds.commit(ONE, 7, 20_000)

    assert gives_up_at(holds, OTHER, 16_500) == 20_000 + ROUND_SPREAD_MS
    assert ONE not in holds.silent(21_000, 21_000)


def test_the_commits_of_one_round_may_come_one_after_the_other():
    holds = held(ONE, OTHER)
    for at_ms in (5_000, 10_000, 15_000):
        holds.commit(OTHER, 7, at_ms)
        holds.commit(ONE, 7, at_ms + ROUND_SPREAD_MS - 200)

    assert [at for at in range(15_000, 20_000, 100) if holds.silent(at, at)] == []


def test_of_a_client_that_commits_what_is_new_only_an_old_offset_means_nothing():
    holds = held(ONE, OTHER)
    for at_ms in (5_000, 10_000, 15_000):
        holds.commit(ONE, at_ms, at_ms)
    holds.commit(OTHER, 7, 5_000)
    holds.pull(OTHER, "held by the broker", 0, 11_000)

    assert gives_up_at(holds, OTHER, 15_000) == 11_000 + PULL_UNANSWERED_MS


def test_one_commit_again_at_a_hand_over_makes_no_client_that_commits_in_rounds():
    holds = held(ONE, OTHER)
    for at_ms in (5_000, 10_000):
        holds.commit(OTHER, 7, at_ms)  # the second one is of its hand-over
    for at_ms in (5_000, 10_000, 15_000):
        holds.commit(ONE, at_ms, at_ms)
    holds.pull(OTHER, "held by the broker", 0, 11_000)

    assert gives_up_at(holds, OTHER, 11_000) == 11_000 + PULL_UNANSWERED_MS


def test_the_only_queue_of_a_client_that_commits_in_rounds_may_be_left_out_of_three():
    holds = held(ONE)
    for at_ms in (5_000, 10_000, 15_000):
        holds.commit(ONE, 7, at_ms)
    holds.pull(ONE, "held by the broker", 0, 15_500)

    assert gives_up_at(holds, ONE, 15_500) == 15_500 + ROUNDS_ALONE_MS


def test_who_says_nothing_at_all_may_be_frozen_and_keeps_everything():
    assert held(ONE).silent(600_000, 0) == ()


def test_while_a_broker_cannot_be_reached_its_queues_are_retained():
    holds = held(ONE)
    for at_ms in range(1_000, 100_000, 1_000):
        holds.suppress("broker-a", at_ms)
        assert holds.silent(at_ms, at_ms) == ()

    assert gives_up_at(holds, ONE, 99_000) == 99_000 + PULL_AGAIN_MS


def test_another_broker_excuses_nothing():
    holds = held(ONE)
    holds.suppress("broker-b", PULL_UNANSWERED_MS)

    assert holds.silent(PULL_UNANSWERED_MS, PULL_UNANSWERED_MS) == (ONE,)


class Client:
    """A small model of the real one: what it does with a queue from the moment it takes it until it lets go."""

    def __init__(self, data, *, commits_always, lets_go_ms):
        self.holds = held(ONE, OTHER)
        self.data = data
        self.commits_always = commits_always
        self.lets_go_ms = lets_go_ms
        """Of the other queue; the one it keeps."""
        self.answer_due_ms, self.pull_due_ms = {}, {ONE: 0, OTHER: 0}
        self.offsets, self.pulled, self.committed = {ONE: 0, OTHER: 0}, {ONE: 0, OTHER: 0}, {}
        self.pulls = {ONE: 0, OTHER: 0}

    def mine(self, now_ms):
        return (ONE,) if now_ms >= self.lets_go_ms else (ONE, OTHER)

    def live(self, now_ms):
        for queue in (ONE, OTHER):
            self.hear(queue, now_ms)
            if queue in self.mine(now_ms):
                self.pull(queue, now_ms)
        if now_ms == self.lets_go_ms:
            self.holds.commit(OTHER, self.offsets[OTHER], now_ms)
        if now_ms % ROUND_MS == 0:
            for queue in self.mine(now_ms):
                if self.commits_always or self.committed.get(queue) != self.offsets[queue]:
                    self.committed[queue] = self.offsets[queue]
                    self.holds.commit(queue, self.offsets[queue], now_ms)

    def hear(self, queue, now_ms):
        if self.answer_due_ms.get(queue) == now_ms:
            del self.answer_due_ms[queue]
            found = self.data.draw(st.booleans(), label="messages")
            self.holds.answered(queue, self.pulls[queue], now_ms, with_messages=found)
            fills = found and self.data.draw(st.booleans(), label="fills the cache")
            if fills:  # one pull after the other, as fast as they are answered
                self.pulled[queue] += FULL_FROM
                self.ask(queue, now_ms)
                self.holds.answered(queue, self.pulls[queue], now_ms, with_messages=True)
            self.pulled[queue] += 32 * found
            full_ms = self.data.draw(st.integers(0, 60), label="cache is full") * 500 if fills else 0
            self.pull_due_ms[queue] = now_ms + full_ms

    def ask(self, queue, now_ms):
        self.pulls[queue] += 1
        self.holds.pull(queue, self.pulls[queue], self.pulled[queue], now_ms)

    def pull(self, queue, now_ms):
        if self.pull_due_ms.get(queue, now_ms + 1) <= now_ms:
            del self.pull_due_ms[queue]
            self.offsets[queue] = self.pulled[queue]
            self.ask(queue, now_ms)
            self.answer_due_ms[queue] = now_ms + self.data.draw(st.integers(1, 30), label="held") * 500


@settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
@given(st.data(), st.booleans(), st.integers(40, 100))
def test_what_a_client_holds_is_never_given_up_and_what_it_lets_go_of_is_in_the_end(data, commits_always, lets_go):
    client = Client(data, commits_always=commits_always, lets_go_ms=lets_go * 500)
    gone_ms = None
    for now_ms in range(0, 100_000, 500):
        client.live(now_ms)
        silent = client.holds.silent(now_ms, now_ms)
        assert ONE not in silent
        assert OTHER not in silent or now_ms >= client.lets_go_ms
        if OTHER in silent and gone_ms is None:
            gone_ms = now_ms

    assert gone_ms is not None
    assert gone_ms - client.lets_go_ms <= 15_000 + PULL_UNANSWERED_MS
