"""A bug of the emulator, in a node or outside: it is said in the trace, the log, the manifest and the exit status."""

import json

import pytest
import typer

from emulator.analysis.run_head import broken_off
from emulator.cli.terminal import one_line_errors
from emulator.run import EmulatorBugError, RunInterrupted, run_scenario
from emulator.testing import a_scenario
from emulator.trace.run_directory import RunEnd, open_run
from emulator.trace.schema import LIFECYCLE
from support.run_rows import table_rows

SCENARIO = a_scenario(run_for_ms=3_000, consumers=1)
RUN = "test-sim-seed1-1"


def bug():
    raise ZeroDivisionError("a bug")


async def crash_a_broker(session):
    await session.cluster.started.wait()
    process = session.cluster.hosts["broker-a"].process
    session.cluster.world.timeline.call_at(2_000_000_000, bug, process)


async def fail(session):
    await session.cluster.started.wait()
    await session.pass_ms(1_000)
    bug()


async def interrupt_after_the_crash(session):
    await crash_a_broker(session)
    await session.pass_ms(2_500)
    raise KeyboardInterrupt


def log_of(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def test_a_node_that_crashes_is_reported_in_trace_log_manifest_and_exit_status(tmp_path, capsys):
    with pytest.raises(typer.Exit) as ended, one_line_errors():
        run_scenario(SCENARIO, runs=tmp_path, session_tasks=(crash_a_broker,))
    path = tmp_path / RUN
    run = open_run(path)
    crashed = list(table_rows(path, LIFECYCLE, ("t_ns", "node", "detail"), ("event", "==", "crashed")))
    (line,) = (line for line in log_of(path) if line["event"] == "crashed")

    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == (
        f"rmqemu: broker-a: ZeroDivisionError: a bug; this is a bug: its traceback is in {path}/log.jsonl\n"
    )
    assert crashed == [{"t_ns": 2_000_000_000, "node": "broker-a", "detail": "ZeroDivisionError: a bug"}]
    assert (line["level"], line["node"], line["error"]) == ("error", "broker-a", "ZeroDivisionError: a bug")
    assert line["traceback"].startswith("Traceback (most recent call last):")
    assert ', in bug\n    raise ZeroDivisionError("a bug")' in line["traceback"]
    assert (run.ended, run.manifest["crashes"]) == (RunEnd.COMPLETE, ["broker-a: ZeroDivisionError: a bug"])
    assert broken_off(run) == ["broker-a: ZeroDivisionError: a bug: the emulator has a bug"]


def test_a_crash_is_in_the_manifest_of_a_run_that_was_interrupted_afterwards_too(tmp_path):
    with pytest.raises(RunInterrupted):
        run_scenario(SCENARIO, runs=tmp_path, session_tasks=(interrupt_after_the_crash,))

    assert open_run(tmp_path / RUN).manifest["crashes"] == ["broker-a: ZeroDivisionError: a bug"]


def test_a_bug_outside_nodes_leaves_a_run_that_can_be_analysed_and_a_traceback_in_its_log(tmp_path):
    with pytest.raises(EmulatorBugError) as raised:
        run_scenario(SCENARIO, runs=tmp_path, session_tasks=(fail,))
    path = tmp_path / RUN
    run = open_run(path)

    assert str(raised.value) == (
        f"{path}: ZeroDivisionError: a bug; this is a bug: its traceback is in {path}/log.jsonl"
    )
    assert log_of(path)[-1]["event"] == "the run failed"
    assert log_of(path)[-1]["traceback"].endswith("ZeroDivisionError: a bug\n")
    assert run.ended is RunEnd.FAILED
    assert broken_off(run) == [
        "ZeroDivisionError: a bug: the emulator has a bug",
        f"the run failed at {run.end_ns / 1e9:.1f} s",
    ]
    assert 1_000_000_000 < run.end_ns < 3_000_000_000
    assert sum(run.manifest["rows"].values()) == run.trace.last_seq > 50


def test_a_bug_that_keeps_the_last_rows_from_being_written_leaves_those_before(tmp_path):
    async def record_what_no_column_takes(session):
        await session.cluster.started.wait()
        session.cluster.world.recorder.keep_up()
        await session.pass_ms(1_000)
        session.cluster.world.recorder.flush()
        session.cluster.world.recorder.begin_cause("", None)

    with pytest.raises(EmulatorBugError, match="TypeError"):
        run_scenario(SCENARIO, runs=tmp_path, session_tasks=(record_what_no_column_takes,))
    run = open_run(tmp_path / RUN)

    assert run.ended is RunEnd.KILLED
    assert run.trace.last_seq > 50
    assert log_of(run.path)[-1]["error"].startswith("TypeError")
