"""Cases that operators reported: what harmed their business is a symptom with a number, and `why` explains it.

Each scenario in `cases` says what it shows, and which public issue reported it. Its healthy twin differs in the one
thing that makes it harmless, and has no such symptom.
"""

from itertools import takewhile
from pathlib import Path

import attrs
import pytest

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import RulesVerdict, Service, most_severe
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
from emulator.why.worst import worst_answers
from support.administrator import an_administrator, run_administered
from support.every_case import each_case

HERE = Path(__file__).parent / "cases"
LETTERS = Path(__file__).parents[2] / "examples" / "dead_letters.toml"
SECOND = 1_000_000_000


@attrs.frozen
class Case:
    """A scenario, what is wrong with it, and what makes it harmless."""

    file: Path
    kind: SymptomKind
    text: str
    """Part of the text of the symptom, with its number."""
    question: str
    """First word of the question that explains it."""
    answer: str
    """Part of a line of its answer."""
    harmful: str
    """Part of the file that makes it harmful."""
    harmless: str
    """What the twin has in its place."""

    def scenario(self):
        return loads(self.file.read_text(), self.file.name)

    def twin(self):
        text = self.file.read_text()
        assert self.harmful in text
        return loads(text.replace(self.harmful, self.harmless), self.file.name)


def case(name, *rest):
    file = LETTERS if name == LETTERS.stem else HERE / f"{name}.toml"
    return pytest.param(Case(file, *rest), id=name)


CASES = [
    case(
        "cut_from_proxy",
        SymptomKind.STALLED,
        "billing did not move in orders broker-a q2 for 119.3 s from 60.7 s on",
        "stall",
        "wait for group billing, and none has moved since 60.685 s",
        "for_s = 300",
        "for_s = 1",
    ),
    case(
        "simple_cut_from_proxy",
        SymptomKind.LAG,
        "billing was at least 410 messages of orders behind for 10 s from 100 s on",
        "lag",
        "messages wait for group billing in 4 queues",
        "for_s = 300",
        "for_s = 1",
    ),
    case(
        "short_poll",
        SymptomKind.LAG,
        "billing was at least 221 messages of orders behind for 10 s from 110 s on",
        "lag",
        "pulls get ILLEGAL_POLLING_TIME since 0.245 s",
        "awaitDuration = 1000",
        "awaitDuration = 30000",
    ),
    case(
        "refused_send",
        SymptomKind.FAILED_SENDS,
        "540 of 540 attempts of producer-1 to send failed (540 refused, 0 unanswered)",
        "sends",
        "proxy-1 answered ILLEGAL_DELIVERY_TIME (40012): the max delay time of message is too large",
        'timer = "48h"',
        'timer = "20s"',
    ),
    case(
        "group_denied",
        SymptomKind.LAG,
        "ConsumerGroup001 was at least 1,104 messages of topicB behind for 10 s from 110 s on",
        "lag",
        "was kept, since broker-a answered GET_CONSUMER_LIST_BY_GROUP (38) with SYSTEM_ERROR (1): ",
        'group_perms = ["groupA=DENY", ',
        'group_perms = ["ConsumerGroup001=SUB", ',
    ),
    case(
        "missed_at_the_start",
        SymptomKind.MISSED,
        "20 messages of news for screens (screen) came between its start and its first pull",
        "group",
        "screen misses 20 messages: its process started at 30.000 s",
        "for_s = 30",
        "for_s = 1",
    ),
    case(
        "ended_twice",
        SymptomKind.TRANSACTIONS,
        "1 transaction of orders had both ends carried out: the first was rolled back at 30.0 s and committed at 40.0",
        "topic",
        "orders",
        "local_transaction_s = 40",
        "local_transaction_s = 10",
    ),
    case(
        "committed_too_late",
        SymptomKind.DISCARDED,
        "1 message of orders was discarded after the last transaction check; the producer committed 1 of them, too",
        "transaction",
        "was discarded at",
        "local_transaction_s = 90",
        "local_transaction_s = 40",
    ),
    case(
        "committed_between_checks",
        SymptomKind.CHECKED,
        "5 half messages of orders were checked although committed, and put aside after the last check",
        "transaction",
        "was committed at 12.669 s, and a copy of its half message, stored for a check, was put aside at 21.000 s",
        "transactionTimeOut = 3000",
        "transactionTimeOut = 60000",
    ),
    case(
        "clock_behind",
        SymptomKind.AGAIN,
        "30 transactions of orders were delivered once more, while a wall clock was wrong",
        "topic",
        "orders",
        "skew shop -20000",
        "skew shop -1000",
    ),
    case(
        "slow_popping",
        SymptomKind.POPPED_AGAIN,
        "revived 2 popped messages of billing 10 times although a listener consumed them",
        "group",
        "billing",
        "consume_ms = 15000",
        "consume_ms = 2000",
    ),
    case(
        "cut_for_long",
        SymptomKind.STALLED,
        "did not move in news broker-a q0 for 242.0 s from 10.0 s on",
        "stall",
        "screen does not reach broker-a since 10.005 s",
        "cut screen broker-a",
        "cut screen ns-1",
    ),
    case(
        "suspended_for_long",
        SymptomKind.STALLED,
        "did not move in news broker-a q0 for 240.5 s from 10.0 s on",
        "stall",
        "screen was suspended at 10.000 s",
        "for_s = 240",
        "for_s = 5",
    ),
    case(
        "late_reminders",
        SymptomKind.DELIVERY,
        "was due at 10.0 s was delivered 66.0 s late by broker-a",
        "topic",
        "broker-a was killed at 10.000 s",
        "for_s = 65",
        "for_s = 2",
    ),
    case(
        "late_group",
        SymptomKind.LATENCY,
        "took 41.5 s to newcomers",
        "lag",
        "no member of it had a queue before 41.",
        "for_s = 40",
        "for_s = 1",
    ),
    case(
        "dead_letters",
        SymptomKind.DEAD_LETTERS,
        "158 messages of orders for audit went to the dead letter queue, from 42.3 s on",
        "group",
        "audit",
        "fail_times = 100",
        "fail_times = 1",
    ),
    case(
        "orderly_fails",
        SymptomKind.FAILING,
        "failed 88 times from 31.7 s to 119.2 s: 88 times with orders/broker-a/0@0 since 31.7 s, for which its queue",
        "message",
        "by group billing (consumer-1), whose listener failed 88 times, from 31.719 s to 119.2",
        "fail_times = 1000\n",
        "fail_times = 0\n",
    ),
    case(
        "fifo_fails",
        SymptomKind.FAILING,
        "failed 5 times from 1.3 s to 47.3 s: 5 times with steps/broker-a/0@0",
        "message",
        "consumed steps/broker-a/0@0 for group workers: its listener failed",
        "fail_times = 1000\n",
        "fail_times = 0\n",
    ),
    case(
        "popping_fails",
        SymptomKind.FAILING,
        "failed 6 times from 10.7 s to 27.6 s: with 3 messages and 3 times with copies in its retry topic",
        "message",
        "was consumed 3 times by group billing (consumer-1), whose listener failed 2 times",
        "fail_times = 2\n",
        "fail_times = 0\n",
    ),
    case(
        "simple_fails",
        SymptomKind.FAILING,
        "the listener of billing failed 20 times from 0.7 s to 19.7 s: with 20 messages, such as orders/",
        "message",
        "was consumed 2 times by group billing (consumer-1), whose listener failed once",
        "fail_times = 1\n",
        "fail_times = 0\n",
    ),
    case(
        "push5_fails",
        SymptomKind.FAILING,
        "the listener of billing failed 20 times from 1.3 s to 19.7 s: with 20 messages, such as orders/",
        "message",
        "was consumed 2 times by group billing (consumer-1), whose listener failed once",
        "fail_times = 1\n",
        "fail_times = 0\n",
    ),
]


CAUSES = {
    "committed_between_checks": "no disturbance: a transaction without a decision is checked transactionCheckMax times",
    "missed_at_the_start": "kill screen at 0.0 s",
    "ended_twice": "no disturbance: a transaction without a decision is checked transactionCheckMax times",
    "committed_too_late": "no disturbance: a transaction without a decision is checked transactionCheckMax times",
    "clock_behind": "clock_skew shop at 20.0 s",
    "slow_popping": "no disturbance: the listener takes longer than the invisible time",
    "cut_for_long": "cut screen <-> broker-a at 10.0 s",
    "suspended_for_long": "suspend screen at 10.0 s",
    "late_reminders": "kill broker-a at 10.0 s",
    "late_group": "no disturbance: ",
    "dead_letters": "no disturbance: the listener fails as often as maxReconsumeTimes allows",
    **dict.fromkeys(
        ("orderly_fails", "fifo_fails", "popping_fails", "simple_fails", "push5_fails"),
        "no disturbance: the listener fails",
    ),
    **dict.fromkeys(("cut_from_proxy", "simple_cut_from_proxy"), "cut consumer-1 <-> proxy-1 at 60.0 s"),
    **dict.fromkeys(
        ("short_poll", "refused_send", "group_denied"), "no disturbance: brokers and proxies refuse what clients ask"
    ),
}
"""Mapping case -> the cause that is named for it: what is on its chain, or the rule in which the chain ends."""


def judged(path):
    run = open_run(path)
    return judge_run(run), run


def run(scenario, runs):
    return judged(run_scenario(scenario, runs=runs).path)


def kinds(report):
    return {item.kind for item in most_severe(report)}


def symptom_of(report, kind):
    (item,) = [element for element in most_severe(report) if element.kind == kind]
    return item


def answered(report, run, kind):
    """What `why` without a question answers about the symptom of a kind."""
    lines = [line for item in worst_answers(report, run) for line in item.lines]
    first = lines.index(f"{kind}: {symptom_of(report, kind).text}")
    answer = takewhile(lambda line: not line or line.startswith(" "), lines[first + 1 :])
    return [line for line in answer if line]


# --- scenarios ------------------------------------------------------------------------------


def test_each_case_has_a_public_issue_or_says_what_it_shows():
    for path in HERE.iterdir():
        assert path.read_text().startswith("# "), path.name


@pytest.mark.parametrize("case", CASES)
def test_what_harms_the_business_is_a_symptom_that_why_explains_and_its_twin_has_none(case, tmp_path):
    report, directory = run(case.scenario(), tmp_path)
    twin, _ = run(case.twin(), tmp_path)

    assert report.verdict is RulesVerdict.VALID
    found = symptom_of(report, case.kind)
    assert case.text in found.text
    answer = answered(report, directory, case.kind)
    (cause,) = [line for line in answer if line.startswith("  cause: ")]
    assert cause.startswith(f"  cause: {CAUSES[case.file.stem]}")
    (question,) = [line for line in answer if line.startswith("  $ rmqemu why ")]
    assert f" {case.question} " in question
    assert any(case.answer in line for line in answer), answer
    assert twin.verdict is RulesVerdict.VALID
    assert case.kind not in kinds(twin)


def test_a_queue_waits_for_the_message_its_listener_fails_with_and_why_says_what_keeps_it_from_being_given_up(tmp_path):
    text = (HERE / "orderly_fails.toml").read_text()
    report, directory = run(loads(text, "orderly"), tmp_path)

    assert broken(report) == ()
    for kind in (SymptomKind.STALLED, SymptomKind.AGAIN):
        assert symptom_of(report, kind).cause == "no disturbance: the listener fails"
    first, times, denied, _ = answer_of_run(["lag billing"], directory)
    assert "the listener of consumer-1 fails, and gets the message again before any other one of its queue" in first
    assert "it failed 88 times with orders/broker-a/0@0, from 31.719 s to" in times
    assert denied.endswith("denies consumer-1 SEND_MESSAGE_V2, which needs Sub of Group:CLIENT_INNER_PRODUCER")


@pytest.mark.parametrize("name", ["popping_fails", "simple_fails", "push5_fails"])
def test_a_listener_that_fails_takes_no_longer_than_the_invisible_time(name, tmp_path):
    report, _ = run(loads((HERE / f"{name}.toml").read_text(), name), tmp_path)

    assert sum(row.revived for row in report["popped"]) > 0
    assert {row.consumed_and_revived for row in report["popped"]} == {0}
    assert SymptomKind.POPPED_AGAIN not in kinds(report)


def test_queues_wait_for_a_thread_that_is_slow_with_messages_of_others(tmp_path):
    report, _ = run(loads((HERE / "one_slow_thread.toml").read_text(), "one-slow-thread"), tmp_path)

    assert max(row.end_ns - row.start_ns for row in report["stalls"]) > 180 * SECOND
    assert broken(report) == ()


@each_case(
    ("name", "old", "new", "statuses"),
    [
        ("short_poll", "awaitDuration = 1000", "awaitDuration = 2000", ["ILLEGAL_POLLING_TIME"]),
        ("short_poll", "awaitDuration = 1000", "awaitDuration = 2001", []),
        ("short_poll", "awaitDuration = 1000", "invisibleDuration = 9999", ["ILLEGAL_INVISIBLE_TIME"]),
        ("short_poll", "awaitDuration = 1000", "invisibleDuration = 10000", []),
        ("refused_send", 'timer = "48h"', 'timer = "48h"', ["ILLEGAL_DELIVERY_TIME"]),
        ("refused_send", 'timer = "48h"', 'timer = "24h"', []),
        ("refused_send", 'timer = "48h"', "", ["MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"]),
    ],
)
def test_calls_that_a_proxy_refuses_are_warned_about_before_the_run(name, old, new, statuses):
    warnings = [item.line() for item in check(loads((HERE / f"{name}.toml").read_text().replace(old, new), name))]

    assert [line.rpartition(" ")[2] for line in warnings] == statuses


def test_a_group_that_joins_late_is_warned_about_before_it_runs():
    text = (HERE / "late_group.toml").read_text()
    (warning,) = check(loads(text, "late"))

    assert (warning.name, warning.where) == ("first-offset-of-a-late-group", "newcomers")
    assert check(loads(text.replace("for_s = 40", "for_s = 1"), "soon")) == ()
    assert check(loads(text.replace("LAST_OFFSET", "FIRST_OFFSET"), "all")) == ()


# --- faults at their instants ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spans"),
    [
        ("at_zero", {"consumer": (0, 10), "broker": (0.1, 5.1)}),
        ("cold_start", {"broker": (10, 15), "nameserver": (20, 25)}),
    ],
)
def test_faults_at_the_start_begin_and_end_at_their_instants_and_hit(name, spans, tmp_path):
    path = run_scenario(loads((HERE / f"{name}.toml").read_text(), name), runs=tmp_path).path
    report, _ = judged(path)

    assert report.verdict is RulesVerdict.VALID
    found = {item.fault_id: item for item in report["faults"]}
    assert {name: (item.start_ns / SECOND, item.end_ns / SECOND) for name, item in found.items()} == spans
    assert all(item.hits > 0 and not item.censored for item in found.values())


# --- administrators -------------------------------------------------------------------------


def administered(name, script, runs):
    """A scenario while an administrator does something."""

    async def acting(stage):
        await script(stage, await an_administrator(stage))

    path, _ = run_administered(loads((HERE / f"{name}.toml").read_text(), name), runs, acting)
    return judged(path)


def created_before(election_s):
    async def create(stage, admin):
        await stage.at_ms((60 - election_s) * 1_000)
        await admin.create_topic("news", on=["broker-a"])

    return create


def test_a_topic_that_is_created_just_before_an_election_is_lost_and_one_that_was_copied_is_not(tmp_path):
    lost, directory = administered("lost_topic", created_before(0.5), tmp_path)
    copied, _ = administered("lost_topic", created_before(20), tmp_path)

    assert (lost.verdict, copied.verdict) == (RulesVerdict.VALID, RulesVerdict.VALID)
    found = symptom_of(lost, SymptomKind.TOPIC_LOST)
    assert "news was lost at broker-a-s1, which became master of broker-a at 60." in found.text
    cause, *answer = answered(lost, directory, SymptomKind.TOPIC_LOST)
    assert cause == "  cause: kill broker-a at 60.0 s"
    assert any(" topic news at 60." in line for line in answer)
    assert any("no broker of broker-a has it" in line for line in answer), answer
    assert SymptomKind.TOPIC_LOST not in kinds(copied)


async def recreate(stage, admin):
    await stage.at_ms(60 * 1_000)
    await admin.delete_topic("orders")
    await stage.at_ms(70 * 1_000)
    await admin.create_topic("orders", queues=2)


async def grow(stage, admin):
    await stage.at_ms(60 * 1_000)
    await admin.create_topic("orders", queues=8)


async def shrink(stage, admin):
    await stage.at_ms(60 * 1_000)
    await admin.create_topic("orders", queues=1)


@pytest.mark.parametrize(
    ("name", "script"), [("growing", grow), ("growing", shrink), ("sold_out", recreate), ("sold_out", grow)]
)
def test_topics_that_administrators_change_break_no_rule(name, script, tmp_path):
    report, _ = administered(name, script, tmp_path)

    assert broken(report) == ()
    assert report.verdict is RulesVerdict.VALID
    assert SymptomKind.LOST not in kinds(report)


def test_a_topic_that_is_deleted_and_created_again_while_producers_send_loses_messages(tmp_path):
    """Members go on at their old offsets, are above the end of the new queues, and begin at this end."""
    report, _ = administered("administered", recreate, tmp_path)

    assert broken(report) == ("V7",)
    assert "billing will never get 75 messages" in symptom_of(report, SymptomKind.LOST).text
    assert {row.reused for row in report["losses"]} == {row.lost for row in report["losses"]}


async def switch_off(stage, admin):
    await stage.at_ms(30 * 1_000)
    await admin.update_group("billing", consume_enable=False)


async def switch_off_and_on(stage, admin):
    await switch_off(stage, admin)
    await stage.at_ms(31 * 1_000)
    await admin.update_group("billing", consume_enable=True)


def test_a_group_that_is_switched_off_waits_by_the_will_of_an_administrator(tmp_path):
    off, directory = administered("administered", switch_off, tmp_path)
    twin, _ = administered("administered", switch_off_and_on, tmp_path)

    assert (off.verdict, off.service) == (RulesVerdict.VALID, Service.PAGING)
    assert "billing was at least 4" in symptom_of(off, SymptomKind.LAG).text
    _, *answer = answered(off, directory, SymptomKind.LAG)
    switched = "group billing is switched off (consumeEnable false)"
    assert any(switched in line for line in answer), answer
    assert any(switched in line for line in answer_of_run(("lag", "billing"), directory))
    assert twin.verdict is RulesVerdict.VALID
    assert not kinds(twin) & {SymptomKind.LAG, SymptomKind.STALLED}
