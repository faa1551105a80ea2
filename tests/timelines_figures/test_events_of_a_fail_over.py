"""When the events of a fail-over happened, taken from rows made by hand."""

import pytest

from studies.timelines.events import BeliefRow, CallRow, Cast, LifeRow, Story, instants

M, S1, S2 = "127.1.2.1:10911", "127.1.2.1:10921", "127.1.2.1:10931"
CAST = Cast(
    nameservers=("ns-1", "ns-2"),
    group="ba",
    members={0: "ba", 1: "ba-s1", 2: "ba-s2"},
    addresses={0: M, 1: S1, 2: S2},
    consumer="consumer-1",
    topic="orders",
)


def at(seconds):
    return round(seconds * 1_000_000_000)


def belief(seconds, node, kind, value, subject="ba"):
    return BeliefRow(at(seconds), node, kind, subject, value)


def route(seconds, node, addrs, perm=6):
    return belief(seconds, node, "route", {"ba": {"queues": [4, 4, perm], "addrs": addrs}}, "orders")


def story(*rows, lives=(), calls=(), fault_s=200.0):
    return Story(
        beliefs=tuple(sorted(rows, key=lambda row: row.t_ns)),
        lives=tuple(LifeRow(at(seconds), node, event) for seconds, node, event in lives),
        offset_requests=tuple(CallRow(at(seconds), src, dst) for seconds, src, dst in calls),
        fault_ns=None if fault_s is None else at(fault_s),
    )


BEFORE = (
    belief(10, "ns-1", "live_brokers", {"0": M, "1": S1, "2": S2}),
    belief(11, "ba", "special_service", True),
    belief(12, "ba-s1", "special_service", False),
    route(13, "consumer-1", {"0": M, "1": S1, "2": S2}),
    belief(14, "ba-s1", "master_addr", M),
)
TAKE_OVER = (
    belief(210.5, "ns-1", "live_brokers", {"1": S1, "2": S2}),
    belief(211.5, "ns-2", "live_brokers", {"1": S1, "2": S2}),
    route(210.5, "ns-1", {"0": S1, "2": S2}, perm=4),
    route(211.5, "ns-2", {"0": S1, "2": S2}, perm=4),
    belief(210.6, "ba-s1", "min_broker", {"id": 1, "address": S1}),
    belief(210.6, "ba-s1", "special_service", True),
    belief(210.6, "ba-s1", "master_addr", None),
    belief(210.7, "ba-s2", "min_broker", {"id": 1, "address": S1}),
    route(225, "consumer-1", {"0": S1, "2": S2}, perm=4),
)
BACK = (
    belief(246, "ns-1", "live_brokers", {"0": M, "1": S1, "2": S2}),
    belief(246.1, "ns-2", "live_brokers", {"0": M, "1": S1, "2": S2}),
    belief(246.2, "ba-s1", "special_service", False),
    route(255, "consumer-1", {"0": M, "1": S1, "2": S2}),
    belief(260, "ba-s1", "master_addr", M),
    belief(262, "ba-s2", "master_addr", M),
)


def test_a_take_over_is_reported_from_the_fault_with_a_value_of_each_nameserver():
    assert instants(story(*BEFORE, *TAKE_OVER), CAST) == {
        "ns_removed": (10.5, 11.5),
        "route_acting": (10.5, 11.5),
        "s1_min": (10.6,),
        "s2_min": (10.7,),
        "s1_special_on": (10.6,),
        "client_route_acting": (25.0,),
    }


def test_after_a_freeze_seconds_count_from_the_resumption_and_the_overlap_with_them():
    lives = ((200, "ba", "suspended"), (240, "ba", "resumed"))
    found = instants(story(*BEFORE, *TAKE_OVER, *BACK, lives=lives), CAST)

    assert found["ns_master_back"] == (6.0, 6.1)
    assert found["s1_special_off"] == found["overlap"] == (6.2,)
    assert found["client_route_master"] == (15.0,)
    assert (found["master_addr_s1"], found["master_addr_s2"]) == ((20.0,), (22.0,))
    assert "master_special_on" not in found


def test_after_a_restart_seconds_count_from_the_ready_process():
    lives = ((200, "ba", "killed"), (240, "ba", "started"), (242, "ba", "ready"))
    special = belief(246, "ba", "special_service", True)
    found = instants(story(*BEFORE, *TAKE_OVER, special, *BACK, lives=lives), CAST)

    assert found["master_special_on"] == (4.0,)
    assert found["s1_special_off"] == (4.2,)
    assert found["overlap"] == (0.2,)


def test_a_full_sync_is_a_request_of_the_slave_to_its_master_after_the_return():
    lives = ((240, "ba", "resumed"),)
    calls = (
        (239, "ba-s1", "ba"),
        (241, "ba", "ba-s1"),
        (250, "ba-s1", "ba"),
        (270, "ba-s2", "ba"),
        (310, "ba-s1", "ba"),
    )
    found = instants(story(lives=lives, calls=calls), CAST)

    assert (found["full_sync_s1"], found["full_sync_s2"]) == ((10.0,), (30.0,))


@pytest.mark.parametrize(("addrs", "perm"), [({"1": S1, "2": S2}, 6), ({"0": S1, "2": S2}, 6), ({"0": M}, 4)], ids=str)
def test_a_slave_acts_only_where_it_stands_as_broker_0_and_can_only_be_read(addrs, perm):
    assert "route_acting" not in instants(story(route(210, "ns-1", addrs, perm)), CAST)


def test_a_client_without_acting_master_leaves_the_master_when_its_route_has_no_broker_0():
    found = instants(story(*BEFORE, route(225, "consumer-1", {"1": S1, "2": S2})), CAST)

    assert found["client_route_acting"] == (25.0,)


def test_a_cold_start_is_reported_from_the_start_of_the_first_broker():
    rows = (
        belief(5.1, "ba-s2", "special_service", True),
        belief(5.1, "ns-1", "live_brokers", {"2": S2}),
        belief(8, "ba-s1", "special_service", False),
        belief(8, "ns-1", "live_brokers", {"1": S1, "2": S2}),
        belief(8.1, "ba-s2", "special_service", False),
        belief(9, "ba-s1", "special_service", True),
        belief(14, "ba", "special_service", True),
        belief(14.1, "ns-1", "live_brokers", {"0": M, "1": S1, "2": S2}),
        belief(14.2, "ba-s1", "special_service", False),
    )
    lives = ((1, "ns-1", "started"), (5, "ba-s2", "started"), (7, "ba-s1", "started"))

    assert instants(story(*rows, lives=lives, fault_s=None), CAST) == {
        "s2_special_on": (0.1,),
        "ns_s1": (3.0,),
        "s2_special_off": (3.1,),
        "s1_special_on": (4.0,),
        "master_special_on": (9.0,),
        "ns_master": (9.1,),
        "s1_special_off": (9.2,),
        "overlap": (0.2,),
    }
