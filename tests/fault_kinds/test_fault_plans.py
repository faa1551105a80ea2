"""Plans: every fault that begins also ends, in an order that everybody can foretell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.link import Cut
from faults.plan import Phase, Plan, PlanError, TimedFault
from faults.process import Kill, Suspend
from faults.scope import LinkScope, NodeScope
from nodes.fields import FieldError
from support.every_case import each_case

LINK = Cut(LinkScope("a", "b"))


def test_a_plan_is_carried_out_in_order_of_time_with_ends_before_begins():
    plan = Plan((TimedFault("late", LINK, 20, 5), TimedFault("early", LINK, 10, 10), TimedFault("next", LINK, 20)))

    assert [(step.at_ms, step.phase.value, step.timed.id) for step in plan.steps(run_for_ms=100)] == [
        (10, "begin", "early"),
        (20, "end", "early"),
        (20, "begin", "late"),
        (20, "begin", "next"),
        (25, "end", "late"),
        (100, "end", "next"),
    ]


@given(
    faults=st.lists(st.tuples(st.integers(0, 50), st.none() | st.integers(1, 50)), max_size=8),
    run_for_ms=st.integers(1, 40),
)
def test_whatever_begins_ends_within_the_run_and_not_before_it_began(faults, run_for_ms):
    plan = Plan(tuple(TimedFault(f"f{i}", LINK, at_ms, for_ms) for i, (at_ms, for_ms) in enumerate(faults)))
    open_faults: dict[str, int] = {}

    for step in plan.steps(run_for_ms):
        assert 0 <= step.at_ms <= run_for_ms
        if step.phase is Phase.BEGIN:
            open_faults[step.timed.id] = step.at_ms
        else:
            assert open_faults.pop(step.timed.id) < step.at_ms

    assert open_faults == {}


def test_the_steps_of_a_plan_come_in_order_of_time():
    plan = Plan(tuple(TimedFault(f"f{at_ms}", LINK, at_ms, 7) for at_ms in (9, 3, 30, 0)))
    times = [step.at_ms for step in plan.steps(100)]

    assert times == sorted(times)


def test_two_faults_cannot_have_one_id():
    with pytest.raises(PlanError, match="fault 1: id: expected an id of its own, x is taken"):
        Plan((TimedFault("x", LINK, 0), TimedFault("x", LINK, 5)))


def test_faults_may_meet_also_on_one_process():
    plan = Plan(
        (
            TimedFault("a", Suspend(NodeScope("a")), 0),
            TimedFault("b", Kill(NodeScope("a")), 0),
            TimedFault("cut", LINK, 0),
            TimedFault("cut again", LINK, 0),
        )
    )

    assert len(plan.steps(10)) == 8


@each_case(("at_ms", "for_ms"), [(-1, None), (0.5, None), (0, 0), (0, -1), (True, None)])
def test_a_fault_begins_in_the_run_and_lasts_a_while(at_ms, for_ms):
    with pytest.raises(FieldError):
        TimedFault("x", LINK, at_ms, for_ms)
