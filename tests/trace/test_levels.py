"""How much of a run is written down: what each level has is the same, and nothing that is left out is lost silently."""

import json
from collections import Counter
from itertools import combinations

import attrs
import pyarrow as pa
import pytest

from emulator.analysis.findings.impact import IMPACTS
from emulator.analysis.judge import judge_run
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.analysis.report import Report, RulesVerdict
from emulator.campaign.file import load_campaign
from emulator.comparison.rows import first_difference
from emulator.notebook.traces import TracesError, traces
from emulator.run import run_scenario
from emulator.run.verify import repeat
from emulator.spec import SpecError, loads
from emulator.time.mode import TimeMode
from emulator.trace.counted import CountedRows
from emulator.trace.run_directory import MANIFEST, open_run
from emulator.trace.schema import BELIEFS, CAUSES, COUNTS, MESSAGES, RPC, TABLES, TraceLevel
from emulator.why.answer import answer_of_run
from emulator.why.question import WhyError
from support.rmqemu_process import rmqemu

JUDGED_OR_OF_QUEUES = (
    *(oracle.table.name for oracle in ORACLES),
    *("duplicates", "hand_overs", "rebalances", "idle", "queue_balance", "stale_routes", "moved_keys"),
    *("holds", "phases"),
)
"""Tables that need no frames."""

SCENARIO = """
[scenario]
name = "levels"
seed = 3
run_for_s = 110
[network]
delay_ms = 1
jitter_ms = 2
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "shop"
topics = ["orders"]
count = 3
[[producer]]
group = "tills"
topic = "orders"
rate_per_s = 10
[[fault]]
kind = "cut"
from = "consumer-1"
to = "broker-b"
at_s = 15
for_s = 60
[[fault]]
kind = "kill"
node = "broker-a"
at_s = 85
for_s = 5
"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Mapping level -> the run of one scenario."""
    runs = tmp_path_factory.mktemp("levels")
    scenario = loads(SCENARIO, "levels.toml")
    return {level: open_run(run_scenario(scenario, level=level, runs=runs).path) for level in TraceLevel}


def rows(run, table):
    return pa.concat_tables(list(run.trace.tables(table)) or [pa.table({})])


@pytest.mark.parametrize(("item", "other"), list(combinations(TraceLevel, 2)))
def test_rows_that_two_levels_have_are_equal(executed, item, other):
    both = [table for table in executed[item].level.whole if table in executed[other].level.whole]
    assert both
    for table in both:
        assert rows(executed[item], table).equals(rows(executed[other], table)), table.name
    assert first_difference(executed[item].trace, executed[other].trace) is None


def test_level_findings_has_every_fate_of_a_frame_but_that_it_arrived(executed):
    every, failed = rows(executed[TraceLevel.FULL], RPC), rows(executed[TraceLevel.FINDINGS], RPC)
    assert failed.to_pylist() == [row for row in every.to_pylist() if row["event"] != "delivered"]
    assert {"dropped", "timed_out", "connected", "closed"} <= {row["event"] for row in failed.to_pylist()}


@pytest.mark.parametrize("level", [TraceLevel.FINDINGS, TraceLevel.COUNTS])
def test_every_row_that_is_left_out_is_counted_in_its_second(executed, level):
    expected = Counter()
    for table in TABLES:
        for row in rows(executed[TraceLevel.FULL], table).to_pylist():
            left_out = table not in level.whole and not (
                table is RPC and level is TraceLevel.FINDINGS and row["event"] != "delivered"
            )
            if left_out:
                event = row["kind"] if table is BELIEFS else row["name"] if table is CAUSES else row["event"]
                node, peer = (row["src"], row["dst"]) if table is RPC else (row["node"], "")
                frame = (row["kind"], row["code"], row["status"]) if table is RPC else ("", 0, -1)
                expected[(row["t_ns"] // 10**9 * 10**9, table.name, event, node, peer, *frame)] += 1
    columns = ("t_ns", "table", "event", "node", "peer", "kind", "code", "status")
    found = Counter()
    for row in rows(executed[level], COUNTS).to_pylist():
        found[tuple(row[name] for name in columns)] += row["rows"]
    assert found == expected
    assert max(found.values()) > 10


@pytest.mark.parametrize("level", [TraceLevel.FINDINGS, TraceLevel.COUNTS])
def test_rows_and_counts_together_are_all_rows_of_the_run(executed, level):
    run = executed[level]
    assert run.trace.missing_rows() == ""
    last = rows(run, COUNTS).to_pylist()[-1]
    assert last["until_seq"] == executed[TraceLevel.FULL].trace.last_seq
    assert rows(run, COUNTS)["seq"].to_pylist() == list(range(1, run.manifest["rows"]["counts"] + 1))


def test_a_missing_row_of_a_killed_run_is_noticed_at_any_level(executed):
    run = executed[TraceLevel.FINDINGS]
    retained = {table: rows[1:] if table == BELIEFS.name else rows for table, rows in run.trace.waiting.items()}
    segments = {**run.trace.segments, MESSAGES.name: ()}
    assert (
        attrs.evolve(run.trace, segments=segments, waiting=retained)
        .missing_rows()
        .startswith(f"{run.manifest['rows']['messages']} rows before seq")
    )


def test_each_level_has_a_digest_of_its_own_that_every_mode_and_repetition_agrees_on(executed, tmp_path):
    assert len({run.manifest["digest"] for run in executed.values()}) == len(TraceLevel)
    scenario = loads(SCENARIO, "levels.toml")
    run = executed[TraceLevel.FINDINGS]
    fast = run_scenario(scenario, mode=TimeMode.FAST, level=TraceLevel.FINDINGS, runs=tmp_path)
    assert fast.manifest["digest"] == run.manifest["digest"]
    assert run.manifest["trace"] == json.loads((run.path / MANIFEST).read_text())["trace"] == "findings"
    assert repeat(run) is None


def test_findings_are_judged_as_the_whole_trace_and_counts_are_not_judged(executed):
    whole, found, counts = (judge_run(executed[level]) for level in TraceLevel)
    assert isinstance(whole, Report)
    assert (found.verdict, found.reasons) == (whole.verdict, whole.reasons)
    for name in JUDGED_OR_OF_QUEUES:
        assert found[name] == whole[name], name
    assert whole["hand_overs"]
    assert counts.verdict is RulesVerdict.UNKNOWN
    assert counts.reasons == ("the level of its trace is counts: oracles read levels full and findings",)


def test_why_says_what_a_level_cannot_answer(executed):
    requested = ("view", "shop/orders", "at", "100s")
    whole, found = (answer_of_run(requested, executed[level]) for level in (TraceLevel.FULL, TraceLevel.FINDINGS))
    assert found[0] == whole[0]
    (left_out,) = {line for line in found if "led to it" in line and line.startswith("(row")} or {""}
    assert "a timer or a frame that arrived, which level findings leaves out)" in left_out
    assert found[-1] == (
        "level findings has no more; run the scenario again with --trace full: its rows have the same seqs"
    )
    assert not [line for line in whole if "leaves out" in line or "cannot decide" in line]
    assert any("kill-2" in line for line in found)
    with pytest.raises(WhyError, match="the level of this trace is counts: it holds no belief and no owner"):
        answer_of_run(requested, executed[TraceLevel.COUNTS])


def test_the_row_that_why_names_is_there_when_the_run_is_run_again_in_full(executed):
    lines = answer_of_run(("view", "shop/orders", "at", "100s"), executed[TraceLevel.FINDINGS])
    (seq,) = {int(line.split()[1]) for line in lines if line.startswith("(row ")}
    whole = executed[TraceLevel.FULL]
    there = [table for table in (RPC, CAUSES) if seq in rows(whole, table)["seq"].to_pylist()]
    assert there
    assert seq not in rows(executed[TraceLevel.FINDINGS], RPC)["seq"].to_pylist()


def test_causes_are_named_without_the_frames_that_arrived(executed):
    whole, found = (judge_run(executed[level]).of(IMPACTS) for level in (TraceLevel.FULL, TraceLevel.FINDINGS))
    assert found == whole
    assert "kill-2" in {cause.id for impact in found for cause in impact.causes}


def test_rates_are_the_same_in_whole_seconds_and_refused_in_parts_of_them(executed):
    whole, found = (traces(str(executed[level].path)) for level in (TraceLevel.FULL, TraceLevel.FINDINGS))
    columns = ["t_ns", "src", "dst", "kind", "code", "request", "event", "frames"]
    item, other = (frame.rates(2.0)[columns].sort_values(columns[:-1], ignore_index=True) for frame in (whole, found))
    assert item.equals(other)
    with pytest.raises(TracesError, match=r"every_s: expected whole seconds, for the trace of .* has level findings"):
        found.rates(0.5)
    with pytest.raises(TracesError, match="its trace has level counts, so it has no messages"):
        traces(str(executed[TraceLevel.COUNTS].path)).sends()


def test_a_second_is_counted_once_however_often_the_trace_is_written():
    counted = CountedRows()
    subject = ("rpc", "delivered", "a", "b", "request", 34, -1)
    counted.rows[subject] = [2]
    assert counted.ends_ns == 10**9
    assert counted.take(5_500_000_000, 17) == [(1, 0, 17, *subject, 2)]
    assert counted.ends_ns == 6 * 10**9
    counted.rows[subject] = [1]
    assert counted.take(6_000_000_000, 18) == [(2, 5 * 10**9, 18, *subject, 1)]


def test_a_campaign_needs_traces_that_can_be_judged(tmp_path):
    (tmp_path / "c.toml").write_text('[campaign]\nname = "c"\nseeds = "1"\ntrace = "counts"\n' + SCENARIO)
    with pytest.raises(SpecError, match=r"campaign\.trace: .*counts"):
        load_campaign(tmp_path / "c.toml")
    (tmp_path / "d.toml").write_text('[campaign]\nname = "d"\nseeds = "1"\n' + SCENARIO)
    assert load_campaign(tmp_path / "d.toml").level is TraceLevel.FINDINGS


def test_the_command_takes_a_level(tmp_path):
    (tmp_path / "levels.toml").write_text(
        SCENARIO.partition("[[fault]]")[0].replace("run_for_s = 110", "run_for_s = 2")
    )
    done = rmqemu("run", "levels.toml", "--trace", "counts", cwd=tmp_path)
    assert open_run(tmp_path / done.stdout.splitlines()[-1]).level is TraceLevel.COUNTS
