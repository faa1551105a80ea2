"""The address book: which port of one address stands for which port of a node."""

import errno

import pytest

from emulator.guests.address_book import AddressBook, ListenAddress, ListenError
from emulator.guests.remoting.codec import GuestAddresses, RemotingCodec
from emulator.guests.remoting.remoting_command import RemotingDecoder
from emulator.spec import loads
from emulator.spec.model.addresses import NodePorts, node_ports
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from support.every_case import each_case

NODES = (NodePorts("ns-1", "127.1.1.1", (9_876,)), NodePorts("broker-a", "127.1.2.1", (10_911, 10_909, 10_912)))


def book(text="10.0.0.7:9876", guests=("guest",), nodes=NODES):
    return AddressBook(ListenAddress.parse(text), guests, nodes)


def test_the_first_nameserver_has_the_port_and_the_ports_of_a_broker_keep_their_distances():
    page = book().page("guest")
    shown = {address: page.dialable(address, "10.0.0.7") for address in page.ports}
    assert shown == {
        "127.1.1.1:9876": "10.0.0.7:9876",
        "127.1.2.1:10911": "10.0.0.7:9879",
        "127.1.2.1:10909": "10.0.0.7:9877",
        "127.1.2.1:10912": "10.0.0.7:9880",
    }
    assert book().ports == (9_876, 9_877, 9_879, 9_880)


def test_an_address_that_no_one_dials_stays_as_it_is():
    assert book().page("guest").dialable("127.1.10.1:40001", "10.0.0.7") == "127.1.10.1:40001"


def test_on_all_addresses_a_guest_is_given_the_one_that_it_has_dialed():
    page = book("0.0.0.0:9876").page("guest")
    assert page.dialable("127.1.2.1:10911", "172.17.0.1") == "172.17.0.1:9879"
    assert page.dialable("127.1.2.1:10911", "127.0.0.1") == "127.0.0.1:9879"


def test_each_name_has_ports_of_its_own_the_first_those_that_were_asked_for():
    both = book(guests=("shop", "mail"))
    assert [both.page(name).port("127.1.1.1:9876") for name in ("shop", "mail")] == [9_876, 9_881]
    assert both.lines() == [
        "ns-1, for shop      10.0.0.7:9876",
        "broker-a, for shop  10.0.0.7:9879",
        "ns-1, for mail      10.0.0.7:9881",
        "broker-a, for mail  10.0.0.7:9884",
    ]


def test_the_table_of_all_addresses_does_not_name_one():
    head, *rows = book("0.0.0.0:9876").lines()
    assert head.startswith("HOST is ")
    assert rows == ["ns-1      HOST:9876", "broker-a  HOST:9879"]


SCENARIO = """
[scenario]
name = "all"
run_for_s = 60

[nameserver]
count = 2

[[controller]]
name = "controller-1"

[[broker]]
name = "broker-a"
container = "box"

[[broker]]
name = "broker-b"
container = "box"

[[broker]]
name = "broker-c"
start_after_s = 30

[[topic]]
name = "orders"

[[consumer]]
group = "g"
topics = ["orders"]
"""


def test_every_node_that_programs_dial_is_in_the_book_before_it_is_started():
    nodes = node_ports(loads(SCENARIO.replace('[[controller]]\nname = "controller-1"\n', ""), "all"))
    whole = book(nodes=nodes)
    assert [node.node for node in nodes] == ["ns-1", "ns-2", "box", "broker-a", "broker-b", "broker-c"]
    assert len(whole.page("guest").ports) == len(whole.ports) == 2 + 2 + 3 * 3


@each_case(
    ("text", "problem"),
    [
        ("nonsense", "expected HOST:PORT"),
        ("9876", "expected HOST:PORT"),
        ("[::1]:9876", "IPv6 is not there"),
        ("localhost:9876", "numeric IPv4 address"),
        ("127.0.0.1:", "expected a port from 1 to 65535"),
        ("127.0.0.1:0", "expected a port from 1 to 65535"),
        ("127.0.0.1:65536", "expected a port from 1 to 65535"),
        ("127.0.0.1:\u0661", "expected a port from 1 to 65535"),
        ("127.0.0.1:65532", "5 ports are needed from there on"),
    ],
)
def test_a_mistake_is_one_line(text, problem):
    with pytest.raises(ListenError) as caught:
        book(text)
    assert problem in str(caught.value)


def test_the_last_port_is_used():
    assert book("127.0.0.1:65531").ports[-1] == 65_535


@pytest.mark.parametrize(
    ("number", "reported"),
    [
        (errno.EADDRINUSE, "port 9879, for broker-a, is in use; choose another PORT, or end the program that has it"),
        (errno.EADDRNOTAVAIL, "10.0.0.7 is no address of this machine"),
        (errno.EACCES, "port 9879, for broker-a, cannot be had: Permission denied"),
    ],
)
def test_a_port_that_cannot_be_had_is_one_line(number, reported):
    refused = str(book().refused(9_879, OSError(number, "")))
    assert refused.startswith("listen 10.0.0.7:9876: ")
    assert reported in refused


def test_addresses_in_the_header_of_an_answer_are_those_that_the_guest_can_dial():
    page = book().page("guest")
    codec = RemotingCodec(GuestAddresses(lambda address: page.dialable(address, "10.0.0.7")))
    reported = {
        "controllerLeaderAddress": "127.1.1.1:9876",
        "peers": "n0:127.1.1.1:9876;n1:127.1.2.1:10911;",
        "group": "g",
    }
    requested = Command(RequestCode.CONTROLLER_GET_METADATA_INFO)
    decoder = RemotingDecoder()
    decoder.take(codec.encode(requested.answer(ext_fields=reported)))
    assert decoder.next().ext_fields == {
        "controllerLeaderAddress": "10.0.0.7:9876",
        "peers": "n0:10.0.0.7:9876;n1:10.0.0.7:9879;",
        "group": "g",
    }
