"""Two faults that overlap: the cause is the one without which the harm is not there, not the one that began last."""

import pytest

from emulator.analysis.findings.cause_share import RULE
from emulator.analysis.findings.impact import IMPACTS
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import judge_run
from emulator.analysis.measures.phases import PHASES
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.report import symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from emulator.why.worst import worst_answers

# A member that one broker of two forgets for 200 s: each message of its queues there is consumed twice.
HALF_SEEN = """
[scenario]
name = "half-seen"
run_for_s = 420

[nameserver]
count = 2

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[topic]]
name = "orders"
queues = 8

[[topic]]
name = "%RETRY%order-processors"
queues = 1

[[consumer]]
group = "order-processors"
count = 4
topics = ["orders"]

[[producer]]
group = "order-takers"
topic = "orders"
rate_per_s = 5

[[fault]]
id = "half-seen"
do = "cut consumer-2 broker-b one-way"
at_s = 60
for_s = 300
"""
INNOCENT_DELAY = """
[[fault]]
id = "slow-link"
do = "delay 100 consumer-1 broker-a"
at_s = 90
for_s = 240
"""
# What a slow producer sends is repeated as well, and a freeze of two seconds hides nobody for long enough.
SLOW_PRODUCER_AND_FREEZE = """
[[fault]]
id = "slow-producer"
do = "delay 50 producer-1 broker-a"
at_s = 90
for_s = 240

[[fault]]
id = "freeze"
do = "suspend consumer-3"
at_s = 200
for_s = 2
"""
SUBJECT = "order-processors"
# An ordered group: the broker keeps the dead member's queue locked for 60 s. What is left out: the lag is 10,107
# message-seconds without the new queue, and 717 without the death, of 10,095.
LOCKED_BY_THE_DEAD = """
[scenario]
name = "locked-by-the-dead"
run_for_s = 240

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[topic]]
name = "orders"
queues = 3

[[topic]]
name = "%RETRY%order-processors"
queues = 1

[[consumer]]
group = "order-processors"
count = 3
topics = ["orders"]
consume_ms = 50
options = { consumeOrderly = true }

[[producer]]
group = "order-takers"
topic = "orders"
rate_per_s = 20

[[fault]]
id = "death"
do = "kill consumer-2"
at_s = 100

[[admin]]
at_s = 110
do = "update-topic orders queues 4"
"""


def judged(tmp_path_factory, more="", of=HALF_SEEN):
    scenario = loads(of + more, "of_two_faults.toml")
    path = run_scenario(scenario, level=TraceLevel.FINDINGS, runs=tmp_path_factory.mktemp("runs")).path
    run = open_run(path)
    return judge_run(run), run


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return judged(tmp_path_factory)


@pytest.fixture(scope="module")
def delayed(tmp_path_factory):
    return judged(tmp_path_factory, INNOCENT_DELAY)


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    return judged(tmp_path_factory, SLOW_PRODUCER_AND_FREEZE)


def causes(report, kind):
    """Mapping disturbance -> share, of the impact of a kind on the group."""
    (impact,) = [item for item in report.of(IMPACTS) if (item.kind, item.subject) == (str(kind), SUBJECT)]
    return {item.id: item.total for item in impact.causes if item.kind != RULE}


def disturbances(rows):
    return {item.id for row in rows for item in row.causes if item.kind != RULE}


@pytest.mark.parametrize("of", ["alone", "delayed", "frozen"])
def test_repeated_messages_come_from_the_cut_that_hid_a_member_whatever_else_there_is(of, request):
    report, _ = request.getfixturevalue(of)

    assert causes(report, SymptomKind.AGAIN) == {"half-seen": pytest.approx(1, abs=0.02)}
    assert disturbances(report.of(OVERLAPS.table)) == {"half-seen"}


def test_the_first_screen_names_the_cut_and_not_the_delay(delayed):
    report, _ = delayed
    (again,) = [item for item in symptoms(report) if item.kind is SymptomKind.AGAIN]

    assert [item.id for item in again.causes] == ["half-seen"]


def test_why_is_asked_at_the_worst_instant_and_names_the_cause_and_what_may_end_it(alone):
    report, run = alone
    lines = [line for item in worst_answers(report, run) for line in item.lines]
    first = next(place for place, line in enumerate(lines) if line.startswith("messages consumed again: "))

    assert lines[first + 1] == "  cause: cut consumer-2 -> broker-b at 60.0 s"
    assert lines[first + 2].startswith(
        "  may end it, not tried (rmqemu why --remedies tries them): channelExpiredTimeout"
    )
    question = next(line for line in lines[first:] if line.startswith("  $ rmqemu why "))
    instant_s = float(question.split()[-1].removesuffix("s"))
    assert 180 < instant_s < 400


def test_a_phase_has_the_repeats_that_happened_in_it(alone):
    report, _ = alone
    by_begin = {round(row.start_ns / 1e9): row.again for row in report.of(PHASES)}

    assert by_begin[60] + by_begin[360] > 130
    assert by_begin[60] > 10 * by_begin[360], "the cut lasts from 60 s to 360 s, and so do the repeats"


def test_messages_of_a_queue_that_is_locked_for_a_dead_member_wait_for_its_death(tmp_path_factory):
    report, _ = judged(tmp_path_factory, of=LOCKED_BY_THE_DEAD)
    (lag,) = [item for item in report.of(IMPACTS) if item.kind == str(SymptomKind.LAG)]

    assert lag.causes[0].id == "death"
    assert lag.causes[0].total > 0.75
