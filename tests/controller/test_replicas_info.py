import pytest

from nodes.controller.tables.events import (
    ApplyBrokerId,
    CleanBrokerData,
    DamagedEntryError,
    UpdateBrokerAddress,
    event_of,
    to_log_entry,
)
from nodes.controller.tables.replicated_state import ReplicatedState, UnknownGroupError
from nodes.protocol import headers_controller as headers
from nodes.protocol.codes import ResponseCode as Code
from support.controllers import CLUSTER, NAME, OneGroup, address
from support.every_case import each_case

# Ids


def test_an_id_is_applied_for_not_reserved_and_its_owner_may_repeat_itself():
    group = OneGroup()

    assert group.next_id() == group.next_id() == 1
    assert group.apply(1, "10.0.0.1:10911;17") is Code.SUCCESS
    assert group.apply(1, "10.0.0.2:10911;18") is Code.CONTROLLER_BROKER_ID_INVALID
    assert group.apply(1, "10.0.0.1:10911;17") is Code.SUCCESS
    assert group.next_id() == 2
    assert group.brokers[1].address == "10.0.0.1:10911"


def test_the_next_id_counts_applications_and_may_name_an_id_that_is_used():
    group = OneGroup(1, 3)

    assert group.next_id() == 3
    assert group.apply(3, "another;1") is Code.CONTROLLER_BROKER_ID_INVALID
    assert group.next_id() == 3


def test_the_first_applicant_of_a_group_must_ask_for_id_1():
    assert OneGroup().apply(2) is Code.CONTROLLER_BROKER_ID_INVALID


@pytest.mark.trap("K46")
def test_an_application_whose_answer_was_lost_leaves_a_replica_that_no_one_is():
    group = OneGroup(1)
    group.apply(2)  # the answer is lost, so the broker deletes its file and starts over

    assert group.next_id() == 3
    assert group.apply(3, f"{address(2)};2") is Code.SUCCESS
    assert list(group.brokers) == [1, 2, 3]


def test_who_registers_at_another_address_is_given_the_old_one_of_the_master_once():
    group = OneGroup(1, 2)
    group.elect(1)

    assert group.register(1, at="10.9.9.9:1").header.master_address == address(1)
    assert group.register(2).header.master_address == "10.9.9.9:1"


@pytest.mark.trap("K9")
def test_a_registration_is_given_the_master_only_under_the_cluster_name_that_heartbeats_bear():
    group = OneGroup(1, 2)
    group.elect(1)

    reported = group.register(2, cluster="c2").header

    assert (reported.master_broker_id, reported.master_epoch) == (None, None)
    assert group.replica_info().header.master_broker_id == 1
    assert group.register(2).header.master_broker_id == 1


# Elections


@pytest.mark.trap("K1")
@pytest.mark.trap("M70")
def test_each_failed_attempt_of_a_controller_raises_the_master_epoch():
    group = OneGroup(1, 2)
    group.elect(1)
    group.alter(1, 2)
    group.dead(1, 2)

    codes = [group.elect_by_controller().code for _attempt in range(3)]

    assert codes == [Code.CONTROLLER_MASTER_NOT_AVAILABLE] * 3
    assert (group.sync.master_id, group.sync.master_epoch, group.sync.sync_state_set) == (None, 4, (1, 2))
    group.alive(2)
    assert group.elect(2).header.master_epoch == 5


@pytest.mark.trap("K2")
@pytest.mark.trap("M71")
@pytest.mark.parametrize("asking", [2, 99], ids=["dead", "unknown"])
def test_the_first_election_takes_who_asks(asking):
    group = OneGroup(1, 2)
    group.dead(2)

    elected = group.elect(asking)

    assert (elected.code, group.sync.master_id, group.sync.master_epoch) == (Code.SUCCESS, asking, 1)
    assert elected.header.master_address == (address(2) if asking == 2 else None)


@pytest.mark.trap("K3")
def test_later_elections_do_not_take_who_asks():
    group = OneGroup(1, 2, 3)
    group.elect(1)
    group.alter(1, 2, 3)
    group.dead(1)
    group.alive(2, max_offset=500)

    assert group.elect(3).header.master_broker_id == 2


@pytest.mark.trap("K4")
def test_a_first_election_by_a_controller_locks_the_group():
    group = OneGroup(1)

    assert group.elect_by_controller().code is Code.CONTROLLER_MASTER_NOT_AVAILABLE
    assert (group.sync.master_epoch, group.sync.sync_state_set) == (1, ())
    assert group.elect(1).code is Code.CONTROLLER_ELECT_MASTER_FAILED
    assert group.elect(1).code is Code.CONTROLLER_ELECT_MASTER_FAILED


def test_an_unclean_election_unlocks_the_group():
    group = OneGroup(1, enable_elect_unclean_master=True)
    group.state.apply(group.manager.elect_master(headers.ElectMasterRequestHeader(CLUSTER, NAME), no_one).events[0])

    assert group.elect(1).header.master_epoch == 2


def no_one(_cluster, _name, _member):
    return None


@pytest.mark.trap("K6")
def test_a_master_that_still_lives_keeps_its_epoch():
    group = OneGroup(1, 2)
    group.elect(1)
    group.alter(1, 2)

    again = group.elect(1)

    assert (again.code, again.events) == (Code.CONTROLLER_MASTER_STILL_EXIST, ())
    assert (again.header.master_epoch, again.body.sync_state_set) == (1, (1, 2))


def test_a_designated_replica_that_is_not_in_sync_is_elected_only_by_an_unclean_election():
    for unclean, code in ((False, Code.CONTROLLER_ELECT_MASTER_FAILED), (True, Code.SUCCESS)):
        group = OneGroup(1, 2, enable_elect_unclean_master=unclean)
        group.elect(1)
        assert group.elect(2, designate=True).code is code


@pytest.mark.trap("K21")
def test_two_elections_before_the_first_is_committed_name_one_epoch_and_take_two():
    group = OneGroup(1, 2)
    group.elect(1)
    group.alter(1, 2)
    first = group.generate_election(1, designate=True)
    group.dead(1)
    item, two = group.generate_election(2), group.generate_election(2)
    group.committed(item)
    group.committed(two)

    assert first.code is Code.CONTROLLER_MASTER_STILL_EXIST
    assert item.header.master_epoch == two.header.master_epoch == 2
    assert group.sync.master_epoch == 3
    assert group.generate_alter(2, 2, (1, 2), group.sync.sync_state_set_epoch).code is (
        Code.CONTROLLER_FENCED_MASTER_EPOCH
    )


def test_two_answers_may_name_different_masters_of_one_epoch_but_the_tables_hold_one():
    group = OneGroup(1, 2, 3)
    group.elect(1)
    group.alter(1, 2, 3)
    two, three = (group.generate_election(member, designate=True) for member in (2, 3))
    group.committed(two)
    group.committed(three)

    assert two.header.master_epoch == three.header.master_epoch == 2
    assert (group.sync.master_id, group.sync.master_epoch) == (3, 3)


# SyncStateSets


@pytest.mark.trap("K10")
def test_a_set_is_compared_with_the_old_one_before_master_and_epochs():
    group = OneGroup(1, 2)
    group.elect(1)

    assert group.generate_alter(2, 7, (1,), 9).code is Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    assert group.generate_alter(2, 7, (1, 2), 9).code is Code.CONTROLLER_INVALID_MASTER
    assert group.generate_alter(1, 7, (1, 2), 9).code is Code.CONTROLLER_FENCED_MASTER_EPOCH
    assert group.generate_alter(1, 1, (1, 2), 9).code is Code.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
    assert group.generate_alter(1, 1, (1, 5), 1).code is Code.CONTROLLER_INVALID_REPLICAS
    assert group.generate_alter(1, 1, (2,), 1).code is Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    assert group.generate_alter(1, 1, (), 1).code is Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED


@pytest.mark.trap("K11")
@pytest.mark.parametrize("dead", [1, 2], ids=["the master", "a slave"])
def test_a_set_with_a_dead_member_is_refused(dead):
    group = OneGroup(1, 2)
    group.elect(1)
    group.dead(dead)

    assert group.alter(1, 2).code is Code.CONTROLLER_BROKER_NOT_ALIVE


# Cleaning


@pytest.mark.trap("K12")
def test_cleaning_with_living_brokers_allowed_removes_the_group_whatever_the_ids():
    group = OneGroup(1, 2)
    group.elect(1)

    assert group.clean("no number", living=True).code is Code.SUCCESS
    assert (group.brokers, group.sync) == ({}, None)


@pytest.mark.trap("K13")
def test_cleaning_without_a_cluster_name_removes_who_lives():
    group = OneGroup(1, 2)
    group.elect(1)

    assert group.clean("2").code is Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
    assert group.clean("2", cluster=None).code is Code.SUCCESS
    assert group.replica_info().code is Code.SUCCESS
    assert group.register(2).code is Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED


@pytest.mark.trap("K14")
def test_cleaning_may_leave_half_a_group_of_which_the_next_applicant_takes_the_rest():
    group = OneGroup(1, 2, 3)
    group.elect(1)
    group.dead(1)

    group.clean("1")

    assert group.replica_info().code is Code.CONTROLLER_BROKER_METADATA_NOT_EXIST
    assert (list(group.brokers), group.next_id()) == ([2, 3], 4)
    assert group.register(2).code is Code.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
    group.apply(4)
    assert (list(group.brokers), group.next_id(), group.sync.master_epoch) == ([4], 2, 0)


@pytest.mark.trap("K15")
def test_cleaning_a_member_changes_the_set_and_not_its_epoch():
    group = OneGroup(1, 2, 3)
    group.elect(1)
    group.alter(1, 2, 3)
    group.dead(3)

    group.clean("3")

    assert (group.sync.sync_state_set, group.sync.sync_state_set_epoch) == ((1, 2), 2)
    assert group.alter(1, 2).code is Code.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED


@pytest.mark.parametrize(("ids", "piece"), [("1; 2", " 2"), (";1", ""), ("x", "x")])
def test_ids_that_are_no_numbers_are_refused_with_the_piece(ids, piece):
    refused = OneGroup(1).clean(ids)

    assert refused.code is Code.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
    assert refused.remark.endswith(f'For input string: "{piece}"')


def test_ids_may_end_with_a_separator():
    group = OneGroup(1, 2)
    group.dead(1, 2)

    assert group.clean("2;").code is Code.SUCCESS
    assert list(group.brokers) == [1]


# The scan


def test_the_scan_finds_groups_whose_master_is_dead_and_that_have_a_live_replica():
    group = OneGroup(1, 2)
    scan = group.manager.scan_need_reelect
    assert scan(group.is_alive) == ()
    group.elect(1)
    assert scan(group.is_alive) == ()
    group.dead(1)
    assert scan(group.is_alive) == (NAME,)
    group.dead(2)
    assert scan(group.is_alive) == ()


def test_the_scan_fails_at_half_a_group_whose_master_is_dead():
    group = OneGroup(1)
    group.elect(99)
    group.dead(1)
    group.clean("1")

    with pytest.raises(UnknownGroupError, match="no replicas of b1, whose master is dead"):
        group.manager.scan_need_reelect(group.is_alive)


# Events


def test_an_address_of_an_unknown_group_is_an_error_and_one_of_an_unknown_id_is_ignored():
    state = ReplicatedState()
    with pytest.raises(UnknownGroupError, match="no replicas of b1, one of which has moved"):
        state.apply(UpdateBrokerAddress(CLUSTER, NAME, "x", 1))
    state.apply(ApplyBrokerId(CLUSTER, NAME, "a", 1, "a;1"))
    state.apply(UpdateBrokerAddress(CLUSTER, NAME, "x", 2))

    assert state.groups[NAME].brokers[1].address == "a"


def test_an_entry_of_the_log_is_two_bytes_of_type_and_json():
    applied = ApplyBrokerId(CLUSTER, NAME, "a", 1, "a;1")
    cleaned = CleanBrokerData(NAME, (3, 1))

    assert to_log_entry(cleaned) == (
        b'\x00\x05{"brokerIdSetToClean":[1,3],"brokerName":"b1","eventType":"CLEAN_BROKER_DATA_EVENT"}'
    )
    assert [event_of(to_log_entry(event)) for event in (applied, cleaned)] == [applied, cleaned]


@each_case("entry", [b"", b"\x00", b"\x00\x63{}", b"\x00\x01", b"\x00\x01[]", b'\x00\x05{"brokerIdSetToClean":3}'])
def test_an_entry_that_is_none_is_refused(entry):
    with pytest.raises(DamagedEntryError, match="is no event"):
        event_of(entry)
