"""`--limit` and `--service`: limits of the service verdict for one call, and an exit status that follows from it."""

import json

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from support.campaigns import SHORT, write_campaign
from support.rmqemu_process import write_small

PATIENT = ("--limit", "failed_sends_per_mille=1000")
"""1 of 24 sends of the small run fails, which is paging; with this limit an idle member is left, which is degraded."""


def rmqemu(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    done = rmqemu("run", write_small(folder, **SHORT), "--runs", folder / "runs")
    return done.stdout.splitlines()[-1]


def test_limits_of_a_call_change_the_service_verdict_and_not_the_rules(run):
    done = [rmqemu("analyze", run, "--json", *words) for words in ((), PATIENT)]
    before, patient = (json.loads(item.stdout) for item in done)

    assert (before["verdict"], before["service"]) == ("valid", "paging")
    assert (patient["verdict"], patient["service"]) == ("valid", "degraded")
    assert patient["limits"] == before["limits"] | {"failed_sends_per_mille": 1000}


def test_without_service_the_exit_status_is_that_of_the_rules_and_with_it_a_paging_run_fails(run):
    assert rmqemu("analyze", run).exit_code == 0
    assert rmqemu("analyze", run, "--service").exit_code == 1


def test_a_degraded_run_does_not_fail(run):
    assert rmqemu("analyze", run, *PATIENT, "--service").exit_code == 0


def test_limits_hold_for_each_of_several_runs(run, tmp_path):
    other = rmqemu("run", write_small(tmp_path, **SHORT), "--runs", tmp_path, "--seed", 7).stdout.splitlines()[-1]

    done = [rmqemu("analyze", run, other, *words, "--service") for words in ((), PATIENT)]

    assert [item.exit_code for item in done] == [1, 0]
    assert [item.stdout.splitlines()[-1] for item in done] == [
        "2 runs: 2 valid; service 2 paging",
        "2 runs: 2 valid; service 1 calm, 1 degraded",
    ]


def test_a_report_and_a_comparison_take_limits_too(run, tmp_path):
    other = rmqemu("run", write_small(tmp_path, **SHORT), "--runs", tmp_path, "--seed", 7).stdout.splitlines()[-1]

    page = rmqemu("report", run, *PATIENT, "--out", tmp_path / "page.html")
    compared = rmqemu("compare", run, other, *PATIENT)

    assert any(line.startswith("rules valid, service degraded: ") for line in page.stdout.splitlines())
    assert compared.stdout.startswith("Rules: valid in both. Service: degraded in A, ")


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        (("lag=60",), "--limit: there is no limit lag; did you mean lag_s?"),
        (("lag_s",), "--limit: expected KEY=VALUE, such as lag_s=60, not lag_s"),
        (("lag_s=0",), "--limit lag_s: expected a whole number of seconds >= 1, not 0"),
        (("lag_s=-5",), "--limit lag_s: expected a whole number of seconds >= 1, not -5"),
        (("lag_s=1.5",), "--limit lag_s: expected a whole number of seconds >= 1, not '1.5'"),
        (
            ("notifications_percent=101",),
            "--limit notifications_percent: expected a whole number of percent from 1 to 100, not 101",
        ),
        (("lag_s=60", "lag_s=30"), "--limit lag_s: expected one value, not 60 and 30"),
        (("lag_s=" + "9" * 5000,), "--limit lag_s: expected a whole number of seconds >= 1, not "),
    ],
    ids=["unknown", "no value", "zero", "negative", "no whole number", "more than all", "twice", "huge"],
)
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_a_limit_that_cannot_be_is_one_line_before_anything_is_read(command, texts, complaint):
    done = rmqemu(command, "nowhere", *(word for text in texts for word in ("--limit", text)))

    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"rmqemu: {complaint}")
    assert len(done.stderr) < 400


def test_service_of_a_single_run_is_refused_since_it_is_not_judged(tmp_path):
    done = rmqemu("run", write_small(tmp_path, **SHORT), "--service", "--runs", tmp_path)

    assert (done.exit_code, done.stderr) == (2, "rmqemu: --service: expected only with --seeds\n")


def campaign(folder, *words, **changes):
    file = write_campaign(folder, **{'"1-4"': '"1"'} | changes)
    return rmqemu("campaign", file, "--campaigns", folder / "campaigns", "--jobs", 1, *words)


def test_a_campaign_fails_by_service_only_where_that_is_wanted(tmp_path):
    assert campaign(tmp_path).exit_code == 0
    assert campaign(tmp_path, "--service").exit_code == 1


def test_the_limits_of_a_campaign_file_judge_its_runs(tmp_path):
    patient = {"[[variant]]": "[service]\nfailed_sends_per_mille = 1000\n\n[[variant]]"}

    assert campaign(tmp_path, "--service", **patient).exit_code == 0


def test_a_campaign_takes_no_limits_when_it_is_reported_or_compared(tmp_path):
    path = campaign(tmp_path).stdout.splitlines()[-1]

    for command in ("report", "compare"):
        done = rmqemu(command, path, "--limit", "lag_s=60")
        assert (done.exit_code, done.stderr) == (
            2,
            "rmqemu: --limit: expected only with runs: a table [service] in its file has the limits of a campaign\n",
        )
