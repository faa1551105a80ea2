"""V18: messages that RocketMQ gives up, from small traces, and by brute force over random ones."""

import random

import pytest

from analysis.trace_rows import GROUP, SECOND, TOPIC, HandMadeTrace, found_in
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import broken
from emulator.analysis.oracles.business_losses import BUSINESS_LOSSES
from emulator.spec.model.service_limits import ServiceLimits
from support.every_case import each_case

END_S = 200
TRACES = 60
DLQ = f"%DLQ%{GROUP}"
DISCARDS = ("checked_too_often", "too_old", "escape_failed")


def a_group():
    """A member that owns a queue with ten messages, and has consumed two of them."""
    trace = HandMadeTrace()
    trace.roles |= {"broker-a": "broker", "shop": "producer"}
    trace.life("c1", "ready", GROUP, role="consumer").subscribe("c1")
    trace.at(1).own("c1", "acquired", offset=0).store(*range(10))
    return trace.at(2).consume("c1", 0, 1).commit("c1", 2).at(10)


def dead_letter(trace, offset=0, group=GROUP, topic=TOPIC):
    return trace.message("broker-a", "dead_lettered", offset, topic=f"%DLQ%{group}", group=group, key=f"{topic} x 0 7")


def discard(trace, reason, key="k", topic=TOPIC, group=""):
    return trace.message("broker-a", "discarded", -1, topic=topic, group=group, tags=reason, key=key)


def decide(trace, state="commit", key="k"):
    return trace.message("shop", "decided", -1, group="", tags=state, key=key)


def end(trace, state="commit", key="k"):
    return trace.message("broker-a", "ended", 0 if state == "commit" else -1, group="", tags=state, key=key)


def reset(trace, offset, group=GROUP):
    return trace.message("broker-a", "reset", offset, group=group)


def expire(trace, offset):
    return trace.message("broker-a", "expired", offset, group="")


def losses(trace):
    return found_in(trace, END_S)["business_losses"]


def amounts(trace):
    return {(loss.group, loss.node, loss.topic, loss.reason.value): loss.messages for loss in losses(trace)}


def symptoms_of(trace, **limits):
    context = Context(END_S * SECOND, {}, {}, ServiceLimits(**limits))
    return list(BUSINESS_LOSSES.symptoms(losses(trace), context))


# --- each reason ----------------------------------------------------------------------------


def test_a_group_that_consumes_everything_loses_nothing():
    assert losses(a_group().consume("c1", *range(2, 10)).commit("c1", 10)) == ()


def test_dead_letters_are_counted_for_the_topic_that_they_came_from():
    trace = dead_letter(dead_letter(a_group()).at(20), 1)
    dead_letter(trace.at(30), group="another", topic="u")
    item, other = sorted(losses(trace), key=lambda row: row.messages, reverse=True)

    assert (item.group, item.topic, item.reason, item.messages) == (GROUP, TOPIC, "dead_letter", 2)
    assert (item.start_ns, item.end_ns) == (10 * SECOND, 20 * SECOND)
    assert (other.group, other.topic, other.messages) == ("another", "u", 1)


@pytest.mark.parametrize("reason", [*DISCARDS, "no_retry_queue"])
def test_only_a_half_message_that_no_other_broker_took_is_a_violation(reason):
    group = GROUP if reason == "no_retry_queue" else ""
    trace = discard(a_group(), reason, group=group)
    (row,) = losses(trace)

    assert (row.group, row.topic, row.reason, row.messages, row.committed) == (group, TOPIC, reason, 1, 0)
    assert row.violation is (reason == "escape_failed")
    assert ("V18" in broken(found_in(trace, END_S))) is row.violation


@pytest.mark.parametrize("decided_s", [5, 50])
def test_a_discarded_half_message_whose_producer_committed_before_or_after_is_named(decided_s):
    trace = a_group()
    if decided_s < 10:
        decide(trace.at(decided_s))
    discard(trace.at(10), "checked_too_often")
    if decided_s > 10:
        decide(trace.at(decided_s))
    (row,) = losses(decide(trace, "rollback", key="another"))

    assert (row.messages, row.committed) == (1, 1)
    (symptom,) = symptoms_of(trace)
    assert "1 message of t was discarded after the last transaction check; the producer committed 1" in symptom.text


def test_a_half_message_that_was_delivered_before_it_was_discarded_is_no_loss():
    assert losses(discard(end(decide(a_group())).at(20), "checked_too_often")) == ()
    assert len(losses(discard(end(decide(a_group(), "rollback"), "rollback").at(20), "checked_too_often"))) == 1
    assert len(losses(end(decide(discard(a_group(), "checked_too_often").at(20))))) == 1


@pytest.mark.parametrize(("give_up", "reason"), [(reset, "reset"), (expire, "expired")])
def test_what_lies_between_the_offset_of_a_group_and_the_new_one_is_given_up(give_up, reason):
    assert amounts(give_up(a_group(), 7)) == {(GROUP, "", TOPIC, reason): 5}
    assert amounts(give_up(a_group(), 90)) == {(GROUP, "", TOPIC, reason): 8}
    assert amounts(give_up(a_group(), 2)) == amounts(give_up(a_group(), 0)) == {}
    assert amounts(give_up(give_up(a_group(), 5).at(20), 7)) == {(GROUP, "", TOPIC, reason): 5}


def test_a_reset_of_one_group_gives_up_nothing_of_another():
    assert amounts(reset(a_group(), 7, group="another")) == {}


def test_what_a_reset_skipped_does_not_expire_and_a_dead_letter_has_been_passed():
    trace = expire(reset(dead_letter(a_group()), 5).at(20), 7)
    assert amounts(trace) == {
        (GROUP, "", TOPIC, "dead_letter"): 1,
        (GROUP, "", TOPIC, "reset"): 3,
        (GROUP, "", TOPIC, "expired"): 2,
    }


# --- groups that broadcast ------------------------------------------------------------------


def broadcasting(*, started_s, pulls_s, restarts=False):
    """A message a second from 1 s on, and a member that pulls from the end some time after it started."""
    trace = HandMadeTrace()
    trace.roles |= {"broker-a": "broker"}
    if restarts:
        trace.life("c1", "started", GROUP, role="consumer").life("c1", "killed")
    for offset in range(60):
        if offset == started_s:
            trace.at(started_s).life("c1", "started", GROUP, role="consumer").subscribe("c1", model="BROADCASTING")
        if offset == pulls_s:
            trace.at(pulls_s).own("c1", "acquired", offset=offset)
        trace.at(offset + 0.5).store(offset)
    for offset in range(pulls_s, 60):
        trace.consume("c1", offset)
    return trace


@pytest.mark.parametrize(("started_s", "pulls_s"), [(20, 24), (30, 31)])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_member_misses_what_comes_between_its_start_and_its_first_pull(started_s, pulls_s, restarts):
    trace = broadcasting(started_s=started_s, pulls_s=pulls_s, restarts=restarts)

    assert amounts(trace) == {(GROUP, "c1", TOPIC, "missed_at_start"): pulls_s - started_s}
    (symptom,) = symptoms_of(trace)
    assert symptom.kind is SymptomKind.MISSED
    assert f"for {GROUP} (c1)" in symptom.text


def test_a_first_process_that_starts_with_its_producers_misses_nothing_and_a_restarted_one_does():
    assert losses(broadcasting(started_s=2, pulls_s=4)) == ()
    assert amounts(broadcasting(started_s=2, pulls_s=4, restarts=True)) != {}


def test_a_member_that_pulls_in_the_instant_of_its_start_misses_nothing():
    assert losses(broadcasting(started_s=20, pulls_s=20)) == ()


# --- symptoms -------------------------------------------------------------------------------


@pytest.mark.parametrize(("at_least", "severe"), [(1, True), (2, True), (3, False)])
def test_fewer_messages_than_the_limit_are_no_symptom(at_least, severe):
    (symptom,) = symptoms_of(dead_letter(dead_letter(a_group()), 1), given_up_messages=at_least)

    assert (symptom.severity > 1) is severe
    assert symptom.text == "2 messages of t for g went to the dead letter queue, from 10.0 s on"


def test_a_reset_is_a_symptom_that_never_pages():
    (skipped,), (expired,) = symptoms_of(reset(a_group(), 10)), symptoms_of(expire(a_group(), 10))

    assert 1 < skipped.severity <= ServiceLimits().paging_times < expired.severity
    assert (skipped.kind, expired.kind) == (SymptomKind.SKIPPED, SymptomKind.EXPIRED)


# --- brute force ----------------------------------------------------------------------------


def random_losses(seed):
    chance = random.Random(seed)
    trace = a_group()
    for second in range(11, 40):
        trace.at(second)
        subject, key = chance.random(), f"k{chance.randrange(6)}"
        if subject < 0.2:
            dead_letter(trace, second, chance.choice((GROUP, "h")), chance.choice((TOPIC, "u")))
        elif subject < 0.4:
            discard(trace, chance.choice(DISCARDS), key, chance.choice((TOPIC, "u")))
        elif subject < 0.55:
            decide(trace, chance.choice(("commit", "rollback")), key)
        elif subject < 0.65:
            end(trace, chance.choice(("commit", "rollback")), key)
        elif subject < 0.75:
            reset(trace, chance.randrange(12), chance.choice((GROUP, "h")))
        elif subject < 0.85:
            expire(trace, chance.randrange(12))
        else:
            trace.commit("c1", chance.randrange(3, 10))
    return trace


def naive_losses(trace):
    """(group, topic, reason) -> messages, committed: by looking at all rows again for each row."""
    rows, found = trace.rows["messages"], {}

    def add(key, messages, committed=0):
        before = found.get(key, (0, 0))
        found[key] = (before[0] + messages, before[1] + committed)

    done = 0
    for place, row in enumerate(rows):
        event, group, topic, offset, tags, key = row[5], row[6], row[7], row[10], row[13], row[14]
        if event == "dead_lettered":
            add((group, key.split(" ")[0], "dead_letter"), 1)
        elif event == "discarded":
            ended = [item for item in rows[:place] if item[5] == "ended" and item[14] == key and item[13] == "commit"]
            lines = [item for item in rows if item[5] == "decided" and item[14] == key and item[13] == "commit"]
            if not ended:
                add((group, topic, tags), 1, bool(lines))
        elif event == "consumed":
            done = max(done, offset + 1)
        elif event == "committed":
            done = max(done, offset)
        elif event in ("reset", "expired") and group in ("", GROUP):
            if min(offset, 10) > done:
                add((GROUP, topic, event), min(offset, 10) - done)
            done = max(done, offset)
    return found


def test_losses_equal_brute_force():
    reasons = set()
    for seed in range(TRACES):
        trace = random_losses(seed)
        found = {(loss.group, loss.topic, loss.reason.value): (loss.messages, loss.committed) for loss in losses(trace)}
        assert found == naive_losses(trace), seed
        reasons |= {reason for _, _, reason in found}
    assert reasons == {*DISCARDS, "dead_letter", "reset", "expired"}


# --- half messages that another application of the group rolled back ------------------------

PAY, REFUND = "7F016401", "7F016402"
OF_PRODUCERS = {"127.1.100.1": "pay", "127.1.100.2": "refund", "127.1.100.3": "pay-2"}
ROLLED_BACK = "rolled_back_by_another"


def half(trace, sender, number, topic):
    key = f"{sender}{number:024X}"
    trace.message("broker-a", "half", number, topic=topic, group="", key=key)
    return key


def rolled_back(producer, *, of_producer="refunds", ends=("rollback",)):
    """A half message of `pay`; what a broker carries out after this producer has answered."""
    trace = a_group()
    trace.roles |= dict.fromkeys(OF_PRODUCERS.values(), "producer")
    if of_producer:
        half(trace, REFUND if producer == "refund" else f"{PAY[:-2]}03", 1, of_producer)
    key = half(trace, PAY, 2, "payments")
    for state in ends:
        trace.message(producer, "decided", -1, topic="payments", group="", tags=state, key=key)
        trace.message(
            "broker-a", "ended", 3 if state == "commit" else -1, topic="payments", group="", tags=state, key=key
        )
    found = found_in(trace, END_S, names=OF_PRODUCERS)["business_losses"]
    return [(row.topic, row.messages, row.violation) for row in found if row.reason == ROLLED_BACK]


def test_what_a_producer_rolled_back_that_sends_other_topics_is_lost_and_breaks_no_rule():
    assert rolled_back("refund") == [("payments", 1, False)]


@each_case(
    ("producer", "given"),
    [
        ("pay", {"of_producer": ""}),  # its own
        ("pay-2", {"of_producer": "payments"}),  # of a second process of the application
        ("refund", {"of_producer": ""}),  # a process that only answers
        ("refund", {"ends": ("commit",)}),
        ("refund", {"ends": ("commit", "rollback")}),  # it was delivered before
        ("refund", {"ends": ("unknown",)}),
    ],
)
def test_what_its_own_application_rolled_back_was_meant_to_be(producer, given):
    assert rolled_back(producer, **given) == []
