"""V15: a message that waits is delivered, and not before its time; from small traces, and by brute force."""

import random

import pytest

from analysis.trace_rows import SECOND, HandMadeTrace, found_in
from emulator.analysis.judge import broken
from emulator.analysis.oracles.delayed_messages import OVERDUE_NS
from emulator.analysis.report import judgements

END_S = 300
MASTER, SLAVE = "ba", "ba-s1"


def a_group():
    """A master that runs the special services from the start on."""
    trace = HandMadeTrace()
    trace.roles |= {MASTER: "broker", SLAVE: "broker"}
    trace.at(0).life(MASTER, "started").life(SLAVE, "started")
    return trace.believe(MASTER, True, "broker-a", "special_service")


def delay(trace, wait_s, key="k", source="timer", node=MASTER):
    return trace.message(node, "delayed", round(wait_s * 1_000), group="", client_id=source, key=key)


def deliver(trace, key="k", node=MASTER):
    return trace.message(node, "delivered", 0, group="", key=key)


def waits(trace, end_s=END_S):
    found = found_in(trace, end_s)
    (row,) = found["waits"]
    assert ("V15" in broken(found)) is row.violation
    return row


def test_who_comes_in_time_is_reported_with_its_delay_error_and_breaks_nothing():
    trace = deliver(delay(a_group().at(10), 30).at(40.9))
    row = waits(trace)

    assert (row.broker_name, row.topic, row.waiting_in) == ("broker-a", "t", "timer")
    assert (row.messages, row.delivered, row.late_ns / SECOND, row.violation) == (1, 1, 0.9, False)
    (judged,) = [judgement for judgement in judgements(found_in(trace, END_S)) if judgement.id == "V15"]
    assert judged.rows == ()


@pytest.mark.parametrize(("at_s", "early"), [(39.9995, 0), (39.998, 1)])
def test_a_millisecond_before_its_time_is_rounding_and_more_is_early(at_s, early):
    row = waits(deliver(delay(a_group().at(10), 30).at(at_s)))

    assert (row.early, row.violation) == (early, bool(early))


@pytest.mark.parametrize("kind", ["clock_skew", "clock_drift", "clock_jump"])
def test_a_broker_goes_by_its_clock_so_what_a_fault_makes_of_that_is_not_judged(kind):
    trace = a_group().at(5).fault("begin", "f", kind, MASTER)
    row = waits(deliver(delay(trace.at(10), 30).at(20)))

    assert (row.early, row.violation) == (1, False)


def test_a_slow_disk_is_no_moved_clock():
    trace = a_group().at(5).fault("begin", "f", "slow_disk", MASTER)

    assert waits(deliver(delay(trace.at(10), 30).at(20))).violation


@pytest.mark.parametrize(("after_s", "lost"), [(60, 0), (60.1, 1)])
def test_what_is_due_for_more_than_a_minute_at_a_broker_that_works_is_lost(after_s, lost):
    row = waits(delay(a_group().at(10), 30), 40 + after_s)

    assert (row.lost, row.waiting, row.violation) == (lost, 1 - lost, bool(lost))


def test_a_message_whose_broker_is_away_or_asleep_or_does_not_act_waits():
    def lost(event, minutes=4):
        trace = delay(a_group().at(10), 30).at(20).life(MASTER, event)
        return waits(trace, 20 + minutes * 60).lost

    assert [lost(event) for event in ("killed", "powered_off", "suspended", "stopped")] == [0, 0, 0, 0]
    resumed = delay(a_group().at(10), 30).at(20).life(MASTER, "suspended").at(200).life(MASTER, "resumed")
    assert [waits(resumed, end_s).lost for end_s in (259, 261)] == [0, 1]
    idle = delay(a_group().at(10), 30).at(20).believe(MASTER, False, "broker-a", "special_service")
    assert waits(idle).lost == 0


def test_a_slave_that_acts_is_not_the_broker_that_has_the_message():
    trace = delay(a_group().at(10), 30).at(20).life(MASTER, "killed")
    trace.believe(SLAVE, True, "broker-a", "special_service")

    assert waits(trace).lost == 0


def test_what_was_given_up_is_lost_unless_somebody_delivers_it_later():
    given_up = delay(a_group().at(10), 30).at(15).life(MASTER, "killed").at(41)
    given_up.message(SLAVE, "dropped", -1, group="", key="k")

    assert (waits(given_up).lost, waits(given_up).violation) == (1, True)
    assert waits(deliver(given_up.at(90))).lost == 0


def test_a_message_that_was_taken_back_is_not_lost_and_one_that_came_all_the_same_is_delivered():
    trace = delay(a_group().at(10), 30).at(20).message(MASTER, "recalled", 20_000, group="", key="k")

    assert (waits(trace).recalled, waits(trace).lost) == (1, 0)
    assert (waits(deliver(trace.at(41))).recalled, waits(trace).delivered) == (0, 1)


def test_who_comes_again_is_counted_and_not_judged_and_a_message_put_aside_twice_comes_twice():
    twice = deliver(deliver(delay(a_group().at(10), 30).at(41)).at(42))
    assert (waits(twice).again, waits(twice).violation) == (1, False)

    sent_twice = deliver(deliver(delay(delay(a_group().at(10), 30).at(11), 30).at(41)).at(42))
    assert (waits(sent_twice).messages, waits(sent_twice).again) == (2, 0)
    lost_once = deliver(delay(delay(a_group().at(10), 30).at(11), 30).at(41))
    assert (waits(lost_once).delivered, waits(lost_once).lost) == (1, 1)


def test_levels_and_the_timer_are_reported_apart_and_what_no_one_put_aside_is_nobodys():
    trace = delay(delay(a_group().at(10), 30, "a", "level"), 30, "b", "timer")
    deliver(deliver(deliver(trace.at(41), "a"), "b"), "unknown")

    assert [(row.waiting_in, row.delivered) for row in found_in(trace, END_S)["waits"]] == [("level", 1), ("timer", 1)]


def test_the_oracle_agrees_with_brute_force():
    for seed in range(200):
        chance = random.Random(seed)
        trace, events = a_group(), []
        for number in range(chance.randrange(1, 12)):
            key = str(chance.randrange(6))
            events.append((chance.randrange(0, 100_000), number, "delayed", key, chance.randrange(1, 120_000)))
        for number in range(chance.randrange(0, 14)):
            kind = chance.choice(["delivered"] * 4 + ["dropped", "recalled"])
            events.append((chance.randrange(0, 260_000), 100 + number, kind, str(chance.randrange(6)), 0))
        for at_ms, _, kind, key, wait_ms in sorted(events):
            trace.at(at_ms / 1_000).message(MASTER, kind, wait_ms, group="", client_id="timer", key=key)
        row = waits(trace)
        assert (row.messages, row.delivered, row.recalled, row.lost, row.early, row.again, row.late_ns) == naive(
            sorted(events)
        ), f"seed {seed}"
        assert row.waiting == row.messages - row.delivered - row.recalled - row.lost


def naive(events):
    """Key by key: each delivery takes the first of its key that is still to come, by due time."""
    totals = [0] * 6
    late_ns = 0
    for key in map(str, range(6)):
        mine = [event for event in events if event[3] == key]
        first = next((i for i, event in enumerate(mine) if event[2] == "delayed"), None)
        if first is None:
            continue
        mine = mine[first:]
        dues = sorted(at_ms + wait_ms for at_ms, _, kind, _, wait_ms in mine if kind == "delayed")
        came = [at_ms for at_ms, _, kind, _, _ in mine if kind == "delivered"]
        totals[0] += len(dues)
        totals[5] += max(0, len(came) - len(dues))
        for at_ms in came[: len(dues)]:
            due_ms = dues.pop(0)
            totals[1] += 1
            totals[4] += at_ms < due_ms - 1
            late_ns = max(late_ns, (at_ms - due_ms) * 1_000_000)
        if any(kind == "recalled" for _, _, kind, _, _ in mine):
            totals[2] += len(dues)
        else:
            dropped = sum(kind == "dropped" for _, _, kind, _, _ in mine)
            overdue = sum((END_S * 1_000 - due_ms) * 1_000_000 > OVERDUE_NS for due_ms in dues)
            totals[3] += min(len(dues), max(dropped, overdue))
    return (*totals, late_ns)
