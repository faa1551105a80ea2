"""Whatever stands in a scenario file, it is a scenario or some short lines that say what is wrong."""

import copy
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator.base.errors import LINE_MAX, UserError
from emulator.spec import Scenario, from_dict, loads
from faults.catalogue import CHAOS_NAMES, FAULTS
from nodes.config import BrokerConfig, ConsumerConfig, NameserverConfig, ProducerConfig, options
from nodes.visible import visible
from support.examples import DRAWN

WHOLE: dict[str, Any] = {
    "scenario": {"name": "valid", "run_for_s": 60, "seed": 3, "preset": "rip32", "guests": ["shop"]},
    "network": {"delay_ms": 1, "jitter_ms": 2},
    "nameserver": {"count": 2, "options": {"scanNotActiveBrokerInterval": 5_000}},
    "broker": [
        {"name": "ba", "replicas": 2, "options": {"listenPort": 10_911}},
        {"name": "bb", "id": 1, "cluster": "c", "node": "bb-1", "start_after_s": 0.5},
    ],
    "topic": [{"name": "orders", "brokers": ["ba"], "queues": 4}],
    "consumer": [
        {"group": "g", "topics": ["orders"], "count": 2, "expressions": {"orders": "a || b"}, "consume_ms": 3},
        {"group": "h", "topics": ["orders"], "share_process_with": "g", "fail_times": 1},
        {"group": "s", "topics": ["orders"], "options": {"allocateMessageQueueStrategy": "ORDINAL"}},
    ],
    "statefulset": [
        {"group": "s", "name": "pod", "replicas": 2, "api": "k8s", "options": {"livenessProbePeriodSeconds": 5}},
    ],
    "producer": [
        {"group": "p", "topic": "orders", "rate_per_s": 5, "tags": ["a"], "local_transaction": "commit"},
        {"group": "q", "topic": "orders", "keys": {"count": 9, "distribution": "zipf"}, "select": "hash"},
    ],
    "fault": [
        {"kind": "cut", "from": "ba", "to": "consumer-1", "at_s": 1, "for_s": 2, "one_way": True},
        {"kind": "loss", "percent": 20, "code": "HEART_BEAT", "at_ms": 1, "group": "g", "topic": "orders"},
        {"kind": "refuse", "code": 34, "response": "SYSTEM_BUSY", "at_s": 2, "next": 3, "skip": 1, "id": "r"},
        {"kind": "clock_skew", "node": "acting master of ba", "offset_ms": -5, "at_s": 3},
        {"kind": "partition", "shape": "isolate", "node": "random brokers", "among": "servers", "at_s": 4},
        {"kind": "permission", "node": "ba", "perm": 4, "topic": "orders", "at_s": 4},
        {"kind": "scale", "group": "g", "members": 4, "at_s": 5},
        {"do": "suspend owner of orders/ba/1 of g", "at_s": 6},
    ],
    "nemesis": [{"kind": "kill", "node": "minor brokers", "every_s": 30, "min_s": 1, "max_s": 2, "until_s": 50}],
}
HUGE = 16**20_000
ODD = [
    *(None, True, False, 0, -1, 1, 2**31 - 1, 2**31, 2**63, -(2**63), 10**9, 10**18, HUGE, -HUGE),
    *(0.5, -0.0, 1e-320, 1e308, math.inf, -math.inf, math.nan),
    *("", " ", "*", "..", "../../evil", "/etc/passwd", "a\nb", "a\0b", "\x1b[2J", "\ud800", "x" * 200_000, "9" * 5_000),
    *("kill", "random", "members of g", "owner of orders/ba/²"),
    *(f"owner of orders/ba/{'9' * 5_000}", f"g+{'9' * 5_000}"),
    *([], [[]], {}, [{}], {"": {}}, ["x"] * 100_000, {"x" * 200_000: 1}, {f"key{n}": n for n in range(1_000)}),
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key or index) of every value inside."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key
        yield from places(inner)


PLACES = len(list(places(WHOLE)))
KEYS = sorted(
    {
        *(str(key) for container, key in places(WHOLE) if isinstance(container, dict)),
        *(name for kind in (BrokerConfig, ConsumerConfig, NameserverConfig, ProducerConfig) for name in options(kind)),
    }
)
words = st.sampled_from([*FAULTS, *CHAOS_NAMES, "brokers", "ba", "consumer-1", "*", "orders", "g", "one-way", "34"])
values = st.one_of(
    st.sampled_from(ODD),
    words,
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), words),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        max_leaves=6,
    ),
)


def outcome(tables: dict[str, Any]) -> Scenario | tuple[str, ...]:
    """The scenario, or the lines that say what is wrong; everything else is raised."""
    try:
        return from_dict(tables, "some.toml")
    except UserError as error:
        return error.lines


def require_a_scenario_or_lines(scenario: Scenario | tuple[str, ...]) -> None:
    for line in () if isinstance(scenario, Scenario) else scenario:
        assert line == visible(line)
        assert len(line) <= LINE_MAX
        assert re.match(r"some\.toml(:\d+)?: ", line)


def test_the_tables_that_are_changed_are_a_scenario():
    assert isinstance(outcome(WHOLE), Scenario)


@given(st.lists(st.tuples(st.integers(0, PLACES - 1), values, st.sampled_from(KEYS)), min_size=1, max_size=3))
@settings(max_examples=3 * DRAWN)
def test_any_value_at_any_place_is_a_scenario_or_short_lines(changes):
    tables = copy.deepcopy(WHOLE)
    for number, odd, key in changes:
        value = copy.deepcopy(odd)  # the same list at two places could be put into itself
        at = list(places(tables))
        container, place = at[number % len(at)]
        if number % 3 == 0 and isinstance(container, dict):
            container[key] = value
        else:
            container[place] = value
        require_a_scenario_or_lines(outcome(tables))


@pytest.mark.slow
@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:30] if value not in (HUGE, -HUGE) else "huge")
def test_no_odd_value_at_any_place_is_more_than_short_lines(value):
    for number in range(PLACES):
        tables = copy.deepcopy(WHOLE)
        container, place = list(places(tables))[number]
        container[place] = value
        require_a_scenario_or_lines(outcome(tables))


@given(st.text(max_size=200))
@settings(max_examples=2 * DRAWN)
@example("a = " + "[" * 5_000)
@example("a = " + "{b=" * 5_000)
@example("a = " + "9" * 5_000)
@example("a = 0x" + "f" * 100_000)
@example("a" * 100_000)
@example("[" + "a." * 5_000 + "a]")
def test_any_text_is_short_lines(text):
    try:
        loads(text, "some.toml")
    except UserError as error:
        require_a_scenario_or_lines(error.lines)
