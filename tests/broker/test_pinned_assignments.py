"""The assigner's memory: epochs, claims of members, grace periods, queues that are withheld until they are released."""

from hypothesis import given
from hypothesis import strategies as st

from nodes.allocation.allocating import defects, dividing_by
from nodes.allocation.averagely import allocate_averagely
from nodes.broker.tables.clients.pinned_assignments import AssignmentQuestion, PinnedAssignments
from nodes.protocol.assigning import AssignmentClaim, StrategyParameters
from nodes.protocol.model import MessageQueue

AVG = dividing_by(allocate_averagely, "g")
GRACE_MS = 20_000


def queues(*queue_ids):
    return tuple(MessageQueue("t", "broker-a", queue_id) for queue_id in queue_ids)


EIGHT = queues(*range(8))


def question(client_id, members, owned=(), *, epoch=0, revoke=False, mq_all=EIGHT, strategy="AVG"):
    claim = AssignmentClaim(tuple(owned), epoch, revoke)
    return AssignmentQuestion("g", "t", client_id, strategy, StrategyParameters(), claim, mq_all, tuple(members))


class Asker:
    def __init__(self, allocate_queues=AVG):
        self.assigner = PinnedAssignments(grace_period_ms=GRACE_MS)
        self.allocate_queues = allocate_queues

    def ask(self, client_id, members, owned=(), *, now_ms=0, **more):
        return self.assigner.ask(question(client_id, members, owned, **more), self.allocate_queues, now_ms=now_ms)


def test_a_new_group_is_allocated_at_once_and_not_again_until_something_changes():
    asker = Asker()

    first = asker.ask("a", ["a", "b"])
    assert (first.queues, first.epoch, set(first.allocated_queues)) == (queues(0, 1, 2, 3), 1, {"a", "b"})
    again = asker.ask("b", ["b", "a", "a"])  # the order of channels says nothing
    assert (again.queues, again.epoch, again.allocated_queues) == (queues(4, 5, 6, 7), 1, None)
    joined = asker.ask("c", ["a", "b", "c"])
    assert (joined.queues, joined.epoch) == (queues(6, 7), 2)
    assert asker.ask("a", ["a", "b", "c"], mq_all=queues(*range(9))).epoch == 3
    assert asker.ask("a", ["a", "b", "c"], mq_all=queues(*range(9)), strategy="OTHER").epoch == 4


def test_a_client_that_is_no_member_gets_no_queue():
    asker = Asker()
    asker.ask("a", ["a"])
    assert asker.ask("stranger", ["a"]).queues == ()


def test_a_new_assigner_collects_claims_for_the_grace_period_and_everybody_keeps_its_queues_meanwhile():
    asker = Asker(lambda _queues, members, before: {cid: before.get(cid, ()) for cid in members})
    members = ["a", "b", "c"]

    assert asker.ask("a", members, queues(0, 1, 2), epoch=7).queues is None
    assert asker.ask("b", members, queues(2, 3), epoch=7, now_ms=GRACE_MS - 1).queues is None
    assert asker.ask("c", members, queues(3, 4), epoch=8, now_ms=GRACE_MS - 1).queues is None
    # Of two claims that of the newer allocation counts, then that of the smaller client id.
    allocated = asker.ask("a", members, queues(0, 1, 2), epoch=7, now_ms=GRACE_MS)
    assert allocated.allocated_queues == {"a": queues(0, 1, 2), "b": (), "c": queues(3, 4)}
    assert allocated.epoch == 9
    assert allocated.problem.startswith(f"AVG: {EIGHT[5]} goes to no one; ")


def test_members_that_allocated_the_queues_themselves_until_now_are_asked_what_they_own_first():
    asker = Asker()
    assert asker.ask("a", ["a", "b"], queues(0, 1)).queues is None
    assert asker.ask("b", ["a", "b"], queues(2, 3), now_ms=GRACE_MS).epoch == 1


def test_an_assigner_whose_memory_is_older_than_what_a_member_follows_begins_again():
    asker = Asker()
    asker.ask("a", ["a", "b"])
    assert asker.ask("b", ["a", "b"], queues(1), epoch=5, now_ms=100).queues is None
    assert asker.ask("a", ["a", "b"], queues(0), epoch=5, now_ms=100 + GRACE_MS - 1).queues is None
    assert asker.ask("a", ["a", "b"], queues(0), epoch=5, now_ms=100 + GRACE_MS).epoch == 6


def test_a_queue_is_withheld_until_its_owner_has_released_it_and_then_the_heir_is_reported():
    asker = Asker()
    asker.ask("a", ["a"], revoke=True)
    assert asker.ask("b", ["a", "b"], revoke=True).queues == ()  # given to a, which has not asked again
    assert asker.ask("b", ["a", "b"], revoke=True).queues == ()
    assert asker.ask("a", ["a", "b"], EIGHT, epoch=1, revoke=True).queues == queues(0, 1, 2, 3)
    released = asker.ask("a", ["a", "b"], queues(0, 1, 2, 3), epoch=2, revoke=True)
    assert released.heirs == ("b",)
    assert asker.ask("b", ["a", "b"], revoke=True).queues == queues(4, 5, 6, 7)


def test_what_a_departed_member_owned_is_free():
    asker = Asker()
    asker.ask("a", ["a"], revoke=True)
    asker.ask("a", ["a", "b"], EIGHT, epoch=1, revoke=True)
    assert asker.ask("b", ["a", "b"], revoke=True).queues == ()
    assert asker.ask("b", ["b"], revoke=True).queues == EIGHT


def test_a_strategy_that_raises_is_named_and_changes_nothing():
    asker = Asker()
    asker.ask("a", ["a", "b"])
    asker.allocate_queues = lambda *_: 1 / 0
    broken = asker.ask("c", ["a", "b", "c"])
    assert (broken.queues, broken.epoch) == ((), 1)
    assert broken.problem == "AVG: ZeroDivisionError: division by zero"
    assert asker.ask("a", ["a", "b", "c"]).queues == queues(0, 1, 2, 3)


def test_defects_name_foreign_queues_double_owners_and_queues_that_no_one_gets():
    foreign = MessageQueue("t", "broker-x", 0)
    found = list(defects({"a": (foreign, *queues(0, 1)), "b": queues(1)}, queues(0, 1, 2)))
    assert found == [
        f"a gets {foreign}, which is no queue of the topic",
        f"{EIGHT[1]} goes to a and to b",
        f"{EIGHT[2]} goes to no one",
    ]


MEMBERS = ("a", "b", "c", "d")


@given(st.lists(st.tuples(st.sampled_from(MEMBERS), st.sets(st.sampled_from(MEMBERS), min_size=1)), max_size=40))
def test_with_revocation_no_queue_is_ever_owned_twice_whatever_the_order_of_questions(steps):
    """Members take what they are given at once, and say at their next question what they have."""
    asker = Asker()
    owned = dict.fromkeys(MEMBERS, ())
    epochs = dict.fromkeys(MEMBERS, 0)
    for now_s, (client_id, present) in enumerate(steps):
        for gone in set(MEMBERS) - present:  # a process that leaves owns nothing more
            owned[gone], epochs[gone] = (), 0
        if client_id not in present:
            continue
        answer = asker.ask(
            client_id, sorted(present), owned[client_id], epoch=epochs[client_id], revoke=True, now_ms=now_s * 1_000
        )
        if answer.queues is not None:
            owned[client_id], epochs[client_id] = answer.queues, answer.epoch
        held = [queue for queues_of in owned.values() for queue in queues_of]
        assert len(held) == len(set(held))
