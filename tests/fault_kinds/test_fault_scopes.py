"""Which frames and which nodes a fault hits."""

import pytest

from faults.link import Cut, Delay, Loss
from faults.process import PowerOff, Suspend
from faults.scope import ANY, LinkScope, NodeScope
from nodes.fields import FieldError
from support.every_case import each_case


@each_case(
    ("scope", "hit"),
    [
        (LinkScope("a", "b"), ["a>b", "b>a"]),
        (LinkScope("a", "b", one_way=True), ["a>b"]),
        (LinkScope("a", ANY), ["a>b", "a>c", "b>a", "c>a"]),
        (LinkScope("a", ANY, one_way=True), ["a>b", "a>c"]),
        (LinkScope(ANY, "a", one_way=True), ["b>a", "c>a"]),
        (LinkScope(ANY, ANY), ["a>b", "a>c", "b>a", "b>c", "c>a", "c>b"]),
    ],
    ids=lambda value: value.describe() if isinstance(value, LinkScope) else "",
)
def test_a_link_scope_hits_these_links_and_no_others(scope, hit):
    links = [(src, dst) for src in "abc" for dst in "abc" if src != dst]

    assert [f"{src}>{dst}" for src, dst in links if scope.matches(src, dst)] == hit


def test_a_node_scope_hits_one_node_or_all():
    assert [name for name in "abc" if NodeScope("b").matches(name)] == ["b"]
    assert [name for name in "abc" if NodeScope(ANY).matches(name)] == ["a", "b", "c"]


@pytest.mark.parametrize("pattern", ["", "broker-*", None])
def test_a_pattern_is_a_whole_name_or_the_star(pattern):
    with pytest.raises(FieldError, match="expected the exact name"):
        NodeScope(pattern)


def test_a_node_has_no_link_to_itself():
    with pytest.raises(FieldError, match="no link to itself"):
        LinkScope("a", "a")


@each_case(
    ("fault", "text"),
    [
        (Cut(LinkScope("a", "b", one_way=True)), "cut a -> b"),
        (Cut(LinkScope("a", "b")), "cut a <-> b"),
        (Loss(LinkScope(ANY, ANY), 20), "lose 20 % on all links"),
        (Delay(LinkScope("a", ANY), 40), "delay a <-> * by 40 ms"),
        (Delay(LinkScope("a", "b"), 40, 5), "delay a <-> b by 40 ms, jitter 5 ms"),
        (Suspend(NodeScope("a")), "suspend a"),
        (PowerOff(NodeScope(ANY)), "power off all nodes"),
    ],
)
def test_a_fault_describes_itself_for_people(fault, text):
    assert fault.describe() == text


def test_the_parameters_of_a_fault_carry_their_units():
    assert Delay(LinkScope("a", "b"), 40, 5).parameters() == {"one_way": False, "delay_ms": 40, "jitter_ms": 5}


@each_case("percent", [-1, 101, 100.5, float("nan"), True])
def test_a_probability_is_a_number_of_percent(percent):
    with pytest.raises(FieldError, match="percent: expected a number of percent from 0 to 100"):
        Loss(LinkScope(ANY, ANY), percent)


@pytest.mark.parametrize("delay_ms", [-1, 0.5])
def test_no_frame_arrives_before_it_was_sent(delay_ms):
    with pytest.raises(FieldError, match="delay_ms: expected"):
        Delay(LinkScope(ANY, ANY), delay_ms)
