"""`rmqemu demo`: its story from a recorded report, and all of it from end to end (`make proofs`)."""

import json
from contextlib import contextmanager
from io import StringIO

import pytest
from rich.console import Console

from analysis.recorded_report import RECORDED, read_report
from emulator.analysis.measures.phases import AGREEMENT
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.views import VIEWS
from emulator.analysis.rendering.shown_report import analyze
from emulator.cli.demo import missing, show, timeline
from emulator.cli.judging import Judging
from emulator.dataset.engine import EngineChoice


@contextmanager
def no_bar(_title):
    yield lambda _share: None


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demonstration returned and printed, its run, and the report that it reported about."""
    console = Console(width=120, file=StringIO())
    runs = tmp_path_factory.mktemp("runs")
    status = show(runs, console, no_bar, Judging(EngineChoice.LOCAL))
    run = runs / "half-seen-consumer-sim-seed1-1"
    return status, console.file.getvalue(), run, analyze(run)


@pytest.fixture(scope="module")
def reported():
    return read_report(json.loads(RECORDED.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_the_demonstration_shows_what_it_promises(shown):
    status, text, run, _ = shown

    assert (status, "missing:" in text) == (0, False), text
    assert (run / "ownership.html").exists()
    assert f" {run / 'ownership.html'}\n" in text
    assert f" rmqemu verify {run}\n" in text
    assert "  cause: suspend consumer-3 at 390.0 s" in text
    assert "Queues with two owners" not in text, "all tables are for rmqemu analyze --all"


@pytest.mark.slow
def test_the_recorded_report_is_that_of_the_demonstration(shown):
    _, text, _, report = shown

    assert json.loads(report.to_json()) == json.loads(RECORDED.read_text(encoding="utf-8"))
    # The terminal breaks lines, and nothing else.
    assert timeline(report)[1].sentences[0] in " ".join(text.split())


def test_the_story_reports_the_figures_of_the_run(reported):
    expired = next(row for row in reported["beliefs"] if row.kind == "consumer_ids" and row.start_ns > 60 * 10**9)
    control, half_seen, healed, frozen, _, lossy, calm = timeline(reported)

    assert 120 < expired.start_ns / 1e9 < 200
    assert f"At {expired.start_ns / 1e9:.1f} s the scan of broker-b" in " ".join(half_seen.sentences)
    assert "No queue had two owners; 18 queues had none" in " ".join(control.sentences)
    assert "later all views and owners agree again" in healed.sentences[0]
    assert "its 4 queues have an owner that does not consume them" in frozen.sentences[0]
    assert "No list and no owner differs" in frozen.sentences[1]
    assert "10 queues had two owners, longest %RETRY%order-processors broker-" in lossy.sentences[1]
    assert "later all views and owners agree again" in calm.sentences[0]


def test_a_demonstration_that_shows_less_says_what_is_missing(reported):
    poor = reported.only(dict.fromkeys((OVERLAPS.table, ORPHANS.table, VIEWS.table, AGREEMENT), ()))

    assert missing(reported) == []
    assert missing(poor) == [
        "views that differ during the cut",
        "queues with two owners during the cut",
        "queues without an owner during the cut",
        "agreement after the cut",
        "agreement at the end",
    ]
