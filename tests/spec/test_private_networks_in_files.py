"""`[[private_network]]` and `brokerIP1` in a scenario file: there and back, one line for each mistake, and warnings."""

import attrs
import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.model.addresses import translation_of
from emulator.spec.reading.differences import differences
from emulator.spec.warnings.harmful_settings import check
from support.every_case import each_case
from support.mistakes import only_mistake

HOST = "192.168.0.10"
FILE = """
[scenario]
name = "s"
run_for_s = 10
%s
[nameserver]
count = 1
[[private_network]]
name = "docker"
nodes = ["ns-1", "broker-a"%s]
publish = { "192.168.0.10:9876" = "ns-1:9876", "192.168.0.10:%s" = "broker-a:%s" }
[[broker]]
name = "broker-a"
options = { %s }
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1"]
topics = ["orders"]
[[producer]]
name = "shop"
group = "shop"
topic = "orders"
"""


def text(options="", published="10911", inside="10911", more="", head=""):
    return FILE % (head, more, published, inside, options)


def mistake(of):
    with pytest.raises(SpecError) as error:
        loads(of, "s.toml")
    return only_mistake(error.value).removeprefix("s.toml: ")


def warned(of):
    return [warning.line() for warning in check(loads(of, "s.toml")) if warning.name == "unreachable-address"]


def test_what_is_written_is_read_again_as_it_was():
    scenario = loads(text(f'brokerIP1 = "{HOST}"'), "s.toml")

    assert from_dict(to_dict(scenario)) == scenario
    assert scenario.brokers[0].config.broker_ip1 == HOST
    assert translation_of(scenario).ports == {
        (HOST, 9_876): ("127.1.1.1", 9_876),
        (HOST, 10_911): ("127.1.2.1", 10_911),
    }


@each_case(
    ("of", "reported"),
    [
        (text(more=', "broker-b"'), 'private_network[0].nodes[2]: unknown node "broker-b"'),
        (text(more=', "ns-1"'), "private_network[0].nodes[2]: expected a node in one network, ns-1 is in docker"),
        (text(published="9876"), "not TOML"),
        (text().replace("broker-a:10911", "shop:10911"), 'private_network[0].publish: unknown node "shop"'),
        (text().replace("broker-a:10911", "broker-a"), 'private_network[0].publish: expected a table such as { "192'),
        (text(published="70000"), 'private_network[0].publish: expected a table such as { "192'),
        (text().replace(HOST, "127.0.0.1"), "private_network[0].publish: expected IP:PORT with an address of your own"),
        (text().replace(HOST, "localhost"), "private_network[0].publish: expected IP:PORT with an address of your own"),
        (
            text().replace('"docker"', '"ns-1"'),
            'private_network[0].name: expected a name of its own, "ns-1" is already',
        ),
        (text("brokerIP1 = 'localhost'"), "broker[0].options.brokerIP1: expected an IPv4 address, or empty"),
        (text(head='guests = ["app"]'), "scenario.guests: expected none with a private_network"),
    ],
)
def test_a_mistake_is_reported_in_one_line_with_its_key(of, reported):
    if reported == "not TOML":
        with pytest.raises(SpecError, match="TOML"):
            loads(of, "s.toml")
    else:
        assert mistake(of).startswith(reported)


def test_two_scenarios_that_differ_in_a_private_network_differ():
    first, second = (loads(of, "s.toml") for of in (text(), text(more=', "c1"')))

    assert [(item.section, item.names, item.key) for item in differences(first, second)] == [
        ("private_network", ("docker",), "nodes")
    ]


def test_check_foresees_that_a_slave_does_not_reach_its_master():
    slave = '[[broker]]\nname = "broker-a"\nid = 1\n[[topic]]\n'
    found = warned(text(f'brokerIP1 = "{HOST}"', published="10921").replace("[[topic]]\n", slave))

    assert "c1, shop, broker-a-s1 cannot connect with it" in found[0]


def test_a_port_is_published_once():
    second = '[[private_network]]\nname = "other"\nnodes = ["c1"]\npublish = { "192.168.0.10:10911" = "c1:1" }\n'

    assert mistake(text() + second).startswith(
        "private_network[1].publish: expected a port that is published once, 192.168.0.10:10911 leads to broker-a"
    )


@each_case(
    ("of", "reported"),
    [
        (text(f'brokerIP1 = "{HOST}"'), None),
        (text(more=', "c1", "shop"'), None),
        (
            text(),
            "broker-a: it registers 127.1.2.1:10911 (brokerIP1), which is an address inside of docker: c1, shop",
        ),
        (text(more=', "shop"'), "inside of docker: c1 cannot connect with it; brokerIP1 = 192.168.0.10"),
        (text(published="10921"), "publish its listenPort 10911 under the same number"),
        (
            text(f'brokerIP1 = "{HOST}"', published="10921"),
            f"it registers {HOST}:10911 (brokerIP1), which leads to no node: the port is not published",
        ),
        (
            text(f'brokerIP1 = "{HOST}"', inside="10909"),
            f"it registers {HOST}:10911 (brokerIP1), which leads to broker-a:10909",
        ),
        (text('brokerIP1 = "10.9.9.9"'), "it registers 10.9.9.9:10911 (brokerIP1), which is the address of no machine"),
    ],
)
def test_check_foresees_addresses_that_lead_nowhere(of, reported):
    found = warned(of)

    assert len(found) == (reported is not None)
    assert all(reported in line for line in found)


def test_check_foresees_nameservers_that_are_published_nowhere():
    of = text(f'brokerIP1 = "{HOST}"').replace('"192.168.0.10:9876" = "ns-1:9876", ', "")

    (line,) = warned(of)
    assert line.startswith("unreachable-address: ns-1: 127.1.1.1:9876 is an address inside of docker, and its port")
    assert line.endswith(" is not published: c1, shop cannot connect with it, and have no routes")


@pytest.mark.parametrize(("given", "number"), [("false", 1), ("true", 0)])
def test_check_foresees_routes_of_proxies_with_the_port_inside(given, number):
    of = """
[scenario]
name = "s"
run_for_s = 10
[nameserver]
count = 1
[[private_network]]
name = "kubernetes"
nodes = ["ns-1", "broker-a", "proxy-1"]
publish = { "192.168.0.10:30081" = "proxy-1:8081" }
[[broker]]
name = "broker-a"
[[proxy]]
name = "proxy-1"
options = { useEndpointPortFromRequest = %s }
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1"]
topics = ["orders"]
mode = "push5"
"""
    found = warned(of % given)

    assert len(found) == number
    assert all("proxy-1: its routes name 192.168.0.10:8081, which leads to no node" in line for line in found)


def test_an_administrator_and_consumers_that_scaling_adds_are_where_the_others_are():
    scenario = loads(text(more=', "c1"'), "s.toml")
    translation = translation_of(scenario)

    assert attrs.evolve(translation).closed_to("127.1.193.1", "127.1.2.1") == ""
    assert translation.closed_to("127.1.100.1", "127.1.2.1") == "docker"
