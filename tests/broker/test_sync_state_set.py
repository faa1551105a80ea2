import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet, NoEpochError, SlaveLink
from support.examples import DRAWN

NOT_CATCHUP_MS = 15_000


class Master(MasterSyncStateSet):
    """A master with id 1 whose log ends at 1000."""

    def __init__(self, *members, epoch=1, all_ack=False):
        self.epochs = EpochFile()
        super().__init__(
            self.epochs, all_ack_in_sync_state_set=all_ack, ha_max_time_slave_not_catchup_ms=NOT_CATCHUP_MS
        )
        self.broker_id = 1
        self.max_offset = 1000
        if epoch:
            self.change_to_master(epoch, self.max_offset)
        self.answered(1, *members)

    def connected(self, slave_id):
        self.links.append(SlaveLink(slave_id))
        return self.links[-1]

    def acked(self, link, offset, now_ms=0):
        return self.on_ack(link, offset, max_offset=self.max_offset, now_ms=now_ms)

    def answered(self, *members):
        self.set_sync_state_set(members, self.max_offset)

    def confirmed(self):
        return self.confirm_offset(self.max_offset)


@pytest.mark.trap("K36")
@pytest.mark.parametrize(("all_ack", "reported"), [(False, None), (True, (1, 2, 3))])
def test_a_slave_joins_only_at_the_very_end_of_the_log_unless_all_must_acknowledge(all_ack, reported):
    master = Master(2, all_ack=all_ack)
    slave = master.connected(3)
    master.on_batch_sent(slave, max_offset=1000, now_ms=0)
    master.max_offset = 1100  # under traffic there always is one more message

    assert master.acked(slave, 1000) == reported
    assert master.acked(slave, 1100) == (1, 2, 3)


def test_a_slave_that_has_not_reached_the_present_epoch_does_not_join():
    master = Master(epoch=1, all_ack=True)
    master.answered(1, 2)
    master.max_offset = 1500
    master.stay_master(2, 1500)

    assert master.acked(master.connected(3), 1499) is None
    assert master.acked(master.connected(3), 1500) == (1, 2, 3)


def test_a_learner_never_joins():
    assert Master().acked(SlaveLink(2, is_async_learner=True), 1000) is None


@pytest.mark.trap("K37")
def test_a_report_counts_until_it_is_answered_and_the_larger_set_counts():
    master = Master(2, 3)
    assert master.maybe_shrink(0) == (1,)  # neither has ever caught up

    # The report failed: no one says so here.
    assert master.synchronizing
    assert (master.in_sync_replicas_nums, master.members) == (3, (1, 2, 3))
    master.answered(1)
    assert (master.in_sync_replicas_nums, master.members) == (1, (1,))


@pytest.mark.trap("K38")
def test_old_and_reported_members_count_while_an_expansion_is_unanswered():
    master = Master(2)
    master.acked(master.connected(3), 1000)

    assert (master.remote, master.members, master.in_sync_replicas_nums) == ((1, 2, 3), (1, 2, 3), 3)
    master.maybe_shrink(0)
    assert (master.remote, master.members) == ((1,), (1, 2))


@pytest.mark.trap("K39")
def test_the_late_end_of_a_replaced_connection_removes_a_slave_that_is_connected_again():
    master = Master(2)
    old, new = master.connected(2), master.connected(2)
    assert master.acked(new, 1000) is None

    assert master.on_disconnected(old) == (1,)
    master.answered(1)
    assert master.acked(new, 1000) == (1, 2)


@pytest.mark.trap("K40")
def test_an_acknowledgement_before_the_first_epoch_fails_and_leaves_the_offset():
    master = Master(epoch=None)
    slave = master.connected(2)

    with pytest.raises(NoEpochError, match="slave 2 acknowledges 1000, and there is no epoch yet"):
        master.acked(slave, 1000)

    assert slave.ack_offset == 1000


def test_a_member_is_dropped_when_it_has_been_behind_for_longer_than_allowed():
    master = Master()
    master.acked(master.connected(2), 1000)
    master.answered(1, 2)

    assert master.maybe_shrink(NOT_CATCHUP_MS) == (1, 2)
    assert not master.synchronizing
    assert master.maybe_shrink(NOT_CATCHUP_MS + 1) == (1,)


def test_a_slave_that_never_acknowledges_keeps_up_as_long_as_there_is_nothing_to_send():
    master = Master(2)
    master.on_idle(master.connected(2), now_ms=14_000)

    assert master.maybe_shrink(14_000 + NOT_CATCHUP_MS) == (1, 2)


@pytest.mark.trap("K34")
def test_a_promotion_without_new_data_leaves_no_epoch():
    master = Master(epoch=1)

    assert master.change_to_master(3, 1000)
    assert (master.state_machine_version, master.epochs.last_epoch) == (3, 1)


@pytest.mark.trap("K6")
def test_a_restarted_master_moves_the_start_of_its_epoch():
    master = Master(epoch=1)
    master.change_to_master(2, 1100)
    master.change_to_master(2, 1500)

    assert [(entry.epoch, entry.start_offset) for entry in master.epochs.entries] == [(1, 1000), (2, 1500)]


@pytest.mark.trap("K17")
@pytest.mark.parametrize("change", ["change_to_master", "stay_master", "follow"])
def test_a_smaller_epoch_than_the_last_of_the_file_changes_nothing(change):
    master = Master(epoch=5)
    arguments = (4,) if change == "follow" else (4, 2000)

    assert not getattr(master, change)(*arguments)
    assert (master.state_machine_version, master.epochs.last_epoch) == (5, 5)


@pytest.mark.trap("K31")
def test_a_slave_that_keeps_its_master_does_not_learn_the_epoch_in_its_file():
    slave = Master(epoch=1)

    assert slave.follow(2)
    assert (slave.state_machine_version, slave.epochs.last_epoch) == (2, 1)


def test_the_confirm_offset_stays_while_a_member_has_no_connection():
    master = Master(2, all_ack=True)
    assert master.confirmed() == 1000
    master.max_offset = 1500
    master.answered(1, 2)
    assert master.confirmed() == 1000

    master.acked(master.connected(2), 1400)
    assert master.confirmed() == 1400


class ConfirmOffsets(RuleBasedStateMachine):
    """C8: with allAckInSyncStateSet nothing is confirmed that a connected member lacks."""

    @initialize()
    def begin(self):
        self.master = Master(all_ack=True)
        self.said = {}

    @rule(grown=st.integers(0, 3))
    def put(self, grown):
        self.master.max_offset += grown

    @rule(slave=st.integers(2, 4))
    def connect(self, slave):
        if all(link.slave_id != slave for link in self.master.links):
            self.master.connected(slave)

    @rule(slave=st.integers(2, 4), behind=st.integers(0, 5))
    def ack(self, slave, behind):
        for link in self.master.links:
            if link.slave_id == slave:
                self.master.acked(link, max(link.ack_offset, self.master.max_offset - behind))

    @rule(slave=st.integers(2, 4))
    def disconnect(self, slave):
        for link in [link for link in self.master.links if link.slave_id == slave]:
            self.master.on_disconnected(link)

    @rule()
    def controller_answers(self):
        if self.master.synchronizing:
            self.master.answered(*self.master.remote)

    @invariant()
    def no_member_that_acknowledges_lacks_what_is_confirmed(self):
        confirmed = self.master.confirmed()
        if len(self.master.local) > 1:
            ends = [link.ack_offset for link in self.master.links if link.slave_id in self.master.local]
            assert all(confirmed <= end for end in ends if end > 0)


TestConfirmOffsets = ConfirmOffsets.TestCase
TestConfirmOffsets.settings = settings(max_examples=DRAWN, stateful_step_count=30)
