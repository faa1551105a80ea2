"""Processing times as people write them, and as they are drawn."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.config import BrokerConfig
from nodes.config.processing_times import OTHERS, parse_processing_times
from nodes.config.request_pools import PoolName
from nodes.fields import FieldError
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_MS
from support.every_case import each_case

POOLS = frozenset(PoolName)


def drawn_ms(text, code=RequestCode.SEND_MESSAGE_V2, pool=PoolName.SEND, count=2_000):
    time, chance = parse_processing_times(text, POOLS).of(code, pool), random.Random(1)
    return [time.draw_ns(chance.random) / NS_PER_MS for _ in range(count)]


def test_a_constant_time_is_that_of_every_request():
    assert drawn_ms("sendMessage 5ms", count=3) == [5, 5, 5]
    assert drawn_ms("sendMessage 0.25ms", count=1) == [0.25]
    assert drawn_ms("sendMessage 300us", count=1) == [0.3]


def test_a_range_is_drawn_from_end_to_end():
    drawn = drawn_ms("sendMessage 1ms..5ms")
    assert 1 <= min(drawn) < 1.1
    assert 4.9 < max(drawn) <= 5


def test_an_exponential_time_has_its_mean_and_a_long_tail():
    drawn = drawn_ms("sendMessage exponential 5ms")
    assert 4.7 < sum(drawn) / len(drawn) < 5.3
    assert max(drawn) > 25


def test_the_name_of_a_request_goes_before_its_pool_and_that_before_the_others():
    text = "SEND_MESSAGE_V2 1ms, sendMessage 2ms, others 3ms"
    assert drawn_ms(text, count=1) == [1]
    assert drawn_ms(text, RequestCode.SEND_MESSAGE, count=1) == [2]
    assert drawn_ms(text, RequestCode.HEART_BEAT, PoolName.HEARTBEAT, count=1) == [3]
    assert drawn_ms("sendMessage 2ms", RequestCode.HEART_BEAT, PoolName.HEARTBEAT, count=1) == [0]
    assert drawn_ms(f"{OTHERS} 3ms", 9_999, PoolName.ADMIN, count=1) == [3]


@each_case(
    "text",
    [
        "sendMessage",
        "sendMessage 5",
        "sendMessage 5 ms",
        "send 5ms",
        "sendMessage 5ms, sendMessage 6ms",
        "sendMessage 5ms..1ms",
        "sendMessage exponential 1ms..5ms",
        "sendMessage -5ms",
        "sendMessage 5ms; others 1ms",
        "sendMessage 9999999s",
    ],
)
def test_what_is_no_list_of_times_is_refused_with_an_example(text):
    with pytest.raises(FieldError, match=r"processingTimes: expected times of pools and request codes, such as"):
        BrokerConfig(processing_times=text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        BrokerConfig(processing_times=text)
    except FieldError:
        return
    parse_processing_times(text, POOLS)
