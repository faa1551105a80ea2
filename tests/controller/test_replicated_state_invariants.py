"""Invariants of the replicated state, violated exactly in the windows that the reference of controller mode lists."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodes.protocol.codes import ResponseCode as Code
from support.controllers import CLUSTER, NAME, OneGroup
from support.examples import DRAWN

IDS = st.integers(1, 4)
SETS = st.lists(IDS, unique=True, max_size=3).map(tuple)


class ReplicatedStateMachine(RuleBasedStateMachine):
    """One group; each event is committed before the next request, as a leader does it."""

    @initialize(unclean=st.booleans(), members=st.integers(0, 3))
    def begin(self, unclean, members):
        self.group = OneGroup(*range(1, members + 1), enable_elect_unclean_master=unclean)
        self.before = self.group.sync
        self.masters = {}
        self.master_is_cleaned = False
        self.unknown_master = None

    @rule(member=IDS, again=st.booleans())
    def apply(self, member, again):
        was_known = self.group.state.known(NAME) is not None
        applied = self.group.apply(member, None if again else f"other-{member};1")
        if applied is Code.SUCCESS and not was_known:
            self.forget()

    @rule(member=IDS, alive=st.booleans(), max_offset=st.integers(0, 2))
    def heartbeat(self, member, alive, max_offset):
        if alive:
            self.group.alive(member, max_offset=max_offset)
        else:
            self.group.dead(member)

    @rule(asking=IDS | st.sampled_from([None, -1]), designate=st.booleans())
    def elect(self, asking, designate):
        old = self.group.sync
        answer = self.group.elect(asking, designate=designate)
        if answer.code is Code.SUCCESS:
            elected = answer.header.master_broker_id
            assert answer.header.master_epoch == self.group.sync.master_epoch  # no twin is uncommitted
            assert old.master_epoch == 0 or self.group.is_alive(CLUSTER, NAME, elected)
            assert self.masters.setdefault(answer.header.master_epoch, elected) == elected
            self.master_is_cleaned = False
            self.unknown_master = None if elected in self.group.brokers else elected

    @rule(members=SETS)
    def alter(self, members):
        if self.group.sync is not None and self.group.alter(*members).code is Code.SUCCESS:
            self.master_is_cleaned = False
            self.unknown_master = None

    @rule(ids=SETS, cluster=st.sampled_from([CLUSTER, None]), living=st.booleans())
    def clean(self, ids, cluster, living):
        master = self.group.sync and self.group.sync.master_id
        cleaned = self.group.clean(";".join(map(str, ids)), cluster=cluster, living=living)
        if cleaned.code is not Code.SUCCESS:
            return
        if self.group.sync is None:
            self.forget()
        elif master in ids:
            self.master_is_cleaned = True

    def forget(self):
        self.before, self.masters, self.master_is_cleaned, self.unknown_master = None, {}, False, None

    @invariant()
    def c1_and_i8_epochs_never_decrease_unless_the_group_begins_again(self):
        now, before = self.group.sync, self.before
        if now is not None and before is not None:
            assert now.master_epoch >= before.master_epoch
            assert now.sync_state_set_epoch >= before.sync_state_set_epoch
        self.before = now

    @invariant()
    def c2_an_epoch_has_one_master(self):
        sync = self.group.sync
        if sync is not None and sync.master_id is not None:
            assert self.masters.get(sync.master_epoch) == sync.master_id

    @invariant()
    def c3_and_i8_the_master_is_in_its_set_unless_it_was_cleaned(self):
        sync = self.group.sync
        if sync is not None and sync.master_id is not None:
            assert (sync.master_id in sync.sync_state_set) is not self.master_is_cleaned

    @invariant()
    def c4_every_member_is_registered_unless_the_first_election_took_an_unknown_one(self):
        if self.group.sync is None:
            return
        unknown = [member for member in self.group.sync.sync_state_set if member not in self.group.brokers]
        expected = self.unknown_master is not None and self.unknown_master not in self.group.brokers
        assert unknown == ([self.unknown_master] if expected else [])


TestReplicatedState = ReplicatedStateMachine.TestCase
TestReplicatedState.settings = settings(max_examples=2 * DRAWN, stateful_step_count=30)
