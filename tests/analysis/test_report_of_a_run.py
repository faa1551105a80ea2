"""A whole run judged, reported as tables, and drawn."""

import json
from io import StringIO
from xml.etree import ElementTree as ET

import attrs
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.demo_trace import END_S, demo_trace
from analysis.recorded_report import RECORDED, read_report
from analysis.trace_rows import HandMadeTrace, write_run
from emulator.analysis.findings.words import seconds
from emulator.analysis.inputs.holdings import HoldersOfValue
from emulator.analysis.inputs.queue_owners import Orphan
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.rendering.cells import queue_ranges
from emulator.analysis.rendering.picture import draw, page
from emulator.analysis.rendering.shown_report import analyze, as_text
from emulator.analysis.rendering.tables import describe_holders, print_report
from emulator.analysis.report import RulesVerdict
from emulator.analysis.run_head import broken_off, unreliable_parts
from emulator.cli.main import app
from emulator.history.rows.queues import GroupQueue
from emulator.trace.run_directory import open_run

VIOLATIONS = (
    (
        "V1 is broken, at most one process queue per message queue: 4 queues, two owners for 591.7 queue-seconds, "
        "451.7 s of them awake; 0 consumed again; worst: OrderTopic/broker-a/4, 49.0 s longer than "
        "explained, after cut consumer-2 -> broker-b begins"
    ),
    (
        "V6 is broken, members of a group allocate from equal mqAll and cidAll: 2 views, mqAll differed 0 times, "
        "cidAll 10 times; worst: orders-group/%RETRY%orders-group, 49.0 s longer than "
        "explained, after cut consumer-2 -> broker-b begins"
    ),
)


@pytest.fixture(scope="module")
def analyzed(tmp_path_factory):
    """What `rmqemu analyze` did with a run."""
    run = write_run(demo_trace(), tmp_path_factory.mktemp("runs") / "demo", END_S)
    return CliRunner().invoke(app, ["analyze", str(run)]), run


@pytest.fixture(scope="module")
def report(analyzed):
    return analyze(analyzed[1])


def printed(report):
    console = Console(width=150, record=True, file=StringIO())
    print_report(report, console)
    return console.export_text()


def drawn(report):
    return ET.fromstring(page(report).split("<body>")[1].join(("<body>", "")).removesuffix("</html>\n"))


def test_a_partition_that_outlasts_a_round_makes_the_run_invalid(report):
    assert (report.verdict, report.exit_status) == (RulesVerdict.INVALID, 1)
    assert report.reasons == VIOLATIONS
    assert not any(row.violation for row in report["orphans"])
    assert [(fault.kind, fault.subject) for fault in report["faults"]] == [
        ("cut", "consumer-2 -> broker-b"),
        ("suspend", "consumer-1"),
    ]


def test_the_report_as_json_says_all_that_its_attributes_say(report):
    content = json.loads(report.to_json())
    assert content["verdict"] == "invalid"
    assert content["exit_status"] == 1
    assert content["service"] == "calm"
    assert {name: len(rows) for name, rows in content["findings"].items()} == {
        name: len(rows) for name, rows in report.rows.items()
    }
    assert len(content["findings"]["holds"]) > 16
    attributes = {field.name for field in attrs.fields(type(report))} - {"rows"}
    assert sorted(content) == sorted({*attributes, "findings", "symptoms", "service", "exit_status"})


def test_analyze_as_json_prints_nothing_but_json_and_a_quiet_run_is_valid_and_shows_its_baseline(tmp_path):
    trace = HandMadeTrace().life("a", "started", "g").believe("a", 1).own("a", "acquired").at(5)
    trace.life("b", "started", "g").at(6).believe("b", 2).at(8).believe("a", 2)
    done = CliRunner().invoke(app, ["analyze", "--json", str(write_run(trace, tmp_path / "quiet", 60))])

    assert done.exit_code == 0, done.output
    quiet = json.loads(done.stdout)
    assert (quiet["verdict"], quiet["reasons"]) == ("valid", [])
    assert [(row["violation"], row["end_ns"] - row["start_ns"]) for row in quiet["findings"]["views"]] == [
        (False, 2_000_000_000)
    ]


def test_a_run_with_nothing_to_judge_or_with_rows_missing_is_unknown(tmp_path):
    run = write_run(HandMadeTrace().life("a", "started", "g"), tmp_path / "empty", 60, rows={"lifecycle": 3})
    empty = analyze(run)
    assert (empty.verdict, empty.exit_status) == (RulesVerdict.UNKNOWN, 2)
    assert empty.reasons == tuple(unreliable_parts(open_run(run)))


def test_rows_that_are_missing_and_a_trace_with_nothing_to_judge_are_unreliable_parts(tmp_path):
    run = open_run(write_run(HandMadeTrace().life("a", "started", "g"), tmp_path / "empty", 60, rows={"lifecycle": 3}))
    assert unreliable_parts(run) == [
        "lifecycle: 1 of the 3 rows that the manifest promises are there",
        "no node recorded a belief or owned a queue: there is nothing to judge",
    ]


def test_analyze_prints_tables_and_where_the_picture_is(analyzed):
    done, run = analyzed
    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("rules invalid  service calm  demo  ")
    assert done.stdout.splitlines()[-1] == f"picture: {run / 'ownership.html'}"


BROKEN_OFF = {"ended": "interrupted", "crashes": ["ns-1: KeyError: 1"]}
WHY = ("ns-1: KeyError: 1: the emulator has a bug", "the run was interrupted at 600.0 s")


def test_a_run_that_crashed_or_was_interrupted_proves_nothing(tmp_path):
    run = open_run(write_run(HandMadeTrace(), tmp_path / "run", END_S, **BROKEN_OFF))
    assert tuple(broken_off(run)) == WHY


def test_a_run_that_was_broken_off_is_unknown_whatever_it_shows(tmp_path):
    report = analyze(write_run(demo_trace(), tmp_path / "run", END_S, **BROKEN_OFF))
    assert (report.verdict, report.exit_status) == (RulesVerdict.UNKNOWN, 2)
    assert report.reasons == (*WHY, *VIOLATIONS)


def test_the_tables_put_the_longest_first_and_say_how_many_are_left_out(report):
    queues = [GroupQueue("g", "t", "broker-a", 2 * n) for n in range(20)]
    orphans = tuple(Orphan(q, 0, (q.queue_id + 1) * 10**9, censored=False) for q in queues)
    lines = printed(report.only({ORPHANS.table: orphans})).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("Queues without an owner"))
    assert [line.split()[5] for line in lines[start + 2 : start + 14]] == [f"{n}.0" for n in range(39, 15, -2)]
    assert lines[start + 14] == "… and 8 more, all shorter"


def test_queues_of_one_broker_that_share_their_fate_share_a_row(report):
    row = next(line for line in printed(report).splitlines() if "0-3 " in line)
    assert (
        " ".join(row.split())
        == "OrderTopic broker-a 0-3 552.0 s 28.9 s 0.9 s 0 consumer-1, consumer-2 suspend consumer-1 baseline"
    )


def test_times_and_queue_ids_are_written_for_people():
    assert [seconds(61_300_000_000), seconds(4_200_000), seconds(0)] == ["61.3 s", "4.2 ms", "0.0 s"]
    assert seconds(2_000_000_000, censored=True) == "> 2.0 s"
    assert queue_ranges([7, 0, 1, 2]) == "0-2, 7"


def test_holders_are_shown_by_the_members_that_their_value_lacks():
    view = '{"cids":["c1","c2"],"queues":{"broker-a":4,"broker-b":4}}'
    views = [HoldersOfValue("1", view, ("n1", "n2")), HoldersOfValue("2", view.replace('"c1",', ""), ("n3",))]
    assert describe_holders(views) == ["n1, n2: 2 members, 8 queues", "n3: 1 member without c1, 8 queues"]
    lists = [HoldersOfValue("1", '["c1","c2"]', ("broker-a",)), HoldersOfValue("2", '["c2"]', ("broker-b",))]
    assert describe_holders(lists) == ["broker-a: 2 members", "broker-b: 1 member without c1"]
    assert describe_holders([HoldersOfValue("1", '{"0":"a"}', ("ns-1",))]) == ['ns-1: {"0":"a"}']


def test_a_member_is_reported_by_the_name_of_its_node():
    lists = [
        HoldersOfValue("1", '["127.1.10.1@9#1","127.1.10.2@9#1"]', ("b-1",)),
        HoldersOfValue("2", '["127.1.10.1@9#1"]', ("b-2",)),
    ]
    names = {"127.1.10.2": "consumer-2"}
    assert describe_holders(lists, names) == ["b-1: 2 members", "b-2: 1 member without consumer-2"]


def test_a_fault_of_a_process_is_reported_once(report):
    text = printed(report)
    disturbances = text[text.index("Time to agreement") :]
    assert "suspend consumer-1 begins" in disturbances
    assert "consumer-1 suspended" not in disturbances


def test_the_picture_names_every_owner_and_every_fault(report, tmp_path):
    html = draw(report, tmp_path / "picture.html").read_text("utf-8")
    for name in (
        "consumer-1",
        "consumer-4",
        "cut consumer-2 -&gt; broker-b",
        "suspend consumer-1",
        "consumer-3 killed",
    ):
        assert html.count(f">{name}") >= 1


def test_the_picture_needs_nothing_from_outside(report):
    html = page(report)
    assert "<script" not in html
    assert "http" not in html
    assert "@import" not in html


def test_the_picture_draws_one_bar_per_hold_overlap_and_orphan(report):
    chart = drawn(report).find("svg[@class='chart']")
    classes = [rect.get("class", "").split()[:1] for rect in chart.iter("rect")]
    assert classes.count(["own"]) == len(report["holds"])
    assert classes.count(["both"]) == len(report["overlaps"]) > 0
    assert classes.count(["nobody"]) == len(report["orphans"]) > 0


def test_the_picture_draws_retry_topics_last(report):
    heads = [text.text for text in drawn(report).iter("text") if text.get("class") == "head"]
    assert heads == ["OrderTopic", "%RETRY%orders-group"]


def test_a_bar_says_who_and_when(report):
    titles = [title.text for title in drawn(report).iter("title")]
    assert "consumer-1 and consumer-2\nOrderTopic broker-a q0\n552.0 s to 580.9 s (28.9 s)" in titles


def test_no_name_is_written_over_stripes_or_a_pattern(report):
    chart = drawn(report).find("svg[@class='chart']")
    patterned = [rect for rect in chart.iter("rect") if rect.get("class") in ("both", "hatched")]
    names = [text for text in chart.iter("text") if (text.get("class") or "").startswith("inside")]
    assert any(rect.get("class") == "hatched" for rect in patterned)
    assert names
    for name in names:
        x, y, width = float(name.get("x")), float(name.get("y")), 5 * len(name.text)
        for rect in patterned:
            left, top = float(rect.get("x")), float(rect.get("y"))
            is_apart = x + width <= left or left + float(rect.get("width")) <= x
            assert is_apart or not top <= y <= top + float(rect.get("height")), name.text


def test_the_name_and_the_maximum_of_a_strip_stand_below_each_other():
    recorded = read_report(json.loads(RECORDED.read_text(encoding="utf-8")))
    at = {text.text: text for text in drawn(recorded).iter("text") if text.get("class") == "small"}
    name = at["requests without messages"]
    assert float(name.get("x")) - 5.5 * len(name.text) > 0, "it is not clipped at the left edge"
    assert any(text.startswith("to ") and at[text].get("x") == name.get("x") for text in at)


def test_labels_never_run_into_each_other(report):
    texts = [t for t in drawn(report).iter("text") if t.get("class") == "label"]
    by_lane = {}
    for label in texts:
        by_lane.setdefault(label.get("y"), []).append(float(label.get("x")))
    assert len(texts) == 4
    assert len(by_lane) == 2, "the suspension begins where the label of the restart still stands"


def test_a_fault_without_a_single_hit_is_named_and_one_with_hits_is_not(tmp_path):
    trace = demo_trace().at(200).fault("begin", "idle", "drop", "all links").fault("begin", "busy", "loss", "all links")
    trace.at(230).fault("end", "idle", "drop", "all links", hits=0).fault("end", "busy", "loss", "all links", hits=7)
    text = as_text(analyze(write_run(trace, tmp_path / "run", END_S)))
    (line,) = [line for line in text.splitlines() if "without a single hit" in line]
    assert "drop all links at 200.0 s" in line
    assert "loss" not in line
    assert "loss all links at 200.0 s for 30.0 s" in text


def test_no_fault_is_named_as_idle_if_all_have_hits_or_have_not_ended(tmp_path):
    trace = HandMadeTrace().at(1).life("a", "ready", "g", role="consumer")
    trace.at(20).fault("begin", "busy", "loss", "all links").at(25).fault("begin", "open", "drop", "all links")
    trace.at(30).fault("end", "busy", "loss", "all links", hits=1)
    assert "without a single hit" not in as_text(analyze(write_run(trace, tmp_path / "run", 60)))
