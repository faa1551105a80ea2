"""What a broker makes of its group: the lowest member, the master's comings and goings, and going online."""

import pytest

from nodes.broker.tables.group.member_group import (
    ChangeSpecialService,
    CloseChannels,
    MemberGroup,
    MissingFlushOffsetError,
    NotifyMasterOnline,
    RegisterBrokerAll,
    RetrieveHaInfo,
    SetAliveReplicas,
    UpdateHaMasterAddress,
    UpdateMasterAddress,
    WakeUpHaClient,
)
from nodes.broker.tables.group.pre_online import (
    AdoptMetadata,
    Carry,
    FetchMetadata,
    MetadataVersions,
    PreOnline,
    RetrieveMasterHaInfo,
    SendHaInfo,
    StartService,
    WaitHaTransfer,
)
from nodes.broker.tables.group.slave_sync import sync_subscription_group_config, sync_topic_config
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager, SubscriptionGroupTable
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.protocol.bodies import TopicConfigSerializeWrapper
from nodes.protocol.headers import (
    ExchangeHaInfoHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    RegisterBrokerResponseHeader,
)
from nodes.protocol.model import DataVersion, SubscriptionGroupConfig, TopicConfig


def addr(broker_id):
    return f"10.0.0.{broker_id}:10911"


def ha(broker_id):
    return f"10.1.0.{broker_id}:10912"


def group(broker_id=1, **options):
    return MemberGroup(
        broker_id=broker_id,
        address=addr(broker_id),
        ha_address=ha(broker_id),
        **{"enable_slave_acting_master": True} | options,
    )


def members(*ids):
    return {broker_id: addr(broker_id) for broker_id in ids}


def test_a_slave_that_becomes_the_lowest_acts_and_stops_when_its_master_is_back():
    slave = group(1)
    slave.start_service(0, addr(0))
    slave.on_registered([RegisterBrokerResponseHeader(ha(0), addr(0))])

    assert slave.on_polled(members(0, 1)) == (SetAliveReplicas(2),)
    assert slave.on_polled(members(1)) == (
        SetAliveReplicas(1),
        ChangeSpecialService(running=True),
        CloseChannels((addr(0), "10.0.0.0:10909")),
        UpdateHaMasterAddress(None),
    )
    assert slave.slave_sync_master_addr is None
    assert slave.on_polled(members(0, 1)) == (
        SetAliveReplicas(2),
        ChangeSpecialService(running=False),
        RetrieveHaInfo(addr(0)),
        WakeUpHaClient(),
        NotifyMasterOnline(),
    )
    assert slave.on_ha_info(ExchangeHaInfoHeader(ha(0), 5, addr(0))) == (
        UpdateHaMasterAddress(ha(0)),
        UpdateMasterAddress(addr(0)),
    )
    assert slave.slave_sync_master_addr is None


def test_an_empty_answer_wipes_the_view_and_isolation_hides_the_minimum():
    slave = group(1, isolated=True)

    assert slave.on_polled(members(1)) == (SetAliveReplicas(1),)
    assert slave.on_polled({}) == ()
    assert slave.members == {}
    slave.end_isolation()
    assert slave.on_polled(members(1)) == (SetAliveReplicas(1), ChangeSpecialService(running=True))


def test_a_master_and_a_broker_without_the_flag_track_no_minimum():
    for broker in (group(0), group(1, enable_slave_acting_master=False)):
        assert broker.on_polled(members(1)) == (SetAliveReplicas(1 + (broker.broker_id == 0)),)
        assert broker.on_notified(NotifyMinBrokerIdChangeRequestHeader(2, None, addr(2))) == ()
        assert broker.min_broker_id == 0


@pytest.mark.trap("Y15")
def test_a_push_without_a_flush_offset_fails_after_the_addresses_were_adopted():
    slave = group(1, sync_master_flush_offset_when_startup=True)

    with pytest.raises(MissingFlushOffsetError) as failure:
        slave.adopt_ha_info(ExchangeHaInfoHeader(ha(0), None, addr(0)))

    assert failure.value.done == (UpdateHaMasterAddress(ha(0)), UpdateMasterAddress(addr(0)))


def test_going_online_starts_services_before_it_registers():
    broker = group(2, isolated=True)

    assert broker.start_service(2, addr(2)) == (ChangeSpecialService(running=True), RegisterBrokerAll())
    assert broker.isolated


def versions(counter):
    version = DataVersion(0, 1, counter)
    return MetadataVersions(version, version, None)


def answered(attempt, *answers):
    """The steps of an attempt that is answered like this, and whether it brought the broker online."""
    steps, waiting = [], list(answers)
    answer = None
    while True:
        try:
            step = attempt.send(answer)
        except StopIteration as end:
            return steps, end.value
        steps.append(step)
        passive = isinstance(step, StartService | AdoptMetadata | Carry)
        answer = None if passive else waiting.pop(0)


@pytest.mark.trap("Y7")
def test_a_master_takes_back_from_each_slave_in_turn_what_is_not_older_and_a_tie_goes_to_the_slave():
    pre_online = PreOnline(group(0), init_max_offset=7)
    info = ExchangeHaInfoHeader(ha(0), 7, addr(0))

    steps, online = answered(
        pre_online.prepare(members(1, 2), lambda: versions(5)), True, True, versions(5), True, True, versions(4)
    )

    assert online
    assert steps == [
        SendHaInfo(addr(1), info),
        WaitHaTransfer("10.0.0.1"),
        FetchMetadata(addr(1)),
        AdoptMetadata(consumer_offsets=True, delay_offsets=True, timer_check_point=False),
        SendHaInfo(addr(2), info),
        WaitHaTransfer("10.0.0.2"),
        FetchMetadata(addr(2)),
        AdoptMetadata(consumer_offsets=False, delay_offsets=False, timer_check_point=False),
        StartService(0, addr(0)),
    ]


def test_a_master_that_tries_again_skips_as_many_members_as_it_was_done_with():
    pre_online = PreOnline(group(0), init_max_offset=7)
    _, online = answered(pre_online.prepare(members(2, 3), lambda: versions(1)), True, True, versions(1), False)
    assert not online

    steps, online = answered(pre_online.prepare(members(1, 2, 3), lambda: versions(1)), *[True, True, versions(1)] * 2)

    assert online
    assert [step.address for step in steps if isinstance(step, FetchMetadata)] == [addr(2), addr(3)]


@pytest.mark.parametrize("answers", [[False], [True, False], [True, True, None]])
def test_a_master_stays_offline_if_one_step_with_a_member_fails(answers):
    steps, online = answered(PreOnline(group(0), init_max_offset=7).prepare(members(1), lambda: versions(1)), *answers)

    assert not online
    assert not any(isinstance(step, StartService) for step in steps)


def test_a_slave_follows_the_master_that_is_online_and_waits_for_its_bytes():
    slave = PreOnline(group(1), init_max_offset=0)

    steps, online = answered(
        slave.prepare(members(0, 2), lambda: versions(1)), ExchangeHaInfoHeader(ha(0), 9, addr(0)), True
    )

    assert online
    assert steps == [
        RetrieveMasterHaInfo(addr(0)),
        Carry((UpdateHaMasterAddress(ha(0)), UpdateMasterAddress(addr(0)))),
        WaitHaTransfer("10.1.0.0"),
        StartService(0, addr(0)),
    ]


def test_a_slave_without_a_master_starts_below_the_lowest_other_member_even_if_it_is_lower_itself():
    steps, _ = answered(PreOnline(group(1), init_max_offset=0).prepare(members(1, 2), lambda: versions(1)))
    alone, _ = answered(PreOnline(group(1), init_max_offset=0).prepare(members(1), lambda: versions(1)))

    assert steps == [StartService(2, addr(2))]
    assert alone == [StartService(1, addr(1))]


@pytest.mark.trap("Y4")
def test_a_slave_never_reaches_its_masters_version_of_topics_and_groups():
    topics = TopicConfigManager(now_ms=0, cluster="c", broker_name="bk")
    groups = SubscriptionGroupManager(now_ms=0)
    for name in list(topics.topics):
        topics.drop(name)
    for name in list(groups.groups):
        groups.drop(name)
    for name in ("t1", "t2", "t3"):
        topics.update_topic_config(TopicConfig(name), now_ms=0)
        groups.update_subscription_group_config(SubscriptionGroupConfig(name), now_ms=0)
    of_master = DataVersion(0, 9, 9)
    retained = ("t1", "t2", "t4")

    assert sync_topic_config(
        topics, TopicConfigSerializeWrapper({name: TopicConfig(name) for name in retained}, of_master), now_ms=10
    )
    assert sync_subscription_group_config(
        groups, SubscriptionGroupTable({name: SubscriptionGroupConfig(name) for name in retained}, of_master), now_ms=10
    )

    assert sorted(topics.topics) == sorted(groups.groups) == list(retained)
    assert topics.data_version == groups.data_version == DataVersion(0, 10, 14)
