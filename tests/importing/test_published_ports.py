"""Ports that containers and pods publish become a private network, and brokers register what their files say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.importing.files import ConfigurationFile, read_configuration
from emulator.importing.published import HOST, numbered
from emulator.importing.scenario_text import scenario_text
from emulator.importing.settings import PublishedPort
from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check

SERVICES = """
services:
  namesrv:
    command: sh mqnamesrv
    ports: ["9876:9876"]
  broker:
    command: sh mqbroker {flags} -c /opt/broker.conf
    ports: {ports}
    volumes: ["./broker.conf:/opt/broker.conf"]
    {more}
"""


def imported(conf="", ports="['10911:10911']", flags="", more="", text=SERVICES):
    of_compose = text.format(flags=flags, ports=ports, more=more)
    cluster = read_configuration(
        [ConfigurationFile("compose.yaml", of_compose.encode())],
        None,
        lambda _, path: f"brokerName = broker-a\n{conf}\n".encode() if path == "broker.conf" else None,
    )
    return cluster, loads(scenario_text(cluster, "imported", ["compose.yaml"]), "imported.toml")


def publish(scenario):
    return [dict(network.publish) for network in scenario.private_networks]


def test_published_ports_are_open_at_the_machine_of_the_containers():
    _, scenario = imported()
    (network,) = scenario.private_networks

    assert (network.name, network.nodes) == ("docker", ("ns-1", "broker-a"))
    assert network.publish == {f"{HOST}:9876": "ns-1:9876", f"{HOST}:10911": "broker-a:10911"}
    assert scenario.brokers[0].config.broker_ip1 == ""
    assert [warning.name for warning in check(scenario)] == ["unreachable-address"]


def test_broker_ip1_is_the_address_of_that_machine():
    _, scenario = imported("brokerIP1 = 10.0.0.1")

    assert publish(scenario) == [{"10.0.0.1:9876": "ns-1:9876", "10.0.0.1:10911": "broker-a:10911"}]
    assert scenario.brokers[0].config.broker_ip1 == "10.0.0.1"
    assert check(scenario) == ()


@pytest.mark.parametrize("name", ["host.docker.internal", "${HOST_IP}"])
def test_a_name_in_broker_ip1_stands_for_that_machine(name):
    cluster, scenario = imported(f"brokerIP1 = {name}")
    (broker,) = scenario.brokers

    assert broker.config.broker_ip1 == HOST
    (verdict,) = [item for node in cluster.nodes for item in node.verdicts if item.setting.name == "brokerIP1"]
    assert verdict.is_warning
    assert verdict.note.startswith(f"taken as {HOST}, the machine at which its ports are published, for which")


def test_the_last_broker_ip1_counts():
    _, scenario = imported("brokerIP1 = 10.0.0.1\nbrokerIP1 = 10.0.0.2")

    assert scenario.brokers[0].config.broker_ip1 == "10.0.0.2"


def test_ports_of_a_process_belong_to_the_node_that_listens_there():
    _, scenario = imported(ports="['10911:10911', '18081:8081', '7000:7000']", flags="--enable-proxy")

    assert publish(scenario)[0] == {
        f"{HOST}:9876": "ns-1:9876",
        f"{HOST}:10911": "broker-a:10911",
        f"{HOST}:7000": "broker-a:7000",
        f"{HOST}:18081": "proxy-1:8081",
    }
    assert "its routes name 192.168.0.10:8081, which leads to no node" in "".join(
        item.line() for item in check(scenario)
    )


def test_a_broker_with_the_address_of_its_machine_is_outside_and_reaches_the_others():
    _, scenario = imported("brokerIP1 = 10.0.0.1", more="network_mode: host")
    (network,) = scenario.private_networks

    assert (network.nodes, network.reached_from) == (("ns-1",), ("broker-a",))
    assert scenario.brokers[0].config.broker_ip1 == ""


@pytest.mark.parametrize("ports", ["[]", "['10911']"])
def test_without_published_ports_every_node_reaches_every_other_one(ports):
    text = SERVICES.replace('    ports: ["9876:9876"]\n', "")
    _, scenario = imported("brokerIP1 = 10.0.0.1", ports=ports, text=text)

    assert scenario.private_networks == ()
    assert scenario.brokers[0].config.broker_ip1 == ""


def test_of_several_replicas_the_first_has_a_port_and_a_line_says_so():
    cluster, scenario = imported(more="deploy: {replicas: 2}", conf="brokerName = $HOSTNAME")
    brokers = [broker.name for broker in scenario.brokers]

    assert publish(scenario)[0][f"{HOST}:10911"] == f"{brokers[0]}:10911"
    second = next(node for node in cluster.nodes if node.name == brokers[1])
    assert f"ports: 10911:10911 leads to {brokers[0]}, and not to it" in second.notes


@pytest.mark.parametrize(
    ("published", "target", "expected"),
    [
        ("10911", "10911", [(10_911, 10_911)]),
        ("20909-20911", "10909-10911", [(20_909, 10_909), (20_910, 10_910), (20_911, 10_911)]),
        ("20909-20910", "10911", []),
        ("0", "10911", []),
        ("70000", "10911", []),
        ("grpc", "10911", []),
        ("1-60000", "1-60000", []),
    ],
)
def test_which_numbers_a_published_port_has(published, target, expected):
    assert list(numbered([PublishedPort(published, target, "ports")])) == expected


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_text_is_read_as_ports_or_none(published, target):
    for outside, inside in numbered([PublishedPort(published, target, "ports")]):
        assert 1 <= outside <= 65_535
        assert 1 <= inside <= 65_535
