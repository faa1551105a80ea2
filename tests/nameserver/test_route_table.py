import attrs
import pytest

from nodes.nameserver.route_request import filter_by_zone
from nodes.nameserver.tables.route_table import BrokerAddress, RouteTable
from nodes.protocol.bodies import RegisterBrokerBody, TopicConfigSerializeWrapper
from nodes.protocol.headers import (
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnregisterBrokerRequestHeader,
)
from nodes.protocol.model import DataVersion, QueueData, TopicConfig

SYNC_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_bk"
TOPICS = {"tA": 6, "tB": 6, SYNC_TOPIC: 1}
V1 = DataVersion(0, 1, 1)
V2 = DataVersion(0, 2, 2)


def addr(broker_id, name="bk"):
    return f"10.0.{len(name)}.{broker_id}:10911"


def register(
    table,
    broker_id,
    *,
    name="bk",
    at=None,
    cluster="c",
    acting=True,
    version=V1,
    topics=None,
    now_ms=0,
    timeout_ms=10_000,
    zone=None,
    channel=None,
    queues=4,
):
    address = at or addr(broker_id, name)
    header = RegisterBrokerRequestHeader(
        name, address, cluster, f"ha-{address}", broker_id, timeout_ms, acting, zone_name=zone
    )
    perms = TOPICS if topics is None else topics
    configs = {topic: TopicConfig(topic, queues, queues, perm) for topic, perm in perms.items()}
    body = RegisterBrokerBody(TopicConfigSerializeWrapper(configs, version))
    return table.register_broker(header, body, channel=channel or address, now_ms=now_ms)


def leave(broker_id, *, name="bk", at=None, cluster="c"):
    return UnregisterBrokerRequestHeader(name, at or addr(broker_id, name), cluster, broker_id)


def route_addrs(table, topic="tA", name="bk"):
    route = table.pick_up_topic_route(topic)
    return None if route is None else {data.broker_name: dict(data.broker_addrs) for data in route.broker_datas}[name]


def perm(table, topic="tA", name="bk"):
    return table.topics[topic][name].perm


def members(table, name="bk"):
    return dict(table.member_group("c", name).broker_addrs)


@pytest.fixture
def table():
    return RouteTable(support_acting_master=True, notify_min_broker_id_changed=True)


def test_a_slave_is_notified_its_master_and_a_master_nothing(table):
    assert register(table, 0).response == RegisterBrokerResponseHeader()
    assert register(table, 1).response == RegisterBrokerResponseHeader(f"ha-{addr(0)}", addr(0))


@pytest.mark.trap("M1")
def test_a_heartbeat_of_an_unknown_broker_does_nothing(table):
    table.heartbeat("c", addr(0), 5)
    assert dict(table.live_brokers) == {}
    assert table.pick_up_topic_route("tA") is None


@pytest.mark.trap("M2")
def test_a_version_query_keeps_a_broker_alive(table):
    register(table, 0)
    assert table.query_data_version("c", addr(0), V1, 9_000) == (False, V1)
    assert table.query_data_version("c", addr(0), V2, 9_000) == (True, V1)
    assert table.query_data_version("c", "nobody", V1, 9_000) == (True, None)
    assert table.scan_not_active_brokers(19_000) == ()


@pytest.mark.trap("M3")
def test_a_broker_expires_only_after_its_timeout_has_passed(table):
    register(table, 0)
    assert table.scan_not_active_brokers(10_000) == ()
    (expired,) = table.scan_not_active_brokers(10_001)
    assert (expired.channel, expired.unregister) == (addr(0), leave(0))


@pytest.mark.trap("M4")
def test_a_closed_channel_takes_its_broker_out_without_waiting(table):
    register(table, 0)
    table.unregister_brokers([table.on_channel_destroy(addr(0))])
    assert table.pick_up_topic_route("tA") is None


@pytest.mark.trap(
    "M5", status="simplified", note="the first match is the first registrant, not the first of a Java hash table"
)
def test_closing_a_shared_channel_takes_out_one_broker_only(table):
    register(table, 0, channel="shared")
    register(table, 0, name="other", channel="shared")
    table.unregister_brokers([table.on_channel_destroy("shared")])
    assert list(table.cluster_info().broker_addr_table) == ["other"]


@pytest.mark.trap("M6")
def test_a_queued_unregistration_removes_a_newer_registration(table):
    register(table, 0)
    queued = leave(0)
    register(table, 0, now_ms=1)
    table.unregister_brokers([queued])
    assert members(table) == {}


@pytest.mark.trap("M7")
def test_a_first_registration_with_one_topic_is_refused_and_leaves_an_empty_group(table):
    assert register(table, 0, topics={"tA": 6}) is None
    info = table.cluster_info()
    assert dict(info.broker_addr_table["bk"].broker_addrs) == {}
    assert info.cluster_addr_table["c"] == ("bk",)
    assert register(table, 0, topics={}) is not None


@pytest.mark.trap("M8")
def test_the_loser_of_a_state_version_conflict_is_reported_nothing(table):
    register(table, 1, at="old", version=DataVersion(2, 1, 1))
    register(table, 0)
    loser = register(table, 1, at="new", version=DataVersion(1, 9, 9))
    assert loser.response == RegisterBrokerResponseHeader()
    assert members(table)[1] == "old"
    assert BrokerAddress("c", "new") not in table.live_brokers


@pytest.mark.trap("M9")
def test_a_refused_registration_still_rewrites_flag_and_zone(table):
    register(table, 1)
    register(table, 2, acting=False, zone="z", topics={"tA": 6})
    data = table.cluster_info().broker_addr_table["bk"]
    assert (data.enable_acting_master, data.zone_name) == (False, "z")
    assert route_addrs(table) == {1: addr(1)}


@pytest.mark.trap("M10")
def test_the_last_registrant_decides_the_acting_flag_of_the_group(table):
    register(table, 1)
    register(table, 2, acting=False)
    assert route_addrs(table) == {1: addr(1), 2: addr(2)}
    register(table, 1)
    assert route_addrs(table) == {0: addr(1), 2: addr(2)}


@pytest.mark.trap("M11")
def test_permission_is_wiped_at_registration_and_not_when_the_flag_changes(table):
    register(table, 1, acting=False)
    register(table, 1, acting=True)
    assert (perm(table), route_addrs(table)) == (6, {1: addr(1)})
    register(table, 1, acting=True, version=V2)
    assert (perm(table), route_addrs(table)) == (4, {0: addr(1)})


@pytest.mark.trap("M12")
def test_a_writeable_queue_prevents_the_substitution(table):
    register(table, 1)
    assert route_addrs(table) == {0: addr(1)}
    assert table.add_write_perm("bk") == len(TOPICS)
    assert route_addrs(table) == {1: addr(1)}


@pytest.mark.trap("M13")
def test_the_acting_master_loses_its_own_id_in_the_route(table):
    register(table, 1)
    register(table, 2)
    assert route_addrs(table) == {0: addr(1), 2: addr(2)}


@pytest.mark.trap("M14")
def test_sync_topic_member_group_and_cluster_info_show_true_ids(table):
    register(table, 1)
    assert route_addrs(table, SYNC_TOPIC) == {1: addr(1)}
    assert members(table) == {1: addr(1)}
    assert dict(table.cluster_info().broker_addr_table["bk"].broker_addrs) == {1: addr(1)}


@pytest.mark.trap("M15")
def test_permission_is_wiped_even_where_acting_masters_are_not_supported():
    table = RouteTable()
    register(table, 0)
    register(table, 1)
    table.unregister_brokers([leave(0)])
    assert (perm(table), route_addrs(table)) == (4, {1: addr(1)})


@pytest.mark.trap("M16")
def test_a_stale_unregistration_announces_an_unchanged_minimum(table):
    register(table, 0, at="old")
    register(table, 0, at="new")
    register(table, 1)
    (change,) = table.unregister_brokers([leave(0, at="old")])
    assert change.recipients == ("new", addr(1))
    assert (change.header.min_broker_id, change.header.min_broker_addr) == (0, "new")
    assert change.header.offline_broker_addr == "old"


@pytest.mark.trap("M17")
def test_joining_is_announced_without_the_acting_flag_and_leaving_is_not(table):
    register(table, 1, acting=False)
    (change,) = register(table, 0, acting=False).notifications
    assert change.recipients == (addr(1),)
    assert change.header.ha_broker_addr == f"ha-{addr(0)}"
    assert change.header.broker_name is None
    assert table.unregister_brokers([leave(0)]) == ()


def test_the_first_registrant_is_announced_to_no_one(table):
    assert register(table, 1).notifications == ()
    assert register(table, 2).notifications == ()


@pytest.mark.trap("M18")
def test_a_batch_announces_one_change_per_group_with_the_last_address(table):
    for broker_id in (0, 1, 2):
        register(table, broker_id)
    (change,) = table.unregister_brokers([leave(0), leave(1)])
    assert change.recipients == (addr(2),)
    assert (change.header.min_broker_id, change.header.offline_broker_addr) == (2, addr(1))


@pytest.mark.trap("M19")
def test_another_address_under_id_0_is_announced_to_no_one(table):
    register(table, 0, at="old")
    register(table, 1)
    assert register(table, 0, at="new").notifications == ()


@pytest.mark.trap("M20")
def test_a_displaced_address_expires_again_and_again(table):
    register(table, 0, at="old")
    register(table, 0, at="new", now_ms=20_000)
    for now_ms in (20_001, 25_001):
        (expired,) = table.scan_not_active_brokers(now_ms)
        assert (expired.broker.address, expired.unregister) == ("old", None)


@pytest.mark.trap("M21")
def test_the_prime_slave_may_change_queues_and_another_slave_may_not(table):
    register(table, 1)
    register(table, 2, queues=16, version=V2, topics={**TOPICS, "tC": 6})
    assert table.topics["tA"]["bk"].read_queue_nums == 4
    assert "tC" not in table.topics
    register(table, 1, queues=8, version=V2)
    assert table.topics["tA"]["bk"].read_queue_nums == 8


@pytest.mark.trap("M22")
def test_the_zone_filter_sees_the_acting_master_as_a_master(table):
    register(table, 1, zone="z1")
    register(table, 1, name="flagless", zone="z1", acting=False)
    route = filter_by_zone(table.pick_up_topic_route("tA"), "z2")
    assert [data.broker_name for data in route.broker_datas] == ["flagless"]
    assert [data.broker_name for data in route.queue_datas] == ["flagless"]
    assert len(filter_by_zone(table.pick_up_topic_route("tA"), "Z1").broker_datas) == 2
    assert len(filter_by_zone(table.pick_up_topic_route("tA"), " ").broker_datas) == 2


@pytest.mark.trap("M23")
def test_a_topic_deleted_on_the_broker_stays_unless_registrations_delete():
    without_b = {"tA": 6, SYNC_TOPIC: 1}
    keeping, deleting = RouteTable(), RouteTable(delete_topic_with_broker_registration=True)
    for table in (keeping, deleting):
        register(table, 0)
        register(table, 0, topics=without_b, version=V2)
    assert "tB" in keeping.topics
    assert "tB" not in deleting.topics


@pytest.mark.trap("M24")
def test_a_broker_that_names_no_timeout_is_given_two_minutes(table):
    register(table, 0, timeout_ms=None)
    assert table.scan_not_active_brokers(120_000) == ()
    assert len(table.scan_not_active_brokers(120_001)) == 1


def test_a_returning_master_makes_its_topics_writeable_again(table):
    register(table, 0)
    register(table, 1)
    table.unregister_brokers([leave(0)])
    assert perm(table) == 4
    register(table, 0)
    assert perm(table) == 6


def test_a_role_switch_keeps_one_entry_for_the_address(table):
    register(table, 1, at="x")
    register(table, 0, at="x")
    assert members(table) == {0: "x"}


def test_an_old_slave_publishes_nothing(table):
    register(table, 1, acting=None)
    assert dict(table.topics) == {}


def test_a_member_of_another_cluster_joins_the_group_of_that_name(table):
    register(table, 0)
    register(table, 1, cluster="other")
    assert members(table) == {0: addr(0), 1: addr(1)}
    assert table.cluster_info().broker_addr_table["bk"].cluster == "c"


def test_a_topic_can_be_deleted_on_one_cluster_or_altogether(table):
    register(table, 0)
    register(table, 0, name="far", cluster="other")
    table.delete_topic("tA", "other")
    assert list(table.topics["tA"]) == ["bk"]
    table.delete_topic("tA")
    assert "tA" not in table.topics


def test_registering_a_topic_stops_at_the_first_unknown_broker(table):
    register(table, 0)
    known, unknown = QueueData("bk", 1, 1, 6), QueueData("ghost", 1, 1, 6)
    table.register_topic("new", [known, unknown])
    assert "new" not in table.topics
    table.register_topic("tA", [known, unknown])
    assert dict(table.topics["tA"]) == {"bk": known}
    table.register_topic("new", [known])
    assert dict(table.topics["new"]) == {"bk": known}


def test_wiping_clears_only_the_write_bit(table):
    register(table, 0)
    assert table.wipe_write_perm("bk") == len(TOPICS)
    assert {topic: queues["bk"].perm for topic, queues in table.topics.items()} == {"tA": 4, "tB": 4, SYNC_TOPIC: 1}


def test_a_route_that_was_picked_up_does_not_change_any_more(table):
    register(table, 0)
    before = table.pick_up_topic_route("tA")
    copy = attrs.evolve(before)
    register(table, 1)
    table.wipe_write_perm("bk")
    assert before == copy
    assert dict(before.broker_datas[0].broker_addrs) == {0: addr(0)}
