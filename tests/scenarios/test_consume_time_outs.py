"""Listeners that take too long: their messages come again while they are still at it."""

import pytest

from emulator.testing import RETRY, TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig
from nodes.protocol.codes import ResponseCode
from support.retried import DELAYED, SEND, SEND_BACK, consumed_from, first_message_only, one_consumer, sent, stored_in

MINUTE_MS = 60_000


def test_a_message_that_a_listener_has_for_too_long_is_sent_back_while_the_listener_goes_on():
    trace = execute(one_consumer(0, consume_ms=150_000, consume_timeout=1), first_message_only, for_ms=300_000)

    requested = sent(trace, SEND_BACK)[0]
    # Looked at each minute: after the first the listener had it for less than one.
    assert round(requested.at_ms, -2) == 2 * MINUTE_MS
    (first,) = consumed_from(trace, TOPIC)
    again = consumed_from(trace, RETRY)[0]
    assert first.at_ms > requested.at_ms
    assert 160_000 <= again.at_ms - requested.at_ms <= 160_200


def test_a_listener_that_fails_with_a_message_that_is_gone_does_not_send_it_back_again():
    trace = execute(one_consumer(1, consume_ms=150_000, consume_timeout=1), first_message_only, for_ms=200_000)

    assert len(consumed_from(trace, TOPIC)) == 1
    assert len(sent(trace, SEND_BACK)) == len(stored_in(trace, DELAYED)) == 1


def test_the_offset_moves_not_when_the_message_goes_but_with_the_next_pull_that_finds_nothing():
    trace = execute(one_consumer(0, consume_ms=150_000, consume_timeout=1), first_message_only, for_ms=170_000)

    gone_ms = sent(trace, SEND_BACK)[0].at_ms
    moved = trace.select("messages", event="committed", topic=TOPIC, offset=1)[0].at_ms
    nothing = int(ResponseCode.PULL_NOT_FOUND)
    held = trace.select("rpc", dst="c1", code=11, kind="response", status=nothing, after_ms=gone_ms)[0].at_ms
    assert 0 < moved - held <= 2
    assert held > gone_ms + 1_000


@pytest.mark.trap("X8")
def test_a_head_that_cannot_be_sent_back_is_sent_back_once_for_every_cached_message():
    async def script(stage: Stage) -> None:
        await stage.at_ms(2_500)
        await stage.kill("p1")
        await stage.at_ms(100_000)
        stage.cut("c1", "broker-a")

    config = ConsumerConfig(consume_timeout=1)
    scenario = a_scenario(consumers=consumer_group(1, config, consume_ms=600_000), queues=1, rate_per_s=1)
    trace = execute(scenario, script, for_ms=175_000)

    cached = len(stored_in(trace, TOPIC))
    assert cached == 3
    # There is no connection left to send a message back over, so each time it is tried as a normal message.
    lost = trace.select(
        "rpc", src="c1", code=int(SEND), event="timed_out", after_ms=2 * MINUTE_MS, until_ms=3 * MINUTE_MS
    )
    assert len(lost) == cached
    assert [row.offset for row in consumed_from(trace, TOPIC)] == []
