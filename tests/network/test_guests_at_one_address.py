"""`listen`: guests reach every node of a live cluster at ports of one address."""

import socket

import pytest

import emulator
from emulator.guests.address_book import ListenError
from emulator.guests.remoting.body_json import decode_json_body
from emulator.network.hub import MemoryCarrier
from emulator.spec import loads
from nodes.protocol import headers
from nodes.protocol.bodies import ClusterInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.model import TopicRouteData
from nodes.protocol.registry import encode_header
from support.free_ports import free_ports
from support.remoting_program import Caller

SCENARIO = """
[scenario]
name = "one-address"
run_for_s = 3600

[network]
delay_ms = 0

[nameserver]
count = 2

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[topic]]
name = "orders"
queues = 1
"""
PORTS = 2 + 2 * 4


def own_address():
    """An address of this machine next to loopback; None if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        return probe.getsockname()[0]


@pytest.fixture(scope="module")
def first():
    return free_ports(PORTS, "0.0.0.0")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, first):
    runs = tmp_path_factory.mktemp("runs")
    with emulator.launch(loads(SCENARIO, "one"), mode="live", runs=runs, listen=f"0.0.0.0:{first}") as live:
        live.until("agree", "within", "60s")
        yield live


@pytest.fixture(params=["loopback", "another address"])
def host(request):
    found = "127.0.0.1" if request.param == "loopback" else own_address()
    if found is None:
        pytest.skip("this machine has no address next to loopback")
    return found


def requested(host, port, code, header=None, body=None):
    caller = Caller(host, port)
    try:
        return caller.ask(code, header, body)
    finally:
        caller.close()


def dialed(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


def test_the_nameservers_are_notified_as_programs_dial_them(cluster, first):
    assert cluster.namesrv_addr == f"127.0.0.1:{first};127.0.0.1:{first + 1}"


def test_frames_of_nodes_need_no_address_at_all(cluster):
    assert isinstance(cluster._engine.session.cluster.world.fabric.carrier, MemoryCarrier)


def test_the_route_leads_to_the_brokers_at_the_address_that_was_dialed(cluster, first, host):
    for nameserver in (first, first + 1):
        answer = requested(
            host, nameserver, RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader("orders")
        )
        route = decode_json_body(TopicRouteData, answer.body)
        brokers = {data.broker_name: data.broker_addrs[0] for data in route.broker_datas}
        assert brokers == {"broker-a": f"{host}:{first + 4}", "broker-b": f"{host}:{first + 8}"}


def test_lists_of_brokers_and_options_name_the_same_addresses(cluster, first, host):
    info = decode_json_body(ClusterInfo, requested(host, first, RequestCode.GET_BROKER_CLUSTER_INFO).body)
    assert info.broker_addr_table["broker-b"].broker_addrs == {0: f"{host}:{first + 8}"}
    options = requested(host, first + 4, RequestCode.GET_BROKER_CONFIG).body.decode()
    assert f"namesrvAddr={host}:{first};{host}:{first + 1}" in options.replace("\\:", ":")
    header = headers.GetBrokerMemberGroupRequestHeader("DefaultCluster", "broker-a")
    group = requested(host, first, RequestCode.GET_BROKER_MEMBER_GROUP, header)
    assert f"{host}:{first + 4}".encode() in group.body


def test_the_id_of_a_message_leads_to_its_broker(cluster, first, host):
    send = headers.SendMessageRequestHeaderV2("p", "orders", "TBW102", 4, 0, 0, 1, 0, "")
    caller = Caller(host, first + 4)
    sent = caller.ask_raw(RequestCode.SEND_MESSAGE_V2, dict(encode_header(send)), b"hello")
    caller.close()
    ip, port, _ = decode_message_id(sent.ext_fields["msgId"])
    assert (".".join(map(str, ip)), port) == (host, first + 4)


def test_the_vip_port_of_a_broker_is_two_below_its_port(cluster, first, host):
    answer = requested(host, first + 2, RequestCode.GET_MAX_OFFSET, headers.GetMaxOffsetRequestHeader("orders", 0))
    assert answer.code == ResponseCode.SUCCESS


def test_a_broker_that_is_down_refuses_connections_and_is_there_again_afterwards(cluster, first, host):
    cluster.kill("broker-b")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, first + 8), 5)
    cluster.heal("all")
    cluster.until("agree", "within", "60s")
    answer = requested(host, first + 8, RequestCode.GET_MAX_OFFSET, headers.GetMaxOffsetRequestHeader("orders", 0))
    assert answer.code == ResponseCode.SUCCESS


def test_a_port_in_use_is_reported_and_nothing_is_started(cluster, first, tmp_path):
    taken = rf"listen 127\.0\.0\.1:{first}: port {first}, for ns-1, is in use"
    with pytest.raises(ListenError, match=taken):
        emulator.launch(loads(SCENARIO, "two"), mode="live", runs=tmp_path, listen=f"127.0.0.1:{first}")
    assert list(tmp_path.iterdir()) == []


def test_an_address_of_another_machine_is_reported_and_nothing_is_started(tmp_path):
    with pytest.raises(ListenError, match=r"192\.0\.2\.1 is no address of this machine"):
        emulator.launch(loads(SCENARIO, "two"), mode="live", runs=tmp_path, listen="192.0.2.1:9876")
    assert list(tmp_path.iterdir()) == []


def test_virtual_time_listens_nowhere(tmp_path):
    from emulator.run import RunError

    with pytest.raises(RunError, match="it listens for guests in mode live only, not in sim"):
        emulator.launch(loads(SCENARIO, "two"), runs=tmp_path, listen="127.0.0.1:9876")


def test_names_have_ports_of_their_own_and_all_are_free_again_at_the_end(tmp_path):
    port = free_ports(2 * PORTS)
    named = loads(SCENARIO.replace("run_for_s", 'guests = ["shop", "mail"]\nrun_for_s'), "named")
    with emulator.launch(named, mode="live", runs=tmp_path, listen=f"127.0.0.1:{port}") as live:
        live.until("agree", "within", "60s")
        shop, mail = (live.namesrv_addr_of(name).split(";")[0] for name in ("shop", "mail"))
        assert (shop, mail) == (f"127.0.0.1:{port}", f"127.0.0.1:{port + PORTS}")
        live.cut("mail", "ns-1")
        assert requested(*dialed(shop), RequestCode.GET_BROKER_CLUSTER_INFO).code == ResponseCode.SUCCESS
        unheard = Caller(*dialed(mail), patience_s=0.3)
        with pytest.raises(TimeoutError):
            unheard.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        unheard.close()
    assert free_ports(2 * PORTS) == port
