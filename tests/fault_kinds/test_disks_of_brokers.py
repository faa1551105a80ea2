"""What slow and lying disks do to a broker: which clients wait, what they are answered, and what is gone."""

import itertools

import attrs
import pytest

from emulator.spec.model.scenario import ConsumerGroupSpec
from emulator.testing import GROUP, TOPIC, a_scenario, broker_groups
from fault_kinds.by_script import broken, once
from nodes.config import BrokerConfig
from nodes.protocol.codes import RequestCode, ResponseCode

BROKER = "broker-a"
BEGIN_MS, END_MS = 20_000, 30_000
NEVER_MS = 3_600_000
ONLY_MESSAGES = {"flush_consumer_offset_interval": NEVER_MS, "flush_delay_offset_interval": NEVER_MS}
"""Options of a broker that writes nothing else."""


def sends(trace, code=RequestCode.SEND_MESSAGE_V2, **between):
    """(sent, how long it took, status) of each call that was answered."""
    requested = {(r.connection, r.opaque): r.sent_ms for r in trace.select("rpc", kind="request", code=int(code))}
    answers = trace.select("rpc", kind="response", code=int(code), event="delivered", **between)
    found = [(requested[r.connection, r.opaque], r) for r in answers]
    return [(sent_ms, row.at_ms - sent_ms, row.status) for sent_ms, row in found]


def within(rows, begin_ms=BEGIN_MS, end_ms=END_MS):
    return [(took_ms, status) for sent_ms, took_ms, status in rows if begin_ms <= sent_ms < end_ms]


def a_broker(*, rate_per_s=1, **options):
    return a_scenario(brokers=broker_groups(config=BrokerConfig(**ONLY_MESSAGES, **options)), rate_per_s=rate_per_s)


def test_a_send_is_answered_when_its_message_is_on_the_disk():
    rows = sends(broken(a_broker(), once(f"slow-disk {BROKER} 300", BEGIN_MS, END_MS), for_ms=40_000))

    assert within(rows) == [(302, 0)] * 10
    assert within(rows, 5_000, BEGIN_MS) == [(2, 0)] * 15
    assert within(rows, END_MS, 39_000) == [(2, 0)] * 9


def test_messages_of_one_flush_are_answered_together():
    scenario = a_scenario(brokers=broker_groups(config=BrokerConfig(**ONLY_MESSAGES)), rate_per_s=50)
    producer = scenario.producers[0]
    scenario = attrs.evolve(scenario, producers=tuple(attrs.evolve(producer, name=f"p{i}") for i in range(8)))
    rows = sends(broken(scenario, once(f"slow-disk {BROKER} 200", BEGIN_MS, END_MS), for_ms=31_000))

    during = [(sent_ms + took_ms, took_ms) for sent_ms, took_ms, _ in rows if BEGIN_MS <= sent_ms < END_MS - 400]
    answered = sorted(dict.fromkeys(at_ms for at_ms, _ in during))
    assert {later - earlier for earlier, later in itertools.pairwise(answered)} <= {200, 202}  # at once, or idle before
    assert all(202 <= took_ms <= 402 for _, took_ms in during)
    assert len(during) > 3 * len(answered)


def test_beyond_the_time_out_the_producer_is_notified_and_the_message_is_stored_all_the_same():
    scenario = a_broker(sync_flush_timeout=100)
    trace = broken(scenario, once(f"slow-disk {BROKER} 300", BEGIN_MS, END_MS), for_ms=40_000)

    assert within(sends(trace)) == [(102, int(ResponseCode.FLUSH_DISK_TIMEOUT))] * 10
    assert len([r for r in trace.select("messages", event="stored") if BEGIN_MS < r.at_ms < END_MS]) == 10


def test_a_message_that_is_sent_back_waits_for_the_disk_too():
    group = ConsumerGroupSpec(GROUP, ("c1",), (TOPIC,), fail_times=1)
    trace = broken(
        attrs.evolve(a_broker(), consumers=(group,)),
        once(f"slow-disk {BROKER} 300", BEGIN_MS, END_MS),
        for_ms=40_000,
    )
    backs = sends(trace, RequestCode.CONSUMER_SEND_MSG_BACK)

    assert within(backs, 5_000, BEGIN_MS) != []
    assert {took_ms for took_ms, _ in within(backs, 5_000, BEGIN_MS)} == {2}
    assert within(backs) != []
    assert all(302 <= took_ms <= 602 and status == 0 for took_ms, status in within(backs))


def test_the_thread_that_writes_offsets_waits_for_each_of_its_writes():
    def instants(flush_ms):
        config = BrokerConfig(flush_delay_offset_interval=NEVER_MS)
        deeds = once(f"slow-disk {BROKER} {flush_ms}", BEGIN_MS, 80_000)
        trace = broken(a_scenario(brokers=broker_groups(config=config)), deeds, for_ms=80_001)
        written = trace.select("causes", node=BROKER, name="persistConsumerOffset", after_ms=BEGIN_MS, until_ms=79_999)
        return [later.at_ms - earlier.at_ms for earlier, later in itertools.pairwise(written)]

    quick, slow = instants(100), instants(12_000)
    assert dict.fromkeys(quick) == {5_000: None}
    assert dict.fromkeys(slow) == {12_000: None}


def retained(*, lying, healed_ms=None, verb="power-off"):
    """(acknowledged before the end of the process, stored in the next one)."""
    counts = []

    async def deeds(breaker):
        stage = breaker.stage
        await stage.at_ms(BEGIN_MS)
        if lying:
            await breaker.begin("lie", f"lost-writes {BROKER}")
        if healed_ms is not None:
            await stage.at_ms(healed_ms)
            await breaker.end("lie")
        await stage.at_ms(END_MS)
        await breaker.begin("it", f"{verb} {BROKER}")
        await stage.for_ms(1_000)
        await breaker.end("it")
        await stage.for_ms(1)
        store = stage.node(BROKER).context.store
        counts.extend(store.max_offset(TOPIC, queue_id) for queue_id in range(4))

    trace = broken(a_broker(rate_per_s=10), deeds)
    acknowledged = trace.select("rpc", kind="response", code=310, status=0, event="delivered", until_ms=END_MS)
    before = [row for row in acknowledged if row.at_ms < BEGIN_MS]
    return len(before), len(acknowledged), sum(counts)


def test_what_a_lying_disk_has_acknowledged_is_gone_after_a_loss_of_power():
    before, acknowledged, stored = retained(lying=True)

    assert before <= stored <= before + 1
    assert acknowledged > before + 90


@pytest.mark.parametrize(
    "answer",
    [{"lying": False}, {"lying": True, "healed_ms": END_MS - 1}, {"lying": True, "verb": "kill"}],
    ids=["an honest disk", "healed before", "a kill takes no power"],
)
def test_otherwise_nothing_that_was_acknowledged_is_gone(answer):
    _, acknowledged, stored = retained(**answer)

    assert acknowledged <= stored <= acknowledged + 1
