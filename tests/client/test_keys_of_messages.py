"""How often each key is drawn."""

from collections import Counter
from random import Random

import pytest

from nodes.client.producer.keys import KeyDistribution, KeyDraws, MessageKeys
from nodes.fields import FieldError
from support.every_case import each_case

ZIPF, HOT = KeyDistribution.ZIPF, KeyDistribution.HOT
DRAWS = 40_000


def shares(keys):
    draws = KeyDraws(keys, Random(1))
    return {key: times / DRAWS for key, times in Counter(draws.draw() for _ in range(DRAWS)).items()}


def test_all_keys_are_equally_likely_unless_said_otherwise():
    found = shares(MessageKeys(20))

    assert sorted(found, key=int) == [str(number) for number in range(1, 21)]
    assert all(share == pytest.approx(1 / 20, rel=0.15) for share in found.values())


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_zipf_s_law_gives_the_nth_key_a_power_of_its_number(exponent):
    found = shares(MessageKeys(50, ZIPF, exponent))

    total = sum(number**-exponent for number in range(1, 51))
    for number in (1, 2, 5, 10):
        assert found[str(number)] == pytest.approx(number**-exponent / total, rel=0.15)


@pytest.mark.parametrize(("percent", "count"), [(80, 11), (0, 5), (100, 5), (50, 1)])
def test_a_hot_key_has_its_percentage_and_the_others_share_the_rest(percent, count):
    found = shares(MessageKeys(count, HOT, hot_percent=percent))

    hot = percent / 100 if count > 1 else 1
    assert found.get("1", 0) == pytest.approx(hot, rel=0.05)
    others = [found.get(str(number), 0) for number in range(2, count + 1)]
    assert others == pytest.approx([(1 - hot) / len(others)] * len(others) if others else [], rel=0.15)


def test_keys_in_turn_come_one_after_the_other_and_begin_again_behind_the_last():
    draws = KeyDraws(MessageKeys(3, KeyDistribution.IN_TURN), Random(1))

    assert [draws.draw() for _ in range(7)] == ["1", "2", "3", "1", "2", "3", "1"]


@each_case(
    ("answer", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": 100_001}, "count"),
        ({"exponent": 2.0}, "exponent"),
        ({"distribution": ZIPF, "exponent": 0}, "exponent"),
        ({"distribution": ZIPF, "exponent": float("nan")}, "exponent"),
        ({"distribution": ZIPF, "exponent": True}, "exponent"),
        ({"distribution": ZIPF, "hot_percent": 10}, "hot_percent"),
        ({"distribution": HOT, "hot_percent": 101}, "hot_percent"),
    ],
)
def test_keys_that_make_no_sense_are_refused(answer, field):
    with pytest.raises(FieldError) as caught:
        MessageKeys(**answer)
    assert caught.value.field == field
