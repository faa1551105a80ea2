import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.ha.auto_switch_link import (
    LogBatch,
    MasterEnd,
    MasterHandshake,
    NegativeBatchError,
    RefusedFrameError,
    SlaveAck,
    SlaveEnd,
    SlaveHandshake,
)
from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet, NoEpochError


def master_end(epochs, batch_size=1000):
    in_sync = MasterSyncStateSet(epochs, all_ack_in_sync_state_set=False, ha_max_time_slave_not_catchup_ms=15_000)
    in_sync.broker_id = 1
    in_sync.set_sync_state_set([1], 0)
    return MasterEnd(epochs, in_sync, ha_transfer_batch_size=batch_size)


class Link:
    """Two brokers: what one sends the other takes at once."""

    def __init__(self, master_epochs, master_end_offset, slave_epochs, slave_end_offset, batch_size=1000):
        self.master_epochs, self.slave_epochs = EpochFile.of(master_epochs), EpochFile.of(slave_epochs)
        self.master_max, self.slave_max = master_end_offset, slave_end_offset
        self.master = master_end(self.master_epochs, batch_size)
        self.slave = SlaveEnd(self.slave_epochs, slave_end_offset)
        self.labels = []

    def shake_hands(self):
        self.master.on_handshake(SlaveHandshake(2))
        point = self.slave.on_handshake(self.master.handshake(self.master_max), self.slave_max)
        self.slave_max = self.slave_max if point is None else min(self.slave_max, point)
        return point

    def begin(self):
        self.acknowledged(SlaveAck(self.slave_max))
        assert self.master.start_transfer(self.master.slave_request_offset)

    def transfer(self):
        while batch := self.master.next_batch(max_offset=self.master_max, confirm_offset=self.master_max, now_ms=0):
            self.labels.append((batch.offset, batch.epoch))
            report = self.slave.on_batch(batch, self.slave_max)
            self.slave_max = batch.offset + batch.size
            if report is not None:
                self.acknowledged(report)

    def acknowledged(self, ack):
        self.master.on_ack(ack, max_offset=self.master_max, now_ms=0)


def starts(epochs):
    return [(entry.epoch, entry.start_offset) for entry in epochs.entries]


HISTORIES = st.lists(st.integers(1, 40), min_size=1, max_size=4)


def history(lengths):
    return [(place + 1, sum(lengths[:place])) for place in range(len(lengths))], sum(lengths)


@given(HISTORIES, st.data(), st.integers(1, 30), st.integers(1, 30))
def test_after_handshake_and_transfer_the_slave_has_the_masters_log_and_nothing_else(lengths, data, batch_size, own):
    """C7, as long as the slave knows an epoch of the same history."""
    epochs, end = history(lengths)
    shared = data.draw(st.integers(1, len(epochs)))
    parted = data.draw(st.integers(epochs[shared - 1][1] + 1, end))
    link = Link(epochs, end, [*epochs[:shared], (90, parted)], parted + own, batch_size)

    point = link.shake_hands()

    common = min(parted, epochs[shared][1] if shared < len(epochs) else end)
    assert point == link.slave.reported_offset == common
    assert link.slave_epochs.get(90) is None
    link.begin()
    link.transfer()
    assert link.slave_max == end
    offsets = [offset for offset, _ in link.labels]
    assert offsets == sorted(offsets)
    assert offsets[:1] == ([common] if common < end else [])


@pytest.mark.trap("K33")
def test_an_epoch_that_fits_into_one_batch_leaves_no_entry_at_a_blank_slave():
    link = Link([(1, 0), (2, 100)], 150, [], 0)
    assert link.shake_hands() is None
    link.begin()
    link.transfer()

    assert link.labels == [(0, 2), (100, 2)]
    assert starts(link.slave_epochs) == [(2, 100)]


@pytest.mark.trap("K32")
def test_an_epoch_that_begins_while_a_slave_is_connected_is_never_labelled():
    link = Link([(1, 0)], 100, [(1, 0)], 50)
    link.shake_hands()
    link.begin()
    link.transfer()
    link.master_epochs.append(2, 100)
    link.master_max = 150
    link.transfer()

    assert link.labels == [(50, 1), (100, 1)]
    assert starts(link.slave_epochs) == [(1, 0)]


def test_a_link_whose_epoch_has_expired_transfers_nothing():
    link = Link([(1, 0), (2, 100)], 150, [(1, 0)], 50)
    link.shake_hands()
    link.begin()
    link.master_epochs.truncate_from(0)

    assert link.master.next_batch(max_offset=150, confirm_offset=150, now_ms=0) is None


@pytest.mark.trap("K35")
def test_after_a_handshake_the_slave_has_nothing_to_report_and_the_master_waits_for_a_report():
    link = Link([(1, 0)], 100, [(1, 0)], 60)

    link.shake_hands()

    assert link.slave.due_report(link.slave_max) is None
    assert not link.master.is_transferring


@pytest.mark.trap("K6")
def test_a_master_that_moved_the_start_of_its_epoch_makes_its_slaves_copy_again():
    link = Link([(1, 0), (2, 500)], 500, [(1, 0), (2, 100)], 500)

    assert link.shake_hands() == 100
    assert link.slave_max == 100


def test_a_slave_that_shares_no_epoch_is_refused_and_one_without_epochs_is_never_cut():
    with pytest.raises(RefusedFrameError, match="share no epoch"):
        Link([(3, 10)], 100, [(1, 0)], 60).shake_hands()
    assert Link([(3, 10)], 100, [], 60).shake_hands() is None


def test_a_slave_takes_only_what_follows_its_log_unless_that_is_empty():
    link = Link([(1, 0)], 100, [(1, 0)], 60)
    batch = LogBatch(70, 1, 0, 100, 10)
    with pytest.raises(RefusedFrameError, match="a batch before the handshake"):
        link.slave.on_batch(batch, 60)
    link.shake_hands()

    with pytest.raises(RefusedFrameError, match="the master sends offset 70, the own log ends at 60"):
        link.slave.on_batch(batch, 60)
    with pytest.raises(RefusedFrameError, match="a second handshake"):
        link.slave.on_handshake(MasterHandshake(100, 1, ((1, 0),)), 60)
    blank = SlaveEnd(EpochFile(), 0)
    blank.on_handshake(MasterHandshake(100, 1, ((1, 0),)), 0)
    assert blank.on_batch(batch, 0) == SlaveAck(80)
    assert blank.confirm_offset == 80


def test_a_replica_that_has_data_and_no_epochs_reports_its_end_at_once():
    link = Link([(1, 0)], 100, [], 60)
    assert link.shake_hands() is None

    assert link.slave.due_report(link.slave_max) == SlaveAck(60)


def test_a_slave_whose_offset_lies_in_no_epoch_gets_a_batch_of_negative_size_and_never_anything_after_it():
    """A group that had data before controller mode: its slave was behind when the first epoch began."""
    link = Link([(1, 100)], 150, [], 60)
    link.shake_hands()
    link.acknowledged(link.slave.due_report(link.slave_max))
    assert not link.master.start_transfer(link.master.slave_request_offset)

    batch = link.master.next_batch(max_offset=150, confirm_offset=150, now_ms=0)

    assert (batch.offset, batch.epoch, batch.size) == (60, 1, -60)
    assert link.master.next_offset == 0
    with pytest.raises(NegativeBatchError):
        link.slave.on_batch(batch, link.slave_max)


def test_a_heartbeat_bears_the_first_epoch_until_the_transfer_has_one_and_without_epochs_there_is_none():
    end = master_end(EpochFile.of([(3, 100), (4, 200)]))
    assert end.heartbeat(150) == LogBatch(-1, 3, 100, 150, 0)
    end.start_transfer(210)
    assert end.heartbeat(150) == LogBatch(210, 4, 200, 150, 0)
    with pytest.raises(NoEpochError):
        master_end(EpochFile()).heartbeat(150)


def test_the_end_of_an_epoch_that_was_the_last_one_is_never_checked():
    epochs = EpochFile.of([(1, 0), (2, 100)])
    epochs.truncate_from(100)
    end = master_end(epochs)
    end.start_transfer(50)

    assert end.transfer_epoch_end == -1
