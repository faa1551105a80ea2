"""Private networks: who reaches which address, where published ports lead to, and what a dial says of all others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.spec.model.networks import AddressTranslation
from emulator.testing.worlds import PORT, VIRTUAL, RecordingHandler, add_host, execute_world, listening, process_of
from nodes.host import ConnectError
from support.every_case import each_case

INSIDE, NEIGHBOUR, OTHER, OUTSIDE, ADMINISTRATOR = (
    "127.1.2.1",
    "127.1.2.2",
    "127.1.3.1",
    "127.1.10.1",
    "127.1.193.1",
)
HOST = "192.168.0.10"
NETWORKS = {INSIDE: "docker", NEIGHBOUR: "docker", OTHER: "kubernetes"}
PORTS = {(HOST, 30_911): (INSIDE, PORT), (HOST, 9_876): (OTHER, 9_876)}


def translation():
    return AddressTranslation(dict(NETWORKS), PORTS, ADMINISTRATOR)


@each_case(
    ("source", "port", "leads_to", "problem"),
    [
        (OUTSIDE, (INSIDE, PORT), ("", PORT), "is an address inside of docker"),
        (OTHER, (INSIDE, PORT), ("", PORT), "is an address inside of docker"),
        (NEIGHBOUR, (INSIDE, PORT), (INSIDE, PORT), ""),
        (INSIDE, (INSIDE, PORT), (INSIDE, PORT), ""),
        (INSIDE, (OUTSIDE, PORT), (OUTSIDE, PORT), ""),
        (ADMINISTRATOR, (INSIDE, PORT), (INSIDE, PORT), ""),
        (OUTSIDE, (HOST, 30_911), (INSIDE, PORT), ""),
        (NEIGHBOUR, (HOST, 30_911), (INSIDE, PORT), ""),
        (OUTSIDE, (HOST, PORT), (HOST, PORT), "leads to no node: the port is not published"),
        (OUTSIDE, ("10.9.9.9", PORT), ("10.9.9.9", PORT), "is the address of no machine"),
    ],
)
def test_where_a_connection_leads(source, port, leads_to, problem):
    assert translation().target(source, port) == (leads_to, problem)


@each_case(
    ("source", "address", "known_to"),
    [
        (OUTSIDE, f"{INSIDE}:{PORT}", f"{HOST}:30911"),
        (NEIGHBOUR, f"{INSIDE}:{PORT}", f"{INSIDE}:{PORT}"),
        (OUTSIDE, f"{INSIDE}:{PORT + 1}", f"{INSIDE}:{PORT + 1}"),
        (OTHER, f"{INSIDE}:{PORT}", f"{HOST}:30911"),
        (INSIDE, f"{OUTSIDE}:{PORT}", f"{OUTSIDE}:{PORT}"),
    ],
)
def test_by_which_address_a_node_is_known(source, address, known_to):
    assert translation().known_to(source, address) == known_to


def test_a_node_that_is_added_lives_next_to_its_neighbour():
    grown = translation()
    grown.place_next_to("127.1.200.1", INSIDE)
    grown.place_next_to("127.1.200.2", OUTSIDE)

    assert grown.target("127.1.200.1", (INSIDE, PORT))[1] == ""
    assert grown.target("127.1.200.2", (INSIDE, PORT))[1] != ""


machines = st.sampled_from([INSIDE, NEIGHBOUR, OTHER, OUTSIDE, ADMINISTRATOR])


@given(machines, machines, st.integers(1, 65_535))
def test_what_a_machine_is_known_by_leads_to_it_or_is_its_own_address(source, target, number):
    known = translation()
    ip, _, given_number = known.known_to(source, f"{target}:{number}").rpartition(":")
    leads_to, problem = known.target(source, (ip, int(given_number)))

    assert leads_to == (target, number) or (problem and (ip, int(given_number)) == (target, number))


@given(machines, machines, st.integers(1, 65_535))
def test_without_private_networks_every_connection_leads_where_it_was_dialed(source, target, number):
    assert AddressTranslation().target(source, (target, number)) == ((target, number), "")
    assert AddressTranslation().known_to(source, f"{target}:{number}") == f"{target}:{number}"


async def attempt(world, client, address):
    process = process_of(client)
    try:
        await process.connect(address, RecordingHandler(process), 3_000)
    except ConnectError as error:
        return world.timeline.now_ns // 1_000_000, str(error)
    return world.timeline.now_ns // 1_000_000, "connected"


@pytest.mark.parametrize("mode", VIRTUAL)
@pytest.mark.parametrize(
    ("address", "ends", "row"),
    [
        (f"{HOST}:30911", (20, "connected"), ("connected", "server", "")),
        (
            "127.1.1.1:10911",
            (3_000, "127.1.1.1:10911 did not answer"),
            ("connect_lost", "127.1.1.1:10911", "127.1.1.1:10911 is an address inside of docker"),
        ),
        (
            f"{HOST}:10911",
            (20, f"{HOST}:10911 refused the connection"),
            ("refused", f"{HOST}:10911", f"{HOST}:10911 leads to no node: the port is not published"),
        ),
        (
            "10.9.9.9:10911",
            (3_000, "10.9.9.9:10911 did not answer"),
            ("connect_lost", "10.9.9.9:10911", "10.9.9.9:10911 is the address of no machine"),
        ),
    ],
)
def test_how_a_dial_from_outside_ends_and_what_the_trace_says_of_it(mode, address, ends, row):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        world.fabric.translate(AddressTranslation({server.ip: "docker"}, {(HOST, 30_911): (server.ip, PORT)}))
        return await attempt(world, add_host(world, 2, "client"), address)

    executed = execute_world(main, mode=mode, delay_ms=10)

    assert executed.result == ends
    (found,) = executed.trace.select("rpc", src="client", event=row[0])
    assert (found["dst"], found["detail"]) == row[1:]
