"""The warm server: commands and notebooks find it, others cannot use it, and nothing is left when it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.rmqemu_process import COMMAND
from support.spark_ports import guards, listening_ports
from support.waiting import until

pytestmark = pytest.mark.spark

ASK = """
import sys
from emulator.dataset.failures import spark_errors
from emulator.dataset.sessions import describe, open_command_session
from emulator.cli.terminal import one_line_errors

def sizes(batches):
    import emulator.trace.schema
    yield from batches

def slow(batches):
    import pathlib, time
    pathlib.Path(BEGAN).touch()
    time.sleep(1_000)
    yield from batches

def ask():
    with one_line_errors():
        session = open_command_session(None, *sys.argv[1:], rows=10)
        print(describe(session), session.conf.get("spark.sql.shuffle.partitions"), flush=True)
        with spark_errors(describe(session)):
            if SLOW:
                session.range(0, 8, 1, 8).mapInArrow(slow, "id long").count()
            print(session.range(10).mapInArrow(sizes, "id long").count())

import typer
app = typer.Typer()
app.command(context_settings={"allow_extra_args": True})(ask)
app()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A cache folder of its own; the server that a test leaves there is stopped."""
    folder = tmp_path_factory.mktemp("cache")
    yield folder
    rmqemu(folder, "spark", "stop")


def environment(home):
    return {**os.environ, "XDG_CACHE_HOME": str(home), "RMQEMU_SPARK_ARCHIVE": "off"}


def run(home, *command):
    return subprocess.run(
        command, env=environment(home), cwd=home, capture_output=True, text=True, timeout=200, check=False
    )


def rmqemu(home, *words):
    return run(home, *COMMAND, *words)


def question(*words, slow=False, began=""):
    code = ASK.replace("sys.argv[1:]", repr(list(words))).replace("SLOW", str(slow)).replace("BEGAN", repr(str(began)))
    return [sys.executable, "-c", code]


def ask(home, *words):
    return run(home, *question(*words))


@pytest.fixture(scope="module")
def status(home):
    """What a server reports that was started where one had left its files."""
    scratch = home / "rmqemu" / "spark" / f"server@{socket.gethostname()}" / "scratch"
    scratch.mkdir(parents=True)
    (scratch.parent / "server.json").write_text('{"pid": 1}')
    started = rmqemu(home, "spark", "start", "--memory", "512m")
    assert (started.returncode, started.stderr) == (0, "")
    return json.loads(rmqemu(home, "spark", "status", "--json").stdout)


def test_the_status_has_url_uptime_versions_and_memory(home, status):
    shown = rmqemu(home, "spark", "status")

    assert shown.returncode == 0
    assert shown.stdout.startswith(f"{status['url']} has run for ")
    assert f"pyspark {status['pyspark']}, Python {status['python']}, Java {status['java']}\n" in shown.stdout
    assert "heap of at most 512m" in shown.stdout
    assert 100 << 20 < status["memory_bytes"] < 4 << 30


def test_a_second_start_changes_nothing(home, status):
    again = rmqemu(home, "spark", "start")

    assert (again.returncode, again.stdout.split()[0]) == (0, status["url"])
    assert "runs already" in again.stdout


def test_a_command_finds_the_server_whose_workers_import_this_package(home, status):
    done = ask(home)

    assert done.stderr == ""
    assert done.stdout == f"Spark Connect {status['pyspark']}, {status['url']} 1\n10\n"


def test_its_ports_answer_only_to_those_that_know_its_secret(home, status):
    port_of_connect = int(status["url"].rpartition(":")[2])
    # The command before has had workers in Python.
    found = guards(listening_ports(status["pid"]))

    assert found.pop(port_of_connect) == ""  # asks for the token, as the tests below show
    assert list(found.values()) == ["secret", "secret"], "the driver and its blocks"
    assert secret_of(status["pid"])
    assert secret_of(status["pid"]) not in Path(f"/proc/{status['pid']}/cmdline").read_text()
    assert ask(home).returncode == 0


def secret_of(pid):
    variables = dict(line.split("=", 1) for line in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in line)
    return variables["_SPARK_AUTH_SECRET"]


@pytest.mark.slow
def test_ctrl_c_ends_a_command_in_one_line_and_what_the_server_computes_for_it(home, status):
    requested = subprocess.Popen(
        question(slow=True, began=home / "began"),
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until((home / "began").exists)
    requested.send_signal(signal.SIGINT)
    _, printed = requested.communicate(timeout=60)

    assert (requested.returncode, printed) == (130, "rmqemu: interrupted\n")
    assert ask(home).returncode == 0  # both cores are free again


@pytest.mark.parametrize("parameters", ["", "/;token=guessed"])
def test_a_client_without_the_token_is_refused_in_one_line(home, status, parameters):
    refused = ask(home, status["url"] + parameters)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"rmqemu: {status['url']} refuses this session: ")
    assert refused.stderr.count("\n") == 1


def test_a_remote_that_does_not_answer_gets_one_line(home):
    refused = ask(home, "sc://127.0.0.1:1")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "rmqemu: sc://127.0.0.1:1 cannot be reached: Connection refused\n"


def test_a_server_that_was_killed_is_noticed_and_leaves_nothing(home, status):
    os.kill(status["pid"], signal.SIGKILL)
    until(lambda: rmqemu(home, "spark", "status").returncode == 1, 30)

    assert rmqemu(home, "spark", "status").stdout == "no server runs\n"
    assert rmqemu(home, "spark", "stop").stdout == "no server runs\n"
    (folder,) = (home / "rmqemu" / "spark").glob("server@*")
    assert [path.name for path in folder.iterdir()] == ["server.lock"]
