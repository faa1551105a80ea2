"""Warnings about lists of nameservers of which some nodes have a part only."""

from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check
from support.every_case import each_case

FILE = """
[scenario]
name = "lists"
run_for_s = 60
[[nameserver]]
name = "ns-1"
[[nameserver]]
name = "ns-2"
[address_server]
nameservers = ["ns-1"]
[[domain]]
name = "both"
nodes = ["ns-1", "ns-2"]
[[domain]]
name = "first"
nodes = ["ns-1"]
[[broker]]
name = "broker-a"
options = { %s }
[[broker]]
name = "broker-b"
options = { %s }
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1"]
topics = ["orders"]
options = { %s }
"""
LOOKS_UP = 'namesrvAddr = "both:9876", fetchNameSrvAddrByDnsLookup = true'
RESTART = '[[fault]]\ndo = "restart broker-a with {namesrvAddr = ns-1}"\nat_s = 30\n'


def warnings(a="", b="", client="", more=""):
    """(name, where) of each warning."""
    found = check(loads(FILE % (a, b, client) + more, "lists.toml"))
    return [(warning.name, warning.where) for warning in found]


@each_case(
    ("a", "b", "client"),
    [
        ("", "", ""),
        ('namesrvAddr = "ns-2;ns-1"', "", 'namesrvAddr = "ns-2"'),
        (LOOKS_UP, 'namesrvAddr = "ns-1;ns-2"', 'namesrvAddr = "both:9876"'),
        ("fetchNamesrvAddrByAddressServer = true", 'namesrvAddr = "first:9876"', 'namesrvAddr = "ns-1"'),
    ],
)
def test_brokers_that_register_with_the_same_nameservers_are_fine_however_they_know_them(a, b, client):
    assert warnings(a, b, client) == []


def test_brokers_with_different_nameservers_are_warned_of_also_if_a_restart_makes_them_so():
    differ = ("nameserver-lists-differ", "broker-a, broker-b")
    assert warnings('namesrvAddr = "ns-1"') == [differ]
    assert warnings("fetchNamesrvAddrByAddressServer = true") == [differ]
    assert warnings(more=RESTART) == [differ]
    assert warnings(more=RESTART + RESTART.replace("broker-a", "broker-b")) == [("nameserver-without-brokers", "g")]


def test_a_client_whose_nameserver_no_broker_knows_is_warned_of():
    both = 'namesrvAddr = "ns-1"'
    assert warnings(both, both) == [("nameserver-without-brokers", "g")]
    assert warnings(both, both, both) == []


def test_a_broker_that_takes_a_domain_name_for_one_nameserver_is_warned_of():
    assert warnings('namesrvAddr = "both:9876"') == [("domain-name-without-look-up", "broker-a")]
