"""How many replicas have to be in sync before a master takes a message, and how many are."""

from nodes.broker.tables.ha.ha_in_sync import ack_nums_to_wait_for, need_ack_nums, need_handle_ha
from nodes.config import BrokerConfig, BrokerRole
from support.every_case import each_case


def sync_master(**options):
    return BrokerConfig(broker_role=BrokerRole.SYNC_MASTER, enable_slave_acting_master=True, **options)


@each_case(
    ("in_sync", "wanted", "minimum", "adjusts", "needed"),
    [
        (1, 1, 1, False, 1),
        (1, 3, 1, False, 3),
        (3, 2, 1, False, 2),
        (1, 3, 1, True, 1),
        (1, 3, 2, True, 2),
        (2, 3, 2, True, 2),
        (3, 2, 1, True, 2),
        (3, 1, 2, True, 2),
    ],
)
def test_only_who_adjusts_is_content_with_those_in_sync_and_never_with_less_than_the_minimum(
    in_sync, wanted, minimum, adjusts, needed
):
    config = sync_master(
        in_sync_replicas=wanted, min_in_sync_replicas=minimum, enable_auto_in_sync_replicas=adjusts, total_replicas=3
    )

    assert need_ack_nums(config, in_sync) == needed


@each_case(
    ("alive", "linked", "wanted", "enough"),
    [(3, 3, 3, True), (2, 3, 3, False), (3, 2, 3, False), (2, 2, 2, True), (1, 3, 2, False)],
)
def test_in_sync_are_those_who_are_both_alive_and_linked(alive, linked, wanted, enough):
    waited_for = ack_nums_to_wait_for(sync_master(in_sync_replicas=wanted), alive=alive, linked=linked)

    assert waited_for == (wanted if enough else None)


def test_without_acting_masters_no_one_looks_who_is_in_sync():
    config = BrokerConfig(broker_role=BrokerRole.SYNC_MASTER, in_sync_replicas=3)

    assert ack_nums_to_wait_for(config, alive=1, linked=1) == 3


@each_case(
    ("role", "broker_id", "properties", "matters"),
    [
        (BrokerRole.SYNC_MASTER, 0, {}, True),
        (BrokerRole.SYNC_MASTER, 0, {"WAIT": "True"}, True),
        (BrokerRole.SYNC_MASTER, 0, {"WAIT": "false"}, False),
        (BrokerRole.SYNC_MASTER, 0, {"WAIT": "yes"}, False),
        (BrokerRole.SYNC_MASTER, 1, {}, False),
        (BrokerRole.ASYNC_MASTER, 0, {}, False),
    ],
)
def test_replicas_matter_to_a_synchronous_master_and_to_messages_that_wait(role, broker_id, properties, matters):
    assert need_handle_ha(BrokerConfig(broker_role=role), broker_id, properties) is matters
