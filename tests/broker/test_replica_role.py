import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.group.broker_identity import BrokerMetadata, TempBrokerMetadata
from nodes.broker.tables.group.member_group import RegisterBrokerAll
from nodes.broker.tables.group.replica_role import (
    AskForElection,
    ChangeHaToMaster,
    ChangeHaToSlave,
    CheckSyncStateSet,
    ControllerVerdict,
    RegisterState,
    ReplicaRole,
    SetLocalBrokerId,
    SetRoleId,
    SetSyncStateSet,
    StartReplicaService,
    StayHaMaster,
    StayHaSlave,
)
from nodes.protocol.bodies_controller import SyncStateSet
from support.controllers import address


def replica(broker_id=2, **files):
    role = ReplicaRole("c1", "b1", address(2), **files)
    if broker_id is not None:
        role.on_broker_id_applied(broker_id)
    return role


def verdict(master_id, epoch, set_epoch=1, members=(), at=None):
    known = address(master_id) if master_id is not None and at is None else at
    return ControllerVerdict(master_id, known, epoch, set_epoch, members or ((master_id,) if master_id else ()))


def kinds(effects):
    return [type(effect) for effect in effects]


VERDICTS = st.builds(
    verdict, st.sampled_from([None, 1, 2, 3]), st.integers(0, 6), st.integers(0, 6), st.just(()), st.none()
)


@given(st.lists(st.tuples(st.booleans(), VERDICTS), max_size=20))
def test_epochs_of_a_broker_never_decrease_and_its_role_is_that_of_the_greatest(steps):
    role, id_seen = replica(), None
    for polled, answer in steps:
        before = (role.master_epoch, role.sync_state_set_epoch)
        for effect in (role.on_polled if polled else role.on_verdict)(answer):
            id_seen = effect.role_id if isinstance(effect, SetRoleId) else id_seen
        assert role.master_epoch >= before[0]
        assert role.sync_state_set_epoch >= before[1]
        assert id_seen == (None if role.master_id is None else 0 if role.is_master else 2)


def test_a_new_master_adopts_its_set_changes_the_log_and_only_then_notifies_nameservers():
    effects = kinds(replica().on_verdict(verdict(2, 1)))

    assert effects[0] is SetSyncStateSet
    assert effects.index(ChangeHaToMaster) < effects.index(SetRoleId)
    assert effects[-2:] == [CheckSyncStateSet, RegisterBrokerAll]


@pytest.mark.trap("K32")
def test_a_master_that_is_confirmed_keeps_its_connections_in_the_new_epoch():
    role = replica()
    role.on_verdict(verdict(2, 1))

    effects = role.on_verdict(verdict(2, 2))

    assert StayHaMaster(2) in effects
    assert ChangeHaToMaster not in kinds(effects)


@pytest.mark.trap("K31")
def test_a_slave_whose_master_has_moved_keeps_its_connection():
    role = replica()
    role.on_verdict(verdict(1, 1))

    effects = role.on_verdict(verdict(1, 2, at="10.9.9.9:1"))

    assert StayHaSlave("10.9.9.9:1", 2) in effects
    assert ChangeHaToSlave not in kinds(effects)
    assert role.master_address == address(1)


@pytest.mark.trap("K17")
def test_a_controller_that_has_lost_its_data_is_not_believed():
    role = replica()
    role.on_verdict(verdict(1, 5))

    assert role.on_polled(verdict(2, 1)) == ()
    assert role.on_verdict(verdict(2, 1)) == ()
    assert role.master_id == 1


def test_of_a_notification_and_an_answer_with_one_epoch_the_second_changes_nothing():
    role = replica()

    assert role.on_verdict(verdict(2, 3)) != ()
    assert role.on_verdict(verdict(2, 3)) == ()


@pytest.mark.trap("K15")
def test_a_set_that_was_cleaned_without_a_new_epoch_never_reaches_the_master():
    role = replica()
    role.on_verdict(verdict(2, 1, set_epoch=4, members=(1, 2, 3)))

    assert role.on_polled(verdict(2, 1, set_epoch=4, members=(1, 2))) == ()
    assert role.sync_state_set == (1, 2, 3)


def test_a_group_that_has_lost_its_master_is_healed_by_who_polls():
    role = replica()
    role.on_verdict(verdict(1, 1))

    assert role.on_polled(verdict(None, 4)) == (AskForElection(),)
    assert role.on_polled(verdict(None, 1)) == ()
    assert role.on_polled(verdict(99, 4, at="")) == (AskForElection(),)


def test_the_set_of_a_former_master_is_replaced_only_by_a_newer_one():
    role = replica()
    role.on_verdict(verdict(2, 1, set_epoch=4, members=(1, 2)))
    role.on_verdict(verdict(1, 2, set_epoch=5))
    assert role.sync_state_set == (1, 2)

    role.on_verdict(verdict(2, 3, set_epoch=4))
    assert role.sync_state_set == (1, 2)
    assert role.on_sync_state_set(SyncStateSet((2,), 5)) == (SetSyncStateSet((2,)),)


@pytest.mark.trap("K29")
def test_nameservers_hear_of_a_master_that_does_not_serve_yet():
    role = replica()
    role.confirm_register_state()

    during_registration = role.on_verdict(verdict(2, 1))

    assert RegisterBrokerAll() in during_registration
    assert role.on_master_known() == (StartReplicaService(),)


def test_an_id_is_written_before_it_is_applied_for_and_a_crash_in_between_repeats_the_check_code():
    role = replica(None)
    role.on_next_broker_id(3, now_ms=17)
    written = role.temporary
    assert written == TempBrokerMetadata("c1", "b1", 3, "10.0.0.2:10911;17")

    again = replica(None, temporary=written)
    assert again.confirm_register_state() == ()
    assert again.register_state is RegisterState.CREATE_TEMP_METADATA_FILE_DONE
    again.on_broker_id_applied(3)
    assert (again.metadata, again.temporary) == (BrokerMetadata("c1", "b1", 3), None)


@pytest.mark.trap("K46")
def test_an_application_without_an_answer_starts_over():
    role = replica(None)
    role.on_next_broker_id(3, now_ms=17)

    role.on_broker_id_failed()

    assert (role.temporary, role.register_state) == (None, RegisterState.INITIAL)


@pytest.mark.parametrize("names", [("c2", "b1"), ("c1", "b2")])
def test_files_of_another_broker_are_not_its_own(names):
    role = replica(None, metadata=BrokerMetadata(*names, 7))

    assert role.confirm_register_state() == (SetLocalBrokerId(7),)
    assert not role.has_its_own_files
    assert not replica(None, temporary=TempBrokerMetadata(*names, 7, "x")).has_its_own_files
    assert replica(None).has_its_own_files
