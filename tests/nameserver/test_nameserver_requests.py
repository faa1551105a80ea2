"""What a nameserver answers to operators: configuration, lists of topics, routes of a zone."""

import zlib

import pytest

from nodes.config import NameserverConfig
from nodes.nameserver.admin_requests import AdminRequests
from nodes.nameserver.register_request import body_crc32, register_broker
from nodes.nameserver.route_request import RouteRequests
from nodes.nameserver.tables.kv_config import KvConfigManager
from nodes.nameserver.tables.route_table import RouteTable
from nodes.protocol.bodies import KvTable, RegisterBrokerBody, TopicConfigSerializeWrapper, TopicList
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import RegisterBrokerRequestHeader
from nodes.protocol.model import DataVersion, TopicConfig, TopicRouteData, TopicSysFlag
from nodes.protocol.names import ORDER_TOPIC_CONFIG
from nodes.protocol.registry import decode_body, encode_body, encode_header

LISTS = [
    (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, ("plain", "unit", "unit_sub")),
    (RequestCode.GET_TOPICS_BY_CLUSTER, ("plain", "unit", "unit_sub")),
    (RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, ("bk", "c")),
    (RequestCode.GET_UNIT_TOPIC_LIST, ("unit",)),
    (RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, ("unit_sub",)),
    (RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, ("unit_sub",)),
]


class Nameserver:
    def __init__(self, **options):
        self.config = NameserverConfig(**options)
        self.routes, self.kv = RouteTable(), KvConfigManager()
        self.handlers = AdminRequests(self.routes, self.kv, self.config).handlers()
        self.route_requests = RouteRequests(self.routes, self.kv, self.config, started_ms=0)

    def ask(self, code, **fields):
        return self.handlers[code](Command(code, ext_fields=fields))

    def route(self, topic, now_ms=0, **fields):
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext_fields={"topic": topic, **fields})
        return self.route_requests.answer(request, now_ms)

    def register(self, name="bk", zone=None, crc32=None):
        flags = {"plain": 0, "unit": TopicSysFlag.UNIT, "unit_sub": TopicSysFlag.UNIT_SUB}
        topics = {topic: TopicConfig(topic, topic_sys_flag=int(flag)) for topic, flag in flags.items()}
        body = encode_body(RegisterBrokerBody(TopicConfigSerializeWrapper(topics, DataVersion())))
        header = RegisterBrokerRequestHeader(
            name, f"{name}:10911", "c", "ha", 0, body_crc32=body_crc32(body) if crc32 is None else crc32, zone_name=zone
        )
        request = Command(RequestCode.REGISTER_BROKER, ext_fields=encode_header(header), body=body)
        return register_broker(self.routes, self.kv, self.config, request, channel=name, now_ms=0)


@pytest.mark.parametrize(("code", "topics"), LISTS)
def test_topics_are_listed_sorted_and_all_but_the_system_topics_can_be_switched_off(code, topics):
    nameserver, closed = Nameserver(), Nameserver(enable_all_topic_list=False, enable_topic_list=False)
    nameserver.register()

    answer, refused = nameserver.ask(code, cluster="c"), closed.ask(code, cluster="c")

    assert decode_body(TopicList, answer.body).topic_list == topics
    if code == RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS:
        assert refused.code == ResponseCode.SUCCESS
    else:
        assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_ERROR, "disable")


def test_the_order_configuration_reaches_brokers_when_they_register_and_clients_with_the_route():
    nameserver = Nameserver(order_message_enable=True)
    nameserver.register()
    assert decode_body(TopicRouteData, nameserver.route("plain").body).order_topic_conf is None

    nameserver.ask(RequestCode.PUT_KV_CONFIG, namespace=ORDER_TOPIC_CONFIG, key="plain", value="bk:4")

    assert decode_body(TopicRouteData, nameserver.route("plain").body).order_topic_conf == "bk:4"
    assert decode_body(KvTable, nameserver.register().answer.body) == KvTable({"plain": "bk:4"})


def test_the_configuration_survives_in_its_file_and_a_namespace_outlives_its_entries():
    nameserver, again = Nameserver(), Nameserver()
    nameserver.ask(RequestCode.PUT_KV_CONFIG, namespace="n", key="k", value='v"\u00e4')
    again.kv.decode(nameserver.kv.encode())

    assert again.ask(RequestCode.GET_KV_CONFIG, namespace="n", key="k").ext_fields == {"value": 'v"\u00e4'}
    again.ask(RequestCode.DELETE_KV_CONFIG, namespace="n", key="k")
    assert again.ask(RequestCode.GET_KV_CONFIG, namespace="n", key="k").code == ResponseCode.QUERY_NOT_FOUND
    assert again.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace="n").code == ResponseCode.SUCCESS
    assert again.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace="other").code == ResponseCode.QUERY_NOT_FOUND


def test_a_nameserver_that_waits_for_brokers_reports_no_route_until_the_time_has_passed():
    nameserver = Nameserver(need_wait_for_service=True, wait_seconds_for_service=45)
    nameserver.register()

    assert nameserver.route("plain", now_ms=44_999).remark == "name server not ready"
    assert nameserver.route("plain", now_ms=45_000).code == ResponseCode.SUCCESS


def test_who_asks_for_a_zone_gets_only_its_brokers_and_leaves_the_answers_of_others_alone():
    nameserver = Nameserver()
    nameserver.register("near", zone="z1")
    nameserver.register("far", zone="z2")
    zone = {"__ZONE_MODE": "true", "__ZONE_NAME": "z1"}

    everything = nameserver.route("plain").body
    near = decode_body(TopicRouteData, nameserver.route("plain", **zone).body)

    assert [data.broker_name for data in near.broker_datas] == ["near"]
    assert nameserver.route("plain").body == everything


def test_a_registration_with_a_wrong_checksum_is_refused_before_anything_changes():
    nameserver = Nameserver()

    outcome = nameserver.register(crc32=1)

    assert (outcome.answer.code, outcome.answer.remark) == (ResponseCode.SYSTEM_ERROR, "crc32 not match")
    assert outcome.registered is None
    assert nameserver.routes.cluster_info().broker_addr_table == {}


def test_of_several_brokers_on_a_closed_channel_one_is_removed_and_the_order_of_their_coming_does_not_matter():
    found = []
    for names in (("a", "b", "c"), ("c", "b", "a")):
        nameserver = Nameserver()
        for name in names:
            header = RegisterBrokerRequestHeader(name, f"10.0.0.{ord(name)}:10911", "c1", "ha", 0)
            body = RegisterBrokerBody(TopicConfigSerializeWrapper({}, DataVersion()))
            nameserver.routes.register_broker(header, body, channel="shared", now_ms=0)
        found.append(nameserver.routes.on_channel_destroy("shared"))

    assert found[0] == found[1]


def test_a_registration_with_a_body_that_cannot_be_read_is_refused_before_anything_changes():
    nameserver = Nameserver()
    header = RegisterBrokerRequestHeader("bk", "bk:10911", "c", "ha", 0)
    body = zlib.compress(encode_body(RegisterBrokerBody(TopicConfigSerializeWrapper({}, DataVersion()))))
    request = Command(RequestCode.REGISTER_BROKER, ext_fields=encode_header(header), body=body)

    outcome = register_broker(nameserver.routes, nameserver.kv, nameserver.config, request, channel=1, now_ms=0)

    assert (outcome.answer.code, outcome.registered) == (ResponseCode.SYSTEM_ERROR, None)
    assert nameserver.routes.cluster_info().broker_addr_table == {}


@pytest.mark.parametrize(("knows", "timeout_ms", "flag"), [(True, 10_000, True), (False, 120_000, False)])
def test_an_old_nameserver_reads_neither_time_out_nor_acting_flag(knows, timeout_ms, flag):
    nameserver = Nameserver(knows_member_groups=knows)
    header = RegisterBrokerRequestHeader("bk", "bk:10911", "c", "ha", 1, 10_000, enable_acting_master=True)
    topics = {topic: TopicConfig(topic) for topic in ("one", "two")}
    body = encode_body(RegisterBrokerBody(TopicConfigSerializeWrapper(topics, DataVersion())))
    request = Command(RequestCode.REGISTER_BROKER, ext_fields=encode_header(header), body=body)

    register_broker(nameserver.routes, nameserver.kv, nameserver.config, request, channel=1, now_ms=0)

    (live,) = nameserver.routes.live_brokers.values()
    assert live.heartbeat_timeout_ms == timeout_ms
    assert nameserver.routes.cluster_info().broker_addr_table["bk"].enable_acting_master is flag
    # The lowest slave of a group without master publishes topics, unless the nameserver takes it for an old broker.
    assert bool(nameserver.routes.topics) is knows


@pytest.mark.trap("Y3")
def test_a_registration_that_leaves_its_filter_servers_out_removes_those_that_the_broker_had():
    nameserver, seen = Nameserver(), []
    wrapper = TopicConfigSerializeWrapper({}, DataVersion())
    header = RegisterBrokerRequestHeader("bk", "bk:10911", "c", "ha", 0)
    for servers in (("fs:1",), None):
        body = encode_body(RegisterBrokerBody(wrapper, servers))
        request = Command(RequestCode.REGISTER_BROKER, ext_fields=encode_header(header), body=body)
        register_broker(nameserver.routes, nameserver.kv, nameserver.config, request, channel=1, now_ms=0)
        seen.append(tuple(nameserver.routes.filter_servers.values()))

    assert seen == [(("fs:1",),), ()]
