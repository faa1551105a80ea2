"""`rmqemu demo` and `rmqemu analyze` from end to end."""

import json
from contextlib import contextmanager
from io import StringIO

import attrs
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.demo_trace import END_S, demo_trace
from analysis.trace_rows import HandMadeTrace, write_run
from emulator.analysis.report import analyze
from emulator.cli.demo import missing, show, timeline
from emulator.cli.main import app


@contextmanager
def no_bar(_title):
    yield lambda _share: None


@pytest.fixture(scope="module")
def demonstration(spark, tmp_path_factory):
    """What the demonstration returned and printed, and its run."""
    console = Console(width=120, file=StringIO())
    runs = tmp_path_factory.mktemp("runs")
    status = show(runs, console, no_bar)
    return status, console.file.getvalue(), runs / "half-seen-consumer-sim-seed1-1"


@pytest.fixture(scope="module")
def told(spark, demonstration):
    return analyze(demonstration[2], spark)


def test_the_demonstration_shows_what_it_promises(demonstration):
    status, text, run = demonstration

    assert (status, "missing:" in text) == (0, False), text
    assert (run / "ownership.html").exists()
    assert f" {run / 'ownership.html'}\n" in text
    assert f" rmqemu verify {run}\n" in text


def test_the_story_tells_the_figures_of_the_run(demonstration, told):
    _, text, _ = demonstration
    expired = next(row for row in told.beliefs if row.kind == "consumer_ids" and row.start_ns > 60 * 10**9)
    control, half_seen, healed, frozen, _, lossy, calm = timeline(told)

    assert 120 < expired.start_ns / 1e9 < 200
    assert f"At {expired.start_ns / 1e9:.1f} s the scan of broker-b" in " ".join(half_seen.sentences)
    assert "No queue had two owners; no queue had none." in " ".join(control.sentences)
    assert "later all views and owners agree again" in healed.sentences[0]
    assert "its 4 queues have an owner that does not consume them" in frozen.sentences[0]
    assert "No list and no owner differs" in frozen.sentences[1]
    assert "had two owners, longest orders broker-" in lossy.sentences[1]
    assert "later all views and owners agree again" in calm.sentences[0]
    # The terminal breaks lines, and nothing else.
    assert half_seen.sentences[0] in " ".join(text.split())


def test_a_demonstration_that_shows_less_says_what_is_missing(told):
    poor = attrs.evolve(told, overlaps=(), orphans=(), views=(), agreement=())

    assert missing(told) == []
    assert missing(poor) == [
        "views that differ during the cut",
        "queues with two owners during the cut",
        "queues without an owner during the cut",
        "agreement after the cut",
        "agreement at the end",
    ]


def test_analyze_prints_tables_and_where_the_picture_is(spark, tmp_path):
    run = write_run(demo_trace(), tmp_path / "demo", END_S)
    done = CliRunner().invoke(app, ["analyze", str(run)])

    assert done.exit_code == 1, done.output
    assert done.stdout.startswith("invalid  demo")
    assert done.stdout.splitlines()[-1] == f"picture: {run / 'ownership.html'}"


def test_analyze_as_json_prints_nothing_but_json(spark, tmp_path):
    trace = HandMadeTrace().life("a", "started", "g").believe("a", 1).own("a", "acquired")
    run = write_run(trace, tmp_path / "calm", 60)
    done = CliRunner().invoke(app, ["analyze", "--json", str(run)])

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["verdict"] == "valid"
