import pytest

from nodes.broker.tables.group.slave_sync import sync_topic_config
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.config.tables import TableConfig
from nodes.protocol.body_codec import encode_body
from nodes.protocol.errors import ProtocolError, TableFullError
from nodes.protocol.model import DataVersion, SubscriptionGroupConfig, TopicConfig


def topic_table(**options):
    return TopicConfigManager(now_ms=0, cluster="c1", broker_name="bk", **options)


def send(table, topic, default="TBW102", queues=4):
    return table.create_topic_in_send_message_method(topic, default, queues, 0, now_ms=1)


def test_a_send_makes_its_topic_from_the_template_without_the_inherit_bit():
    table = topic_table()
    made = send(table, "t")
    assert (made.config, made.created) == (TopicConfig("t", 4, 4, 6), True)
    assert table.data_version == DataVersion(0, 1, 1)
    assert send(table, "t", queues=16).created is False
    assert send(table, "wide", queues=16).config.write_queue_nums == 8


def test_a_send_makes_no_topic_where_that_is_off_or_the_template_may_not_be_inherited():
    assert send(topic_table(auto_create_topic_enable=False), "t").config is None
    assert send(topic_table(), "t", default="BenchmarkTest").config is None
    assert send(topic_table(), "t", default="unknown").config is None


@pytest.mark.trap("Y19")
def test_a_retry_topic_is_made_once_and_later_only_its_order_changes():
    table = topic_table()
    make = table.create_topic_in_send_message_back_method
    assert make("%RETRY%g", 1, 6, 0, now_ms=1).created is True
    again = make("%RETRY%g", 5, 2, 0, now_ms=2, is_order=True)
    assert (again.created, again.config) == (False, TopicConfig("%RETRY%g", 1, 1, 6, order=True))
    assert table.data_version.counter == 2


def test_every_put_is_a_version_and_deleting_nothing_is_none():
    table = topic_table()
    for now_ms in (1, 2):
        table.update_topic_config(TopicConfig("t"), now_ms=now_ms)
    table.delete_topic_config("ghost", now_ms=3)
    assert table.data_version == DataVersion(0, 2, 2)
    table.delete_topic_config("t", now_ms=4, state_version=9)
    assert table.data_version == DataVersion(9, 4, 3)
    assert table.select_topic_config("t") is None


def test_order_topics_are_marked_once_and_never_unmarked():
    table = topic_table()
    table.update_topic_config(TopicConfig("t"), now_ms=1)
    assert table.update_order_topic_config(["t", "ghost"], now_ms=2) is True
    assert table.update_order_topic_config(["t"], now_ms=3) is False
    assert table.update_order_topic_config([], now_ms=4) is False
    assert table.select_topic_config("t").order is True


def test_a_full_table_takes_no_new_topic_and_keeps_what_it_has():
    table = topic_table()
    table = topic_table(limits=TableConfig(max_topics=len(table.topics) + 1))
    send(table, "t")
    before = (dict(table.topics), table.data_version)
    for add in (lambda: send(table, "u"), lambda: table.require_room(TopicConfig("u"))):
        with pytest.raises(TableFullError, match="topics already"):
            add()
    with pytest.raises(TableFullError):
        table.create_topic_in_send_message_back_method("%RETRY%g", 1, 6, 0, now_ms=2)
    assert (dict(table.topics), table.data_version) == before
    assert send(table, "t").config is not None
    table.update_topic_config(TopicConfig("t", 8, 8), now_ms=3)
    assert table.select_topic_config("t").read_queue_nums == 8


def test_queues_are_limited_per_topic_and_in_all():
    there = sum(max(topic.read_queue_nums, topic.write_queue_nums) for topic in topic_table().topics.values())
    table = topic_table(limits=TableConfig(max_queues_per_topic=100, max_queues=there + 250))
    with pytest.raises(TableFullError, match="101 queues in one topic"):
        table.require_room(TopicConfig("t", 101, 1))
    table.update_topic_config(TopicConfig("t", 1, 100), now_ms=1)
    table.update_topic_config(TopicConfig("u", 100, 100), now_ms=1)
    with pytest.raises(TableFullError, match=f"this node's options allow {there + 250}"):
        table.require_room(TopicConfig("v", 100, 100))


def test_a_slave_adopts_what_its_master_has_beyond_its_own_limits():
    limits = TableConfig(max_topics=1, max_queues_per_topic=1, max_queues=1)
    master, slave = topic_table(), topic_table(limits=limits)
    master.update_topic_config(TopicConfig("t", 64, 64), now_ms=1)
    assert sync_topic_config(slave, master.wrapper(), now_ms=2) is True
    assert slave.select_topic_config("t") == TopicConfig("t", 64, 64)


def test_groups_are_limited():
    table = SubscriptionGroupManager(now_ms=0)
    table = SubscriptionGroupManager(now_ms=0, max_groups=len(table.groups) + 1)
    table.update_subscription_group_config(SubscriptionGroupConfig("g"), now_ms=1)
    with pytest.raises(TableFullError, match="groups already"):
        table.find_subscription_group_config("h", now_ms=1)
    with pytest.raises(TableFullError, match="groups already"):
        table.require_room("i")
    assert list(table.groups)[-1] == "g"


def test_topics_survive_their_file():
    table, again = topic_table(), topic_table()
    table.update_topic_config(TopicConfig("t", 3, 5, 4), now_ms=1)
    again.decode(encode_body(table.wrapper()))
    assert (dict(again.topics), again.data_version) == (dict(table.topics), table.data_version)
    with pytest.raises(ProtocolError):
        again.decode(b"\xc1")


def test_an_unknown_group_is_made_on_lookup_but_not_when_asked_whether_it_is_there():
    table = SubscriptionGroupManager(now_ms=0)
    assert table.contains_subscription_group("g") is False
    assert table.find_subscription_group_config("g", now_ms=1) == SubscriptionGroupConfig("g")
    assert table.data_version == DataVersion(0, 1, 1)
    table.find_subscription_group_config("g", now_ms=2)
    assert table.data_version == DataVersion(0, 1, 1)


def test_groups_with_illegal_names_or_without_permission_are_not_made():
    table = SubscriptionGroupManager(now_ms=0)
    assert table.find_subscription_group_config("a b", now_ms=1) is None
    assert table.find_subscription_group_config("x" * 256, now_ms=1) is None
    closed = SubscriptionGroupManager(now_ms=0, auto_create_subscription_group=False)
    assert closed.find_subscription_group_config("g", now_ms=1) is None
    assert closed.find_subscription_group_config("CID_RMQ_SYS_x", now_ms=1) is not None


def test_every_change_of_a_group_is_a_version_and_survives_its_file():
    table, again = SubscriptionGroupManager(now_ms=0), SubscriptionGroupManager(now_ms=0)
    table.update_subscription_group_config(SubscriptionGroupConfig("g", retry_queue_nums=2), now_ms=1)
    table.update_subscription_group_config(
        SubscriptionGroupConfig("g", retry_queue_nums=2, consume_enable=False), now_ms=2
    )
    table.delete_subscription_group_config("ghost", now_ms=4)
    assert table.data_version == DataVersion(0, 2, 2)
    again.decode(encode_body(table.wrapper()))
    assert again.groups["g"] == SubscriptionGroupConfig("g", retry_queue_nums=2, consume_enable=False)
    again.delete_subscription_group_config("g", now_ms=5)
    assert (again.contains_subscription_group("g"), again.data_version.counter) == (False, 3)


@pytest.mark.trap("Y6")
def test_clearing_the_last_forbidden_bit_of_a_topic_clears_all_topics_of_the_group_without_a_version():
    table = SubscriptionGroupManager(now_ms=0)
    for topic, index in (("t", 0), ("t", 1), ("u", 1)):
        table.update_forbidden("g", topic, index, forbid=True, now_ms=1)
    assert table.update_forbidden("g", "t", 0, forbid=False, now_ms=2) == 2
    assert (table.forbidden, table.data_version.counter) == ({"g": {"t": 2, "u": 2}}, 4)
    assert table.update_forbidden("g", "t", 1, forbid=False, now_ms=3) == 0
    assert (table.forbidden, table.data_version.counter) == ({}, 4)


@pytest.mark.trap("Y6")
def test_deleting_a_group_that_is_only_forbidden_things_is_no_version():
    table = SubscriptionGroupManager(now_ms=0)
    table.update_forbidden("ghost", "t", 0, forbid=True, now_ms=1)
    table.delete_subscription_group_config("ghost", now_ms=2)
    assert (table.forbidden, table.data_version.counter) == ({}, 1)
