"""An allocation is used when it is calculated: at a client, at a broker that is asked, and at the assigner."""

import pytest

from emulator.testing import GROUP, TOPIC, a_scenario, broker_groups, consumer_group, execute
from nodes.allocation.calculation import calculation_ns
from nodes.config import AllocateStrategy, BrokerConfig, ConsumerConfig
from nodes.config.allocation_time import AllocationTime
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_MS

SUBJECT = f"{GROUP}/{TOPIC}"
NONE, MILLISECONDS, MICROSECONDS = AllocationTime
QUEUES = 8
RING = {"allocate_message_queue_strategy": AllocateStrategy.CONSISTENT_HASH, "virtual_node_cnt": 1_000}


def waited_ns(**options):
    """From what one client sees first to its first assignment, and to its first queue."""
    trace = execute(a_scenario(consumers=consumer_group(1, ConsumerConfig(**options)), queues=QUEUES), for_ms=5_000)
    (view,), (assignment,) = (
        trace.select("beliefs", kind=kind, node="c1", subject=SUBJECT) for kind in ("view", "assignment")
    )
    acquired = trace.select("ownership", node="c1", event="acquired", topic=TOPIC)
    assert len(acquired) == QUEUES
    assert acquired[0].t_ns >= assignment.t_ns
    return assignment.t_ns - view.t_ns


@pytest.mark.parametrize(
    ("options", "taken_ns"),
    [
        ({}, 0),
        ({"allocation_time": MICROSECONDS}, calculation_ns(MICROSECONDS, "AVG", QUEUES, 1)),
        (RING, NS_PER_MS),
        (
            {**RING, "allocation_time": MICROSECONDS},
            calculation_ns(MICROSECONDS, "CONSISTENT_HASH", QUEUES, 1, places_each=1_000),
        ),
        ({**RING, "allocation_time": NONE}, 0),
    ],
)
def test_a_client_uses_its_share_when_it_is_calculated(options, taken_ns):
    assert waited_ns(**options) == taken_ns


def of_broker(consumers, counted, **options):
    """A run whose groups are allocated by a broker; all that is not calculated takes whole milliseconds there."""
    groups = broker_groups(config=BrokerConfig(allocation_time=counted))
    config = ConsumerConfig(client_rebalance=False, **options)
    return execute(a_scenario(brokers=groups, consumers=consumer_group(consumers, config), queues=QUEUES), for_ms=5_000)


def answers(trace):
    """When the broker sent each answer about the queues of a member."""
    rows = trace.select("rpc", code=int(RequestCode.QUERY_ASSIGNMENT), kind="response", event="delivered")
    return [row.sent_ns for row in rows]


def test_a_broker_answers_when_the_share_of_the_member_is_calculated():
    found = {sent_ns % NS_PER_MS for sent_ns in answers(of_broker(1, MICROSECONDS))}

    assert calculation_ns(MICROSECONDS, "AVG", QUEUES, 1) in found
    assert {sent_ns % NS_PER_MS for sent_ns in answers(of_broker(1, MILLISECONDS))} == {0}


@pytest.mark.parametrize("strategy", [AllocateStrategy.AVG, AllocateStrategy.STICKY])
def test_an_assigner_calculates_the_shares_of_all_members_once(strategy):
    trace = of_broker(3, MICROSECONDS, pinned_assigner=True, allocate_message_queue_strategy=strategy)

    allocated = trace.select("beliefs", kind="allocation", node="broker-a", subject=SUBJECT)
    members = [len(row.held["shares"]) for row in allocated]
    assert members
    assert len(answers(trace)) > 2 * len(members)
    assert [row.t_ns % NS_PER_MS for row in allocated] == [
        calculation_ns(MICROSECONDS, str(strategy), QUEUES, number, shares=number) for number in members
    ]


def test_who_asks_while_an_assigner_calculates_waits_until_it_is_done():
    trace = of_broker(3, MICROSECONDS, pinned_assigner=True, **RING)

    (allocated,) = trace.select("beliefs", kind="allocation", node="broker-a", subject=SUBJECT)
    taken_ns = calculation_ns(MICROSECONDS, "CONSISTENT_HASH", QUEUES, 3, shares=3, places_each=1_000)
    assert taken_ns > 10 * NS_PER_MS
    assert answers(trace)[:3] == [allocated.t_ns] * 3  # all three asked within some milliseconds
