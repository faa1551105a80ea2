"""Guests with names: reported apart by the address that they dial."""

import contextlib
import socket

import pytest

from emulator.guests.address_book import LOOPBACK
from emulator.guests.listeners import LoopbackGuestListeners
from emulator.network.loopback import LoopbackCarrier
from support.every_case import each_case


@pytest.fixture
def guest_listeners():
    carrier = LoopbackCarrier()
    yield LoopbackGuestListeners(carrier, ("shop", "mail")).hosts
    carrier.release()


def test_each_name_has_a_block_of_its_own_and_each_node_a_place_in_it(guest_listeners):
    shop, mail = guest_listeners["shop"], guest_listeners["mail"]

    def dialed(guest, ip):
        return guest.dialable(f"{ip}:9876", LOOPBACK).split(".", 2)[2]

    assert [dialed(shop, "127.1.1.1"), dialed(shop, "127.1.2.1")] == ["1.1:9876", "1.2:9876"]
    assert [dialed(mail, "127.1.2.1"), dialed(mail, "127.1.1.1")] == ["2.2:9876", "2.1:9876"]
    assert (shop.node, mail.node) == ("shop", "mail")
    assert shop.ip != mail.ip


def test_only_so_many_nodes_have_a_place(guest_listeners):
    for number in range(254):
        guest_listeners["shop"].dialable(f"127.1.2.{number}:9876", LOOPBACK)
    with pytest.raises(ValueError, match="254 nodes at most"):
        guest_listeners["shop"].dialable("127.1.3.1:9876", LOOPBACK)


SCENARIO = """
[scenario]
name = "named"
run_for_s = 3600
guests = ["shop", "mail"]

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[fault]]
do = "cut mail broker-a"
at_s = 0
"""


def broker_for(guest, cluster):
    """Where a guest finds broker-a, the second node of its block."""
    return cluster.namesrv_addr_of(guest).partition(":")[0].removesuffix(".1") + ".2"


def test_clusters_side_by_side_have_guests_of_the_same_names_at_addresses_of_their_own(tmp_path):
    import emulator
    from emulator.cluster.cluster import NoAddressError
    from emulator.spec import loads

    scenario = loads(SCENARIO, "named")
    with (
        emulator.launch(scenario, mode="live", runs=tmp_path) as item,
        emulator.launch(scenario, mode="live", runs=tmp_path) as other,
    ):
        for cluster in (item, other):
            cluster.until("agree", "within", "60s")
        addresses = [cluster.namesrv_addr_of(name) for cluster in (item, other) for name in ("shop", "mail")]
        for address in addresses:
            host, _, port = address.partition(":")
            socket.create_connection((host, int(port)), 5).close()
        with pytest.raises(NoAddressError, match="no guest is called shap; the scenario has shop, mail"):
            item.namesrv_addr_of("shap")
    assert len(dict.fromkeys(addresses)) == 4


def test_a_fault_of_one_guest_leaves_the_other_alone_and_the_trace_names_both(tmp_path):
    import emulator
    from emulator.spec import loads
    from emulator.trace.schema import RPC
    from support.run_rows import table_rows

    scenario = loads(SCENARIO, "named")
    with emulator.launch(scenario, mode="live", runs=tmp_path) as cluster:
        cluster.until("agree", "within", "60s")
        assert cluster.links().lines == ("broker-a -> mail: cut-1", "mail -> broker-a: cut-1")
        requested = b'{"code":26,"flag":0,"opaque":7,"extFields":{}}'
        frame = (4 + len(requested)).to_bytes(4, "big") + len(requested).to_bytes(4, "big") + requested
        answered = {}
        for name in ("shop", "mail"):
            with socket.create_connection((broker_for(name, cluster), 10_911), 5) as connection:
                connection.settimeout(1)
                connection.sendall(frame)
                with contextlib.suppress(TimeoutError):
                    answered[name] = b'"opaque":7' in connection.recv(65_536)
        path = cluster.path
    assert answered == {"shop": True}
    frames = [(row["src"], row["event"]) for row in table_rows(path, RPC, ("src", "event", "code"), ("code", "==", 26))]
    assert ("shop", "delivered") in frames
    assert ("mail", "dropped") in frames


def test_guests_live_in_real_time(tmp_path):
    from emulator.run import RunError, run_scenario
    from emulator.spec import loads

    with pytest.raises(RunError, match="its guests live in real time: it runs in mode live only, not in sim"):
        run_scenario(loads(SCENARIO, "named"), runs=tmp_path)
    assert list(tmp_path.iterdir()) == []


@each_case(
    ("change", "problem"),
    [
        ('guests = ["broker-a"]', '"broker-a" is already at'),
        ('guests = ["a", "a"]', '"a" is already at'),
        ('guests = ["guest", "mail", "shop"]', 'expected another name than "guest"'),
        ("guests = [1]", "expected a list of names of nodes"),
        ('guests = ["shop"]', 'unknown node "mail"'),
    ],
)
def test_a_mistake_in_the_names_is_one_line(change, problem):
    from emulator.spec import SpecError, loads

    with pytest.raises(SpecError) as caught:
        loads(SCENARIO.replace('guests = ["shop", "mail"]', change), "named")
    assert problem in str(caught.value)


def test_the_process_of_a_guest_is_not_ours_to_kill():
    from emulator.spec import SpecError, loads

    with pytest.raises(SpecError, match="expected a node: mail is a guest"):
        loads(SCENARIO.replace("cut mail broker-a", "kill mail"), "named")
