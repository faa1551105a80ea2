import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.group.broker_identity import (
    BrokerMetadata,
    DamagedIdentityError,
    TempBrokerMetadata,
    read_broker_metadata,
    read_temp_broker_metadata,
)
from nodes.broker.tables.ha.epoch_file import OPEN, DamagedEpochFileError, EpochFile

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)


def pairs(epochs):
    return [(entry.epoch, entry.start_offset) for entry in epochs.entries]


@given(STEPS)
def test_epochs_and_starts_increase_and_what_is_read_again_is_what_was_written(steps):
    epochs, model = EpochFile(), []
    for epoch, start in steps:
        accepted = not model or (epoch > model[-1][0] and start > model[-1][1])
        assert epochs.append(epoch, start) is accepted
        model += [(epoch, start)] * accepted

    assert pairs(epochs) == model
    assert [entry.end_offset for entry in epochs.entries] == [
        *(start for _, start in model[1:]),
        *([OPEN] * bool(model)),
    ]
    assert EpochFile(epochs.text).entries == epochs.entries


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 5), st.integers(0, 40), st.integers(0, 40))
def test_logs_of_one_history_agree_up_to_the_shorter_end_or_to_where_the_histories_part(lengths, shared, mine, theirs):
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    common = [(epoch, start) for epoch, start in enumerate(starts, 1)][: shared + 1]
    last_start = common[-1][1]
    local = EpochFile.of(common).with_end(last_start + mine)
    master = EpochFile.of([*common, (90, last_start + theirs + 1)]).with_end(last_start + 100)

    assert local.consistent_point(master) == last_start + min(mine, theirs + 1)


def test_an_epoch_counts_only_with_the_same_start():
    local = EpochFile.of([(1, 0), (2, 100)]).with_end(500)

    assert local.consistent_point(EpochFile.of([(1, 0), (2, 500)]).with_end(600)) == 100
    assert local.consistent_point(EpochFile.of([(1, 10), (2, 110)]).with_end(600)) is None


@pytest.mark.trap("K42")
def test_a_suffix_that_is_cut_leaves_the_last_epoch_closed_until_the_file_is_read():
    epochs = EpochFile.of([(1, 0), (2, 100), (3, 200)])

    epochs.truncate_from(200)

    assert epochs.at(250) is None
    assert EpochFile(epochs.text).at(250).epoch == 2


@pytest.mark.trap("K42")
def test_epochs_that_are_all_cut_come_back_with_a_restart():
    epochs = EpochFile.of([(1, 0), (2, 100)])

    epochs.truncate_from(0)

    assert epochs.entries == ()
    assert pairs(EpochFile(epochs.text)) == [(1, 0), (2, 100)]


def test_epochs_whose_files_have_expired_are_dropped():
    epochs = EpochFile.of([(1, 0), (2, 100), (3, 200)])

    epochs.truncate_up_to(99)
    assert pairs(epochs) == [(1, 0), (2, 100), (3, 200)]
    epochs.truncate_up_to(100)
    assert pairs(epochs) == [(2, 100), (3, 200)]


@pytest.mark.parametrize("text", ["2\n1725254278\n1-0\n", "1\n17\n1-0\n", "nonsense"])
def test_a_damaged_epoch_file_is_refused(text):
    with pytest.raises(DamagedEpochFileError, match="do not match what follows"):
        EpochFile(text)


def test_the_identity_of_a_broker_survives_its_files():
    metadata, temporary = BrokerMetadata("c", "b", 2), TempBrokerMetadata("c", "b", 2, "10.0.0.2:10911;17")

    assert read_broker_metadata(metadata.text) == metadata
    assert read_temp_broker_metadata(temporary.text) == temporary


def test_a_name_with_a_hash_breaks_the_identity():
    with pytest.raises(DamagedIdentityError, match='For input string: "b"'):
        read_broker_metadata(BrokerMetadata("c#1", "b", 2).text)
    with pytest.raises(DamagedIdentityError, match="Index 3 out of bounds"):
        read_temp_broker_metadata(TempBrokerMetadata("c", "b", 2, "").text)
