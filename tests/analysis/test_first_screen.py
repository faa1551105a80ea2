"""The first screen about a run, and tables by their names."""

import json
from io import StringIO
from pathlib import Path

import attrs
import pytest
from typer.testing import CliRunner

from analysis.demo_trace import END_S, demo_trace
from analysis.recorded_report import RECORDED, read_report
from analysis.trace_rows import HandMadeTrace, write_run
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.measures.phases import FAULTS, PHASES
from emulator.analysis.rendering.first_screen import LINES_MAX, FirstScreen, print_first_screen
from emulator.analysis.rendering.named_tables import TABLE_NAMES, named_table
from emulator.analysis.rendering.tables import TABLES
from emulator.base.rich_texts import Console
from emulator.cli.main import app

RUN = Path("runs/r")


@pytest.fixture(scope="module")
def report():
    return read_report(json.loads(RECORDED.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(demo_trace(), tmp_path_factory.mktemp("runs") / "demo", END_S)


def screen(report, width=120, **given):
    console = Console(width=width, file=StringIO())
    print_first_screen(FirstScreen(report, RUN, given.pop("causes", {}), **given), console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def analyze(*words):
    return CliRunner().invoke(app, ["analyze", "--engine", "local", *map(str, words)])


def test_it_begins_with_both_verdicts_and_names_symptoms_with_causes_faults_phases_and_where_the_rest_is(report):
    lines = screen(report, causes={SymptomKind.LATENCY: "suspend consumer-3 at 390.0 s"})
    text = "\n".join(lines)
    after = lines[next(number for number, line in enumerate(lines) if line.startswith("late messages: ")) + 1 :]

    assert lines[0].startswith("rules invalid  service paging  half-seen-consumer-sim-seed1-1  ")
    assert "  V1 is broken, " in text
    assert next(line for line in after if line.startswith("  cause: ")) == "  cause: suspend consumer-3 at 390.0 s"
    assert "  faults: cut consumer-2 -> broker-b at 60.0 s for 300.0 s; " in text
    assert any(line.split()[:3] == ["390.0", "s", "suspend"] for line in lines)
    assert lines[-3:] == [
        "  why: rmqemu why runs/r; --verify leaves each cause out, --remedies tries what may end it",
        "  all tables: rmqemu analyze --all runs/r",
        "  one table: rmqemu analyze --table overlaps runs/r",
    ]


def with_many_faults(report):
    """The same with a hundred faults and phases, and as many reasons."""
    faults, phases = report.of(FAULTS), report.of(PHASES)
    many = tuple(attrs.evolve(faults[0], fault_id=f"f-{n}", start_ns=n * 10**9, hits=0) for n in range(100))
    spans = tuple(
        attrs.evolve(phases[1], start_ns=n * 10**9, end_ns=(n + 1) * 10**9, what=(f"cut {n} begins",) * 9)
        for n in range(100)
    )
    report = attrs.evolve(report, rows={**report.rows, FAULTS.name: many, PHASES.name: spans})
    return attrs.evolve(report, reasons=tuple(f"V{n} is broken, {'and so on ' * 20}" for n in range(1, 19)))


@pytest.mark.parametrize("width", [80, 100, 120, 150, 200])
@pytest.mark.parametrize("change", [lambda report: report, with_many_faults])
def test_it_fits_on_a_screen_with_the_lines_about_the_picture(report, width, change):
    assert len(screen(change(report), width)) <= LINES_MAX - 2


def test_what_does_not_fit_is_counted(report):
    lines = screen(with_many_faults(report))

    assert any(line.startswith("  … and ") and line.endswith(" more reasons") for line in lines)
    assert any(line.startswith("  … and ") and line.endswith(" more phases, in which less differed") for line in lines)
    assert any("without a single hit: " in line for line in lines)


def test_each_phase_has_one_line_with_what_differed_and_when_all_agreed_again(report):
    lines = screen(report, 120)
    heads = next(number for number, line in enumerate(lines) if line.lstrip().startswith("from"))
    (healed,) = [line for line in lines[heads:] if line.lstrip().startswith("360.0 s")]

    assert lines[heads].split() == [
        "from",
        "phase",
        "views",
        "differ",
        "two",
        "owners",
        "no",
        "owner",
        "again",
        "agreed",
        "after",
    ]
    assert healed.split()[-2:] == ["3.1", "s"]
    assert not [line for line in lines[heads:] if "consumer-3 suspended" in line], "the fault has a line already"


@pytest.mark.parametrize("width", [80, 100])
def test_in_a_narrow_terminal_the_phase_is_shortened_and_no_number(report, width):
    lines = screen(report, width)
    head = next(number for number, line in enumerate(lines) if line.lstrip().startswith("from"))
    (worst,) = [line for line in lines[head:] if line.lstrip().startswith("60.0 s")]

    assert "…" not in lines[head]
    assert worst.split()[-10:] == ["357.4", "s", "536.7", "s", "60.0", "s", "1,352", ">", "300.0", "s"]


def test_a_calm_run_has_a_short_screen_without_a_question(tmp_path):
    trace = HandMadeTrace().life("a", "started", "g").believe("a", 1).own("a", "acquired")
    done = analyze(write_run(trace, tmp_path / "quiet", 60))

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("rules valid  service calm  quiet  ")
    assert "rmqemu why" not in done.stdout
    assert len(done.stdout.splitlines()) < 12


def test_the_command_prints_forty_lines_at_most_and_all_tables_with_all(run):
    short, long = analyze(run), analyze("--all", run)

    assert short.exit_code == long.exit_code == 1
    assert len(short.stdout.splitlines()) <= LINES_MAX
    assert "Queues with two owners" not in short.stdout
    for title in ("Views that differed", "Queues with two owners", "Invariants of RocketMQ", "Totals per phase"):
        assert title in long.stdout
    assert short.stdout.splitlines()[-1] == long.stdout.splitlines()[-1] == f"picture: {run / 'ownership.html'}"


def test_a_table_has_all_its_rows_and_no_other_table(run):
    many = analyze("--table", "overlaps", run).stdout

    done = analyze("--table", "overlaps", "--table", "invariants", run)
    assert done.exit_code == 1
    assert done.stdout.startswith(many)
    assert "Queues with two owners (group orders-group)" in many
    assert "V1 at most one process queue per message queue" in done.stdout
    assert "Totals per phase" not in done.stdout
    assert "… and " not in done.stdout


def test_a_long_table_is_cut_among_all_and_whole_alone(report):
    assert "… and " in rendered(TABLES["orphans"](report, whole=False))
    assert "… and " not in rendered(TABLES["orphans"](report, whole=True))


def rendered(table):
    console = Console(width=150, file=StringIO())
    console.print(table)
    return console.file.getvalue()


def test_every_table_can_be_printed(report):
    for name in TABLE_NAMES:
        text = rendered(named_table(report, name))
        assert text.strip(), name
        assert "… and " not in text


def test_a_wrong_name_gets_one_line_with_the_right_ones_before_anything_is_judged(run):
    done = analyze("--table", "overlap", run)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"rmqemu: --table overlap: did you mean overlaps? expected one of {', '.join(TABLE_NAMES)}\n"


def test_tables_are_of_one_run_and_of_people(run):
    for words, problem in (
        (("--all", run, run), "--all: expected one run, since of several each has one line"),
        (("--table", "holds", run, run), "--table: expected one run, since of several each has one line"),
        (("--all", "--table", "holds", run), "expected only one of --all and --table"),
        (("--json", "--all", run), "expected only one of --json and --all"),
    ):
        done = analyze(*words)
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"rmqemu: {problem}\n")
