"""Consumers that pop: brokers hand messages of any queue to any member."""

import attrs
import pytest

from emulator.testing import GROUP, TOPIC, Stage, a_scenario, broker_groups, consumer_group, execute
from faults.consume_mode import ConsumeMode
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.extra_info import parse_extra_info
from nodes.protocol.properties import properties_to_text
from support.ordered import requested

POP, ACK, CHANGE, PULL = (
    RequestCode.POP_MESSAGE,
    RequestCode.ACK_MESSAGE,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    RequestCode.PULL_MESSAGE,
)
BROKERS = ("broker-a", "broker-b")


def popping(share=0, fail_times=0, consume_ms=0, consumers=2, **options):
    """A cluster whose group pops from the start."""
    brokers = options.pop("brokers", ("broker-a",))
    broker = BrokerConfig(**options.pop("broker", {}))
    consumer = ConsumerConfig(client_rebalance=False, **options)
    scenario = a_scenario(
        consumers=consumer_group(consumers, consumer, consume_ms=consume_ms),
        brokers=broker_groups(*brokers, config=broker),
        rate_per_s=10,
    )
    (group,) = scenario.consumers
    group = attrs.evolve(group, mode=ConsumeMode.POP, pop_share_queue_num=share, fail_times=fail_times)
    return attrs.evolve(scenario, consumers=(group,))


def rows(trace, event, **wanted):
    return trace.select("messages", event=event, **wanted)


def test_every_message_goes_to_one_member_and_is_acknowledged():
    trace = execute(popping(), for_ms=60_000)

    consumed = trace.consumed()
    assert set(consumed) >= set(trace.stored()[:-5])
    assert {len(members) for members in consumed.values()} == {1}
    assert {members[0] for members in consumed.values()} == {"c1", "c2"}
    acked = {(row.topic, row.queue_id, row.offset) for row in rows(trace, "acked")}
    assert len(acked) >= len(consumed) - 5
    # Only its own retry topic is pulled: popped queues have no owner.
    assert trace.owners() == {}
    assert {row.event for row in trace.select("ownership", topic=TOPIC)} == {"pop_acquired"}


def test_a_share_of_one_following_member_gives_each_queue_to_two():
    trace = execute(popping(share=1, consumers=3), for_ms=30_000)

    held = {}
    for row in trace.select("ownership", topic=TOPIC, event="pop_acquired"):
        held.setdefault(row.queue_id, set()).add(row.node)
    assert -1 not in held
    assert {len(members) for members in held.values()} == {2}


def test_a_refused_message_is_hidden_for_longer_after_each_failure():
    trace = execute(popping(fail_times=1), for_ms=12_000)

    first = min(rows(trace, "invisible_changed"), key=lambda row: row.t_ns)
    assert parse_extra_info(first.key).invisible_time_ms == 10_000
    # What was not taken from the queue itself again comes from the retry topic, where it succeeds.
    assert rows(trace, "acked", topic=TOPIC) == []


@pytest.mark.trap("C42")
def test_a_batch_that_is_finished_too_late_is_not_acknowledged():
    trace = execute(popping(consume_ms=6_000, pop_invisible_time=5_000, consumers=1), for_ms=15_000)

    assert len(trace.consumed()) > 20
    assert rows(trace, "acked") == []
    assert requested(trace, "c1", "broker-a", ACK) == []


def test_messages_without_answer_above_the_threshold_keep_a_member_from_popping():
    scenario = popping(consume_ms=60_000, pop_threshold_for_queue=10, pop_batch_nums=4, consumers=1)
    trace = execute(scenario, for_ms=30_000)

    popped = len(rows(trace, "popped"))
    # It looks before each pop, so a batch may exceed it.
    assert 10 < popped <= 14


def test_an_operator_has_a_running_group_pop_and_pull_again():
    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.begin(f"consume-mode {GROUP} pop")
        await stage.at_ms(120_000)
        await stage.begin(f"consume-mode {GROUP} pull")
        await stage.at_ms(180_000)

    scenario = a_scenario(consumers=consumer_group(2, ConsumerConfig(client_rebalance=False)), rate_per_s=10)
    trace = execute(scenario, script)

    assert all(trace.owners(at_ms=50_000).values())
    # A member learns it in its next round, up to 20 s later.
    assert not any(trace.owners(at_ms=90_000).values())
    assert all(trace.owners(at_ms=170_000).values())
    popped_ms = [row.at_ms for row in rows(trace, "popped")]
    assert 60_000 < min(popped_ms) < 82_000
    assert 120_000 < max(popped_ms) < 142_000
    assert set(trace.consumed()) >= set(trace.stored()[:-5])


@pytest.mark.trap("P19")
@pytest.mark.trap("P18")
def test_a_young_message_with_too_many_failures_costs_the_rest_of_its_batch_until_the_queue_is_popped_no_more():
    """Each batch of four fails at its first message, and leaves three counted for ever: after 33 batches it is over."""
    scenario = popping(
        fail_times=9, consumers=1, max_reconsume_times=0, pop_batch_nums=4, consume_message_batch_max_size=4
    )
    trace = execute(
        attrs.evolve(scenario, producers=(attrs.evolve(scenario.producers[0], rate_per_s=100),)), for_ms=60_000
    )

    popped = rows(trace, "popped")
    assert max(row.at_ms for row in popped) < 30_000
    assert 96 < len(popped) < 400
    assert rows(trace, "acked") == rows(trace, "invisible_changed") == []
    assert len(trace.consumed()) == len(popped)


@pytest.mark.slow
@pytest.mark.trap("P39")
def test_a_mode_that_one_broker_was_notified_has_half_of_a_group_pop_and_half_pull_the_same_queues():
    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.begin(f"consume-mode {GROUP} pop at broker-a")
        await stage.at_ms(300_000)

    scenario = a_scenario(
        consumers=consumer_group(4, ConsumerConfig(client_rebalance=False)), brokers=BROKERS, rate_per_s=10
    )
    trace = execute(scenario, script)

    late = [row for row in trace.select("ownership", topic=TOPIC) if row.at_ms > 100_000]
    assert {"acquired", "dropped", "pop_acquired", "pop_dropped"} == {row.event for row in late}
    twice = [place for place, members in trace.consumed().items() if len(members) > 1]
    assert len(twice) > 50


@pytest.mark.trap("P1")
def test_the_offset_moves_when_a_check_point_is_stored_so_nothing_lags_while_thousands_are_in_flight():
    scenario = popping(consume_ms=50_000, pop_threshold_for_queue=1_000, consumers=1, consume_thread_min=1_000)

    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        store, offsets = stage.node("broker-a").context.store, stage.node("broker-a").tables.clients.offsets
        lags = [
            store.max_offset(TOPIC, queue_id) - offsets.query_offset(GROUP, TOPIC, queue_id) for queue_id in range(4)
        ]
        assert max(lags) <= 1

    trace = execute(scenario, script)

    assert trace.consumed() == {}
    assert len(rows(trace, "popped")) > 400


def test_a_message_that_is_sent_on_leaves_its_handle_behind():
    seen = []

    async def script(stage: Stage) -> None:
        caller = await stage.probe()
        await stage.at_ms(5_000)
        properties = properties_to_text({"KEYS": "k", "POP_CK": "0 1 2 3 0 elsewhere 7 7"})
        header = headers.SendMessageRequestHeader("p", TOPIC, "TBW102", 8, 0, 0, 0, 0, properties)
        await caller.ask("broker-a", RequestCode.SEND_MESSAGE, header, b"again")
        store = stage.node("broker-a").context.store
        seen.extend(dict(found.properties) for found in store.get_message(TOPIC, 0, 0).messages)

    execute(a_scenario(), script)

    assert seen == [{"KEYS": "k"}]
