"""Symptoms: each appears above its limit and not below, the most severe first; chapters of the story name them."""

import pytest

from analysis.trace_rows import SCENARIO, HandMadeTrace, write_run
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.rendering.shown_report import analyze, as_text
from emulator.analysis.rendering.story import story
from emulator.analysis.report import RulesVerdict, Service, most_severe, symptoms
from nodes.protocol.codes import RequestCode, ResponseCode

ROUTE = {"broker-a": {"addrs": {"0": "127.1.2.1:10911"}, "queues": [4, 4, 6]}}


def begun():
    trace = HandMadeTrace().life("broker-a", "started", role="broker").life("ns-1", "started", role="nameserver")
    trace.life("p1", "started", role="producer").life("c1", "started", "g", role="consumer").subscribe("c1")
    return trace.own("c1", "acquired", 0, offset=0)


def reported(trace, folder, end_s=180):
    return analyze(write_run(trace, folder / "r", end_s))


def kinds(trace, folder, end_s=180):
    return [symptom.kind for symptom in symptoms(reported(trace, folder, end_s))]


def flowing(waits_s, end_s=180):
    """A message a second, each consumed after so long."""
    trace = begun()
    for at_s in range(1, end_s):
        trace.at(at_s).store(at_s - 1)
        if at_s > waits_s:
            trace.at(at_s + 0.1).consume("c1", at_s - 1 - waits_s)
    return trace


def test_a_run_without_symptoms_says_nothing(tmp_path):
    report = reported(flowing(0), tmp_path)
    assert symptoms(report) == ()
    assert as_text(report).startswith("rules valid  service calm  r  ")


@pytest.mark.parametrize(
    ("limits", "service"),
    [
        ({}, Service.CALM),
        ({"late_p99_ms": 3_099}, Service.DEGRADED),
        ({"late_p99_ms": 3_100}, Service.CALM),
        ({"late_p99_ms": 1_034}, Service.DEGRADED),
        ({"late_p99_ms": 1_033}, Service.PAGING),
        ({"late_p99_ms": 1_033, "paging_times": 4}, Service.DEGRADED),
    ],
)
def test_the_limits_of_the_scenario_say_what_is_degraded_and_what_pages(tmp_path, limits, service):
    scenario = {**SCENARIO, "service": limits}
    report = analyze(write_run(flowing(3), tmp_path / "r", 180, scenario=scenario))

    assert (report.service, report.verdict) == (service, RulesVerdict.VALID)
    assert as_text(report).partition("rules valid  ")[2].startswith(f"service {service}  r  ")
    assert bool(symptoms(report)) is (service is not Service.CALM)


def test_lost_messages_page_whatever_the_limits_are(tmp_path):
    trace = begun().at(5).store(0, 1, 2).consume("c1", 0, 2).commit("c1", 3)
    scenario = {**SCENARIO, "service": {"paging_times": 1_000_000}}

    assert analyze(write_run(trace, tmp_path / "r", 180, scenario=scenario)).service is Service.PAGING


@pytest.mark.parametrize(("waits_s", "found"), [(3, []), (25, [SymptomKind.LATENCY, SymptomKind.LAG])])
def test_lag_and_late_messages(tmp_path, waits_s, found):
    assert kinds(flowing(waits_s), tmp_path) == found


def test_few_messages_that_wait_page_no_one(tmp_path):
    assert kinds(begun().at(100).store(0, 1, 2), tmp_path, 120) == []


@pytest.mark.parametrize(("failed", "found"), [(1, []), (3, [SymptomKind.FAILED_SENDS])])
def test_failed_sends(tmp_path, failed, found):
    trace = begun().at(5).ask("p1", "broker-a", RequestCode.SEND_MESSAGE_V2, 0, times=200 - failed)
    trace.at(6).ask("p1", "broker-a", RequestCode.SEND_MESSAGE_V2, ResponseCode.SYSTEM_BUSY, times=failed)
    assert kinds(trace, tmp_path) == found


@pytest.mark.parametrize(
    ("topic", "lasts_s", "found"),
    [("t", 0.5, []), ("t", 20, [SymptomKind.UNWRITABLE]), ("RMQ_SYS_TRACE_TOPIC", 20, [])],
)
def test_no_writable_queue(tmp_path, topic, lasts_s, found):
    trace = begun().at(1).believe("p1", ROUTE, topic, "route").believe("ns-1", ROUTE, topic, "route")
    trace.at(60).believe("ns-1", None, topic, "route").at(60 + lasts_s).believe("ns-1", ROUTE, topic, "route")
    assert kinds(trace, tmp_path) == found


def allocated(trace, at_s, *owners, before=(), topic="t"):
    """Each queue goes to its owner, from whoever had it before."""
    trace.at(at_s)
    for queue_id, node in enumerate(owners):
        was = before[queue_id] if before else None
        if was not in (None, node):
            trace.own(was, "dropped", queue_id, topic)
        if was != node:
            trace.own(node, "acquired", queue_id, topic, offset=0)
    return trace


def members(*nodes):
    trace = HandMadeTrace().life("broker-a", "started", role="broker")
    for node in nodes:
        trace.life(node, "started", "g", role="consumer").subscribe(node)
    return trace


@pytest.mark.parametrize(("rounds", "found"), [(1, []), (9, [SymptomKind.CHURN])])
def test_queues_that_change_their_owner_again_and_again(tmp_path, rounds, found):
    first, second = ("c2", "c1", "c2", "c1"), ("c1", "c1", "c2", "c2")
    trace = allocated(members("c1", "c2"), 1, *second)
    for turn in range(rounds):
        allocated(trace, 20 * turn + 20, *first, before=second)
        allocated(trace, 20 * turn + 30, *second, before=first)
    assert kinds(trace, tmp_path, 300) == found


def test_members_that_join_one_after_the_other_are_no_churn(tmp_path):
    item, two, four = ("c1", "c1", "c1", "c1"), ("c1", "c1", "c2", "c2"), ("c1", "c2", "c3", "c4")
    trace = allocated(members(*four), 1, *item)
    allocated(allocated(trace, 1.3, *two, before=item), 1.6, *four, before=two)
    assert kinds(trace, tmp_path) == []


@pytest.mark.parametrize(("last", "found"), [("c3", []), ("c2", [SymptomKind.IDLE])])
def test_a_member_without_a_queue_where_there_are_enough(tmp_path, last, found):
    trace = allocated(members("c1", "c2", "c3"), 1, "c1", "c1", "c2", last)
    assert kinds(trace, tmp_path) == found


def test_members_beyond_the_queues_and_those_that_begin_with_the_end_page_no_one(tmp_path):
    trace = allocated(members("c1", "c2", "c3"), 1, "c1", "c2")
    trace.at(180).life("c4", "started", "g", role="consumer").subscribe("c4")
    assert kinds(trace, tmp_path) == []


@pytest.mark.parametrize(("topics", "found"), [(2, []), (5, [SymptomKind.SPREAD])])
def test_the_first_member_gets_the_remainder_of_each_topic(tmp_path, topics, found):
    trace = members("c1", "c2")
    for number in range(topics):
        topic = f"t{number}"
        for node in ("c1", "c2"):
            trace.subscribe(node, topic=topic)
        allocated(trace, 1, "c1", "c1", "c2", *(["c1"] if topics > 2 else ["c2"]), topic=topic)
    assert kinds(trace, tmp_path) == found


@pytest.mark.parametrize(("lasts_s", "found"), [(25, []), (70, [SymptomKind.STALE_ROUTES])])
def test_a_client_that_keeps_a_route_that_no_one_gives_any_more(tmp_path, lasts_s, found):
    other = {"broker-b": {"addrs": {"0": "127.1.2.2:10911"}, "queues": [4, 4, 6]}}
    trace = begun().at(1).believe("ns-1", ROUTE, "t", "route").believe("c1", ROUTE, "t", "route")
    trace.at(60).believe("ns-1", other, "t", "route").at(60 + lasts_s).believe("c1", other, "t", "route")
    assert kinds(trace, tmp_path) == found


def notified(trace, times):
    for number in range(100):
        trace.ask(f"c{number}", "broker-a", RequestCode.HEART_BEAT, times=30)
        trace.ask("broker-a", f"c{number}", RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, times=times, kind="oneway")
    return trace


def test_notifications_ask_for_the_group_that_changed_or_else_for_requests(tmp_path):
    changed = notified(begun().at(5).life("c2", "started", "g", role="consumer").subscribe("c2"), 20)
    (of_group,) = [item for item in symptoms(reported(changed, tmp_path)) if item.kind is SymptomKind.FAN_OUT]
    (of_none,) = symptoms(reported(notified(HandMadeTrace().at(5), 20), tmp_path / "none"))

    assert of_group.question == ("group", "g", "at", "6s")
    assert of_none.question == ("storm", "at", "6s")


@pytest.mark.parametrize(("text", "found"), [(1, []), (20, [SymptomKind.FAN_OUT])])
def test_notifications_that_are_a_large_part_of_all_requests(tmp_path, text, found):
    assert kinds(notified(begun().at(5), text), tmp_path) == found


@pytest.mark.parametrize(("times", "found"), [(19, []), (25, [SymptomKind.AGAIN])])
def test_messages_that_are_consumed_again(tmp_path, times, found):
    trace = flowing(0).at(179)
    for offset in range(times):
        trace.consume("c1", offset)
    assert kinds(trace, tmp_path) == found


def stormy():
    trace = begun().at(60).fault("begin", "f1", "kill", "broker-a")
    for second in range(61, 100):
        for client in ("c1", "c2", "c3"):
            trace.at(second).ask(client, "broker-a-s1", RequestCode.PULL_MESSAGE, 20, times=1_000)
    return trace.at(110).fault("end", "f1", "kill", "broker-a")


def test_a_storm_of_several_clients_is_one_symptom_and_the_most_severe(tmp_path):
    report = reported(stormy(), tmp_path)
    first = symptoms(report)[0]

    assert first.kind is SymptomKind.STORM
    assert first.severity == pytest.approx(3_000)
    assert first.text == (
        "3 clients (c1, c2, …) asked broker-a-s1 117,000 times in 39 s (1,000 a second each, healthy is 1), from 61 s "
        "on: PULL_MESSAGE answered PULL_RETRY_IMMEDIATELY"
    )
    assert as_text(report).startswith("request storm: 3 clients")


def test_lost_messages_are_more_severe_than_any_storm(tmp_path):
    trace = stormy().at(120).store(0, 1).at(121).consume("c1", 1).commit("c1", 2)
    report = reported(trace, tmp_path)
    assert [item.kind for item in most_severe(report)][:2] == [SymptomKind.LOST, SymptomKind.STORM]


def test_the_story_sends_a_symptom_in_the_chapter_in_which_it_begins(tmp_path):
    start, killed, after = story(reported(stormy(), tmp_path))

    assert (start.title, killed.title, after.title) == (
        "The cluster starts",
        "kill broker-a begins",
        "kill broker-a ends",
    )
    assert (killed.start_ns, killed.end_ns) == (60 * 10**9, 110 * 10**9)
    assert killed.sentences[0].startswith("Request storm: 3 clients (c1, c2, …) asked broker-a-s1 117,000 times")
    assert not any("storm" in sentence for chapter in (start, after) for sentence in chapter.sentences)
