"""Consumers in order that give a message up: it goes to the retry topic, which their own locks close."""

import pytest

from emulator.testing import RETRY, TOPIC, Stage, a_scenario, consumer_group, execute
from support.ordered import orderly
from support.retried import (
    DELAYED,
    DLQ,
    SEND,
    consumed_from,
    failing,
    first_message_only,
    send_to_retry_topic,
    sent,
    stored_in,
)


def one_ordered_consumer(fail_times=100, **options):
    config = orderly(**options)
    return failing(a_scenario(consumers=consumer_group(1, config), queues=1, rate_per_s=1), fail_times)


def test_an_ordered_message_is_tried_for_ever_where_no_limit_is_set():
    trace = execute(one_ordered_consumer(), first_message_only, for_ms=60_000)

    assert len(consumed_from(trace, TOPIC)) > 50
    assert sent(trace, SEND) == []


@pytest.mark.trap("C33")
def test_an_ordered_message_that_failed_too_often_is_a_dead_letter_at_once_and_the_next_one_follows():
    trace = execute(one_ordered_consumer(max_reconsume_times=2), for_ms=20_000)

    offsets = [row.offset for row in consumed_from(trace, TOPIC)]
    assert offsets[:9] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    # Sent with a delay and few deliveries, and yet never delivered again: the group holds the lock of its queue.
    assert len(stored_in(trace, DLQ)) == len(sent(trace, SEND)) > 3
    assert stored_in(trace, DELAYED) == stored_in(trace, RETRY) == consumed_from(trace, RETRY) == []
    commits = [row.offset for row in trace.select("messages", event="committed", topic=TOPIC)]
    assert commits[-1] > 3


@pytest.mark.trap("C33")
def test_the_retry_topic_is_closed_for_everybody_as_long_as_any_lock_of_the_group_holds():
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(30_000)
        await send_to_retry_topic(probe, "broker-a")
        await stage.kill("c1")
        await stage.for_ms(30_000)
        await send_to_retry_topic(probe, "broker-a")
        # The last renewal was at 21 s and holds for 60.
        await stage.at_ms(82_000)
        await send_to_retry_topic(probe, "broker-a")

    trace = execute(one_ordered_consumer(0), script)

    assert [round(row.at_ms, -3) for row in stored_in(trace, DLQ)] == [30_000, 60_000]
    assert [round(row.at_ms, -3) for row in stored_in(trace, RETRY)] == [82_000]


def test_what_cannot_be_given_up_is_tried_again_with_everything_of_its_batch():
    async def script(stage: Stage) -> None:
        await stage.at_ms(2_500)
        await stage.kill("p1")
        await stage.kill("broker-a")

    trace = execute(one_ordered_consumer(max_reconsume_times=1), script, for_ms=9_000)

    offsets = [row.offset for row in consumed_from(trace, TOPIC, after_ms=2_600)]
    assert len(offsets) >= 4
    assert len(dict.fromkeys(offsets)) == 1
    assert stored_in(trace, DLQ, after_ms=2_600) == []
