"""What a change of members does to queues: from rows made by hand, and as the scenarios run it."""

import pytest

from emulator.spec import load
from emulator.spec.bundled import example
from faults.process import Kill, Restart, Suspend
from nodes.config import BrokerConfig, ConsumerConfig
from studies.timelines.hand_over import ConsumedRow, HoldRow, MemberChange, hand_over
from studies.timelines.seeds import execute_seed

Q0, Q1 = ("broker-a", 0), ("broker-a", 1)


def ns(seconds):
    return round(seconds * 1_000_000_000)


def story(holds, consumed=()):
    rows = [HoldRow(seq, ns(at), node, event, queue) for seq, (at, node, event, queue) in enumerate(holds)]
    messages = tuple(ConsumedRow(ns(at), queue, offset) for at, queue, offset in consumed)
    return MemberChange(holds=tuple(rows), consumed=messages, member="b", begin_ns=ns(100), end_ns=ns(300))


OWNED = ((1, "a", "acquired", Q0), (1, "b", "acquired", Q1))


def test_a_kill_leaves_queues_without_owner_until_a_survivor_has_them():
    found = hand_over(story([*OWNED, (100, "b", "killed", None), (100.5, "a", "acquired", Q1)]))

    assert found["owned_once"] == found["no_owner"] == (0.5,)
    assert found["two_owners"] == (0.0,)
    assert "taken_over" not in found


def test_a_frozen_owner_and_its_successor_both_own_a_queue_from_the_take_over_on():
    found = hand_over(story([*OWNED, (150, "a", "acquired", Q1), (210, "a", "dropped", Q1)]))

    assert found["taken_over"] == (50.0,)
    assert (found["two_owners"], found["owned_once"]) == ((60.0,), (110.0,))


def test_a_queue_that_no_one_takes_lacks_an_owner_until_the_end():
    found = hand_over(story([*OWNED, (100, "b", "killed", None)]))

    assert found["no_owner"] == found["owned_once"] == (200.0,)


def test_pauses_and_second_consumptions_count_from_the_fault_on():
    before = [(10, Q0, 0), (20, Q0, 1), (90, Q0, 2), (99, Q0, 3), (99.5, Q0, 3)]
    found = hand_over(story(OWNED, [*before, (103, Q0, 3), (103.1, Q0, 4), (103.2, Q0, 4)]))

    assert found["pause"] == (3.5,)
    assert found["consumed_twice"] == (2.0,)


FAULTS = {
    "member_kill": (Kill, "consumer-2", None),
    "member_close": (Restart, "consumer-2", None),
    "member_join": (Kill, "consumer-4", 45_000),
    "member_freeze60": (Suspend, "consumer-4", 60_000),
    "member_freeze165": (Suspend, "consumer-4", 165_000),
}


@pytest.mark.parametrize("path", sorted(example("rebalance").glob("*.toml")), ids=lambda path: path.stem)
def test_a_file_holds_the_members_options_and_fault_of_the_real_runs(path):
    scenario = load(path)
    (timed,) = scenario.faults.faults
    (group,) = scenario.consumers

    assert (type(timed.fault), timed.fault.scope.node, timed.for_ms) == FAULTS[path.stem]
    assert (len(group.names), group.config, group.consume_ms) == (4, ConsumerConfig(), 5)
    assert (len(scenario.nameservers), [broker.config for broker in scenario.brokers]) == (1, [BrokerConfig()])
    assert (scenario.topics[0].queues, scenario.producers[0].rate_per_s) == (8, 100)


@pytest.mark.slow
def test_after_a_kill_two_queues_pause_for_half_a_second_and_a_message_of_each_comes_twice():
    found = execute_seed(example("rebalance") / "member_kill.toml", 1)

    assert found["owned_once"][0] < 0.1
    assert 0.5 < found["pause"][0] < 0.7
    assert found["consumed_twice"] == (2.0,)


@pytest.mark.slow
def test_a_member_that_was_frozen_for_165_s_consumes_all_of_it_again():
    found = execute_seed(example("rebalance") / "member_freeze165.toml", 1)

    # Two queues with 12.5 messages a second each.
    assert 4_125 <= found["consumed_twice"][0] < 4_150
    assert 90 < found["taken_over"][0] < 150
    assert 165 < found["owned_once"][0] < 166
