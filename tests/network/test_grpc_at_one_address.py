"""`grpc`: clients of RocketMQ 5 reach the proxies of a live cluster at ports of an address that somebody chose."""

from contextlib import closing

import grpc
import pytest

import emulator
from emulator.guests.address_book import ListenError
from emulator.guests.grpc.messages import message_class
from emulator.spec import loads
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.v2.enums import Code
from support.dialed_proxy import METADATA, OPTIONS, method
from support.free_ports import free_ports
from support.remoting_program import Caller

SCENARIO = """
[scenario]
name = "chosen"
guests = ["shop", "mail"]
run_for_s = 3600

[network]
delay_ms = 0

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[proxy]]
name = "proxy-1"

[[proxy]]
name = "proxy-2"

[[topic]]
name = "orders"
queues = 1
"""
LISTEN_PORTS = 1 + 4 + 2
"""Of one guest: the nameserver's, the broker's, and the remoting ports of proxies."""


def has_route(address, timeout_s=10):
    """Whether a proxy answers at this address, and has a route."""
    host, _, port = address.partition(":")
    endpoints = {"scheme": 1, "addresses": [{"host": host, "port": int(port)}]}
    query = message_class("QueryRouteRequest")(topic={"name": "orders"}, endpoints=endpoints)
    with closing(grpc.insecure_channel(address, OPTIONS)) as channel:
        response = method(channel, "QueryRoute")(query, timeout=timeout_s, metadata=METADATA)
    return response.status.code == Code.OK and len(response.message_queues) == 1


def nameserver_answers(address):
    host, _, port = address.partition(":")
    with closing(Caller(host, int(port))) as caller:
        return caller.ask(RequestCode.GET_BROKER_CLUSTER_INFO).code == ResponseCode.SUCCESS


@pytest.fixture(scope="module", params=["alone", "with listen"])
def cluster(request, tmp_path_factory):
    first = free_ports(4 + 2 * LISTEN_PORTS)
    options = {"grpc": f"127.0.0.1:{first}"}
    if request.param == "with listen":
        options["listen"] = f"127.0.0.1:{first + 4}"
    runs = tmp_path_factory.mktemp("runs")
    with emulator.launch(loads(SCENARIO, "chosen"), mode="live", runs=runs, **options) as live:
        live.until("agree", "within", "60s")
        live.first = first
        yield live


def test_each_guest_has_ports_of_its_own_one_for_each_proxy(cluster):
    first = cluster.first
    assert cluster.endpoints("shop") == f"127.0.0.1:{first};127.0.0.1:{first + 1}"
    assert cluster.endpoints("mail") == f"127.0.0.1:{first + 2};127.0.0.1:{first + 3}"


@pytest.mark.parametrize("number", range(4))
def test_a_proxy_answers_there(cluster, number):
    assert has_route(f"127.0.0.1:{cluster.first + number}")


def test_a_program_is_the_guest_whose_port_it_dials(cluster):
    cluster.cut("mail", "proxy-1")
    assert has_route(f"127.0.0.1:{cluster.first}")
    with pytest.raises(grpc.RpcError, match=r"DEADLINE_EXCEEDED|RST_STREAM"):
        has_route(f"127.0.0.1:{cluster.first + 2}", timeout_s=0.5)
    cluster.heal("all")


def test_other_nodes_are_where_they_are_without_it(cluster):
    assert nameserver_answers(cluster.namesrv_addr_of("shop"))


def test_a_proxy_that_is_down_refuses_connections_and_is_there_again_afterwards(cluster):
    address = f"127.0.0.1:{cluster.first + 1}"
    cluster.kill("proxy-2")
    with pytest.raises(grpc.RpcError, match="onnection refused"):
        has_route(address)
    cluster.heal("all")
    cluster.until("agree", "within", "60s")
    assert has_route(address)


def refusal(tmp_path, text=SCENARIO, **options):
    with pytest.raises(ListenError) as caught:
        emulator.launch(loads(text, "refused"), mode="live", runs=tmp_path, **options)
    assert list(tmp_path.iterdir()) == [], "something was started"
    return str(caught.value)


def test_without_a_proxy_nothing_would_answer(tmp_path):
    text = SCENARIO.replace('[[proxy]]\nname = "proxy-1"\n', "").replace('[[proxy]]\nname = "proxy-2"\n', "")
    found = refusal(tmp_path, text, grpc="127.0.0.1:8081")
    assert found == "grpc 127.0.0.1:8081: the scenario has no proxy, which would serve gRPC there"


def test_an_address_that_is_none_names_the_option(tmp_path):
    assert refusal(tmp_path, grpc="8081").startswith("grpc: expected HOST:PORT")
    assert refusal(tmp_path, grpc="127.0.0.1:0").startswith("grpc: expected a port from 1 to 65535")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_port_is_for_one_node(tmp_path, host):
    found = refusal(tmp_path, grpc=f"{host}:9878", listen="127.0.0.1:9876")
    expected = "port 9879 is for proxy-2 and, by listen 127.0.0.1:9876, for broker-a; choose another PORT"
    assert found == f"grpc {host}:9878: {expected}" or found.startswith(
        f"grpc {host}:9878: port 9878 is for proxy-1 and"
    )


def test_all_addresses_of_the_machine_have_no_port_of_a_node_at_its_own(tmp_path):
    found = refusal(tmp_path, grpc="0.0.0.0:8081")
    expected = "port 8081 is that of proxy-1 at its own address, too; choose another PORT or HOST, or listen as well"
    assert found == f"grpc 0.0.0.0:8081: {expected}"
