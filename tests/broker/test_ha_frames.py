import pytest

from nodes.broker.tables.ha.ha_frames import (
    HAConnectionState,
    Transfer,
    encode_report,
    encode_transfer,
    parse_report,
    parse_transfer,
    refuse_transfer,
    start_position,
)
from nodes.broker.tables.ha.ha_in_sync import HaWait
from nodes.protocol.command import Command
from nodes.protocol.model import Message
from nodes.rpc.codec import decode, encode
from support.every_case import each_case

READY, TRANSFER, SHUTDOWN = HAConnectionState.READY, HAConnectionState.TRANSFER, HAConnectionState.SHUTDOWN
PIECE = Transfer(7, 300, (Message("t", 1, 2, 300, 4, 5, b"body", {"TAGS": "a"}), Message("u", 0, 0, 450, 4, 5, b"")))


def over_the_wire(command):
    return decode(encode(command)[4:])


@pytest.mark.parametrize("transfer", [PIECE, Transfer(0, 0)])
def test_a_piece_of_the_log_and_a_heartbeat_arrive_as_they_were(transfer):
    command = over_the_wire(encode_transfer(transfer))
    assert parse_transfer(command) == transfer
    assert command.is_oneway
    assert parse_report(command) is None


def test_a_report_arrives_as_it_was():
    command = over_the_wire(encode_report(1 << 40))
    assert parse_report(command) == 1 << 40
    assert command.is_oneway
    assert parse_transfer(command) is None


@each_case("text", ["-1", "", "x", None, [1]])
def test_an_offset_that_is_none_makes_no_frame(text):
    assert parse_report(Command(100_001, ext_fields={"offset": text})) is None
    assert parse_transfer(Command(100_002, ext_fields={"offset": text})) is None


def test_a_body_that_holds_no_messages_makes_no_frame():
    assert parse_transfer(Command(100_002, ext_fields={"offset": "0"}, body=b"\xc1")) is None


@each_case(
    ("transfer", "own_end", "reason"),
    [
        (Transfer(7, 300), 300, None),
        (Transfer(7, 300), 0, None),
        (PIECE, 300, None),
        (Transfer(7, 300), 299, "the master pushes offset 300, the own log ends at 299"),
        (Transfer(7, 300), 301, "the master pushes offset 300, the own log ends at 301"),
        (Transfer(7, 0), 300, "the master pushes offset 0, the own log ends at 300"),
        (Transfer(8, 300), 300, "the network lost a piece"),
        (Transfer(8, 300), 0, "the network lost a piece"),
        (None, 300, "not a frame of a master"),
    ],
)
def test_a_slave_takes_what_begins_where_its_log_ends_and_an_empty_one_takes_anything(transfer, own_end, reason):
    assert refuse_transfer(transfer, expected_ordinal=7, max_phy_offset=own_end) == reason


@each_case(
    ("requested_for", "masters_end", "start"),
    [(0, 0, 0), (0, 999, 0), (0, 1_000, 1_000), (0, 2_500, 2_000), (1, 2_500, 1), (3_000, 2_500, 3_000)],
)
def test_a_master_starts_where_the_slave_asks_and_for_an_empty_slave_at_its_last_file(
    requested_for, masters_end, start
):
    assert start_position(requested_for, max_phy_offset=masters_end, mapped_file_size=1_000) == start


@each_case(
    ("state", "now_ms", "result"),
    [(TRANSFER, 99_999, True), (READY, 10_000, None), (READY, 10_001, False), (SHUTDOWN, 99_999, None)],
)
def test_a_slave_that_waits_looks_at_the_state_of_its_client(state, now_ms, result):
    wait = HaWait("10.0.0.1", last_check_ms=0)
    wait.check_client(state, now_ms)
    assert wait.result is result


def test_a_state_that_is_neither_ready_nor_transfer_sets_the_clock_of_a_slaves_wait_back():
    wait = HaWait("10.0.0.1", last_check_ms=0)
    wait.check_client(SHUTDOWN, 9_000)
    wait.check_client(READY, 19_000)
    assert wait.result is None
    wait.check_client(READY, 19_001)
    assert wait.result is False


@each_case(
    ("remote_ips", "now_ms", "result"),
    [
        (["10.0.0.9", "10.0.0.1"], 99_999, True),
        (["10.0.0.9", "10.0.0.11"], 10_000, None),
        (["10.0.0.9", "10.0.0.11"], 10_001, False),
        ([], 10_001, False),
    ],
)
def test_a_master_that_waits_looks_for_a_connection_from_that_address(remote_ips, now_ms, result):
    wait = HaWait("10.0.0.1", last_check_ms=0)
    wait.check_connections(remote_ips, now_ms)
    assert wait.result is result
