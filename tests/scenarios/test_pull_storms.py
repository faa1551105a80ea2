"""The pull storm of an acting slave: what ends it, and that it is the first line of the report."""

from pathlib import Path

import pytest

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.rendering.shown_report import analyze, as_text
from emulator.analysis.report import symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check
from emulator.trace.schema import TraceLevel

EXAMPLE = (Path(__file__).parents[2] / "examples" / "acting_slave.toml").read_text(encoding="utf-8")
WARNING = "pulls-beyond-an-acting-slave"
LOAD = (
    *("storms", "requests", "attempts", "unwritable", "broker_states", "lags", "latencies"),
    *("request_series", "lag_series"),
)
"""Tables of what operators watch."""


def scenario(options=""):
    return loads(
        EXAMPLE.replace("run_for_s = 180", "run_for_s = 130").replace(
            "replicas = 3", f"replicas = 3\noptions = {{ {options} }}"
        ),
        "acting_slave.toml",
    )


@pytest.fixture(scope="module")
def report_of(tmp_path_factory):
    """The report of a run with these options; each is run once."""
    known = {}

    def of(options="", level=TraceLevel.FINDINGS):
        if (options, level) not in known:
            run = run_scenario(scenario(options), level=level, runs=tmp_path_factory.mktemp("runs"))
            known[options, level] = analyze(run.path)
        return known[options, level]

    return of


def test_the_storm_is_the_first_line_of_the_report(report_of):
    report = report_of()

    assert symptoms(report)[0].kind is SymptomKind.STORM
    assert as_text(report).startswith("request storm: consumer-1 asked ba-s1 24,499 times in 49 s")
    (storm,) = report["storms"]
    assert (storm.request, storm.answer) == ("PULL_MESSAGE", "PULL_RETRY_IMMEDIATELY")
    # From the new route, after the kill at 60 s, until the slave has copied from the new master what it lacked.
    assert (storm.start_ns, storm.end_ns) == (61 * 10**9, 110 * 10**9)


@pytest.mark.slow
def test_both_levels_report_the_same_load(report_of):
    coarse, full = report_of(), report_of(level=TraceLevel.FULL)
    for name in LOAD:
        assert coarse[name] == full[name], name


@pytest.mark.parametrize("options", ["offsetCheckInSlave = true", "slaveReadEnable = false"])
def test_it_is_silent_where_slaves_check_offsets_or_are_not_read(report_of, options):
    report = report_of(options)

    assert report["storms"] == ()
    assert SymptomKind.STORM not in [symptom.kind for symptom in symptoms(report)]


def test_slaves_that_check_offsets_let_messages_be_consumed_again(report_of):
    def again(options=""):
        return sum(row.duplicates for row in report_of(options)["duplicates"])

    assert again("offsetCheckInSlave = true") > again()


@pytest.mark.parametrize(
    ("options", "warned"), [("", True), ("offsetCheckInSlave = true", False), ("slaveReadEnable = false", False)]
)
def test_check_names_the_combination(options, warned):
    assert (WARNING in [setting.name for setting in check(scenario(options))]) is warned
