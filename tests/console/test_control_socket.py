"""The control socket of a live cluster: its answers, and those who mean it no good."""

import os
import signal
import socket
import stat
import time
from contextlib import contextmanager
from pathlib import Path

import msgpack
import pytest

from emulator.console.control_socket import CLIENTS_MAX, REQUEST_BYTES_MAX, SOCKET_FILE, ask, newest_socket
from support.rmqemu_process import rmqemu, started
from support.waiting import until

SCENARIO = """
[scenario]
name = "small"
seed = 1
run_for_s = 3600

[nameserver]
count = 1

[[broker]]
name = "broker-a"

[[topic]]
name = "orders"
queues = 2
"""


@contextmanager
def up(folder):
    """A live cluster without a terminal: its control socket, and its process."""
    (folder / "small.toml").write_text(SCENARIO)
    process = started("up", "small.toml", cwd=folder)
    try:
        assert process.stdout.readline()  # something happened: it runs
        path = newest_socket(folder / "runs")
        assert ask(path, "status")[0]
        yield path, process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def fresh(tmp_path):
    """A cluster of one's own."""
    with up(tmp_path) as (path, process):
        yield path, process


@pytest.fixture(scope="module")
def _one_for_all(tmp_path_factory):
    with up(tmp_path_factory.mktemp("cluster")) as (path, _):
        yield path


@pytest.fixture
def path(_one_for_all):
    """The socket of a cluster that others meet, too: unhurt afterwards, or they will report."""
    yield _one_for_all
    assert ask(_one_for_all, "faults") == (True, ("no fault is active",))


def ctl(*words, cwd):
    """Its status, and what it printed to either end."""
    done = rmqemu("ctl", *words, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def answer(connection):
    length = int.from_bytes(connection.recv(4), "big")
    content = b""
    while len(content) < length:
        content += connection.recv(length - len(content))
    return msgpack.unpackb(content)


def connect(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    connection.connect(str(path))
    return connection


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def test_verbs_are_done_and_reported_and_refusals_are_one_line(path):
    assert ask(path, "cut ns-1 broker-a") == (True, ("cut-1: cut ns-1 <-> broker-a",))
    assert ask(path, "heal cut-1") == (True, ("healed cut-1: cut ns-1 <-> broker-a",))
    assert ask(path, "kill brokr-a") == (False, ("there is no node brokr-a; did you mean broker-a?",))


def test_no_one_but_the_owner_may_connect(path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "sent",
    [
        framed(b"\xc1"),
        framed(msgpack.packb(["status"])),
        framed(msgpack.packb({"line": 7})),
        framed(b""),
        (16 * 1024 * 1024).to_bytes(4, "big") + b"x" * 1_000,
        (REQUEST_BYTES_MAX + 1).to_bytes(4, "big"),
        framed(os.urandom(300)),
    ],
    ids=["no msgpack", "no map", "no text", "empty", "16 MiB", "one byte too long", "noise"],
)
def test_what_cannot_be_understood_gets_an_error_and_harms_nothing(path, sent):
    with connect(path) as connection:
        connection.sendall(sent)
        reported = answer(connection)
    assert reported["ok"] is False
    assert len(reported["lines"]) == 1
    assert ask(path, "faults") == (True, ("no fault is active",))


def test_half_a_message_and_a_client_that_never_reads_keep_no_one_waiting(path):
    with connect(path) as half, connect(path) as deaf:
        half.sendall(framed(msgpack.packb({"line": "status"}))[:7])
        deaf.setblocking(False)
        try:
            while True:
                deaf.send(framed(msgpack.packb({"line": "help"})) * 100)
        except BlockingIOError:
            pass
        begin = time.monotonic()
        assert ask(path, "status")[0]
        assert time.monotonic() - begin < 5


def test_who_is_one_too_many_is_reported_so_and_room_comes_back(path):
    crowd = [connect(path) for _ in range(100)]
    lines = [answer(connection)["lines"] for connection in crowd[CLIENTS_MAX:]]
    assert lines == [[f"{CLIENTS_MAX} clients are connected already"]] * (100 - CLIENTS_MAX)
    for connection in crowd:
        connection.close()
    until(lambda: ask(path, "status")[0])


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_ended_cluster_leaves_no_socket_and_says_how_to_do_it_again(fresh, ending):
    path, process = fresh
    assert ask(path, "kill broker-a")[0]
    process.send_signal(ending)
    _, reported = process.communicate(timeout=30)
    replay = path.parent / "by_hand.toml"
    assert not path.exists()
    assert f"do again what was done interactively: rmqemu run {replay.relative_to(path.parents[2])}" in reported
    assert 'id = "kill-1"' in replay.read_text()


def test_ctl_says_a_verb_to_the_newest_run_and_fails_in_one_line(path):
    cwd: Path = path.parents[2]
    status, reported, _ = ctl("nodes", cwd=cwd)
    assert status == 0
    assert [line.split()[0] for line in reported.splitlines()] == ["ns-1", "broker-a"]
    status, _, why = ctl("cut", cwd=cwd)
    assert status == 2
    assert why == "rmqemu: expected: cut A [B] [one-way]\n"


def test_without_a_cluster_ctl_says_so(tmp_path):
    status, _, why = ctl("status", cwd=tmp_path)
    assert status == 2
    assert why == "rmqemu: runs: no cluster runs there; `rmqemu up SCENARIO` starts one\n"
    (tmp_path / "runs" / "dead").mkdir(parents=True)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "runs" / "dead" / SOCKET_FILE))
    stale.close()
    _, _, why = ctl("status", cwd=tmp_path)
    assert "Connection refused; does the cluster run?" in why


def test_the_socket_reads_and_writes_files_of_the_run_only(path, tmp_path):
    (tmp_path / "secret").write_text("a secret\n")
    for line in (f"script {tmp_path / 'secret'}", f"save {tmp_path / 'x.toml'}", "save ../x.toml"):
        done, (why,) = ask(path, line)
        assert not done
        assert "expected a file below the run directory" in why
        assert "secret\n" not in why
    assert not (tmp_path / "x.toml").exists()


def test_ctl_gives_a_user_the_files_of_his_own_terminal(path, tmp_path):
    run = ("--run", str(path.parent))
    (tmp_path / "mine").write_text("# three verbs\ncut ns-1 broker-a\n\nheal all\nkill brokr-a\nstatus\n")
    status, reported, why = ctl(*run, "script", "mine", cwd=tmp_path)
    assert status == 2
    assert [line.split("-")[0] for line in reported.splitlines()] == ["cut", "healed cut"]
    assert why == "rmqemu: mine:5: kill brokr-a: there is no node brokr-a; did you mean broker-a?\n"

    (tmp_path / "wrong").write_text("cut ns-1 broker-a\ncutt\n")
    assert ctl(*run, "script", "wrong", cwd=tmp_path) == (
        2,
        "",
        "rmqemu: wrong:2: there is no verb cutt; did you mean cut?\n",
    )

    status, reported, _ = ctl(*run, "save", "mine.toml", cwd=tmp_path)
    assert (status, reported) == (0, "saved; do it again with: rmqemu run mine.toml\n")
    assert 'kind = "cut"' in (tmp_path / "mine.toml").read_text()
    assert ctl(*run, "save", "nowhere/x.toml", cwd=tmp_path)[2] == "rmqemu: nowhere/x.toml: No such file or directory\n"


def test_a_text_of_a_hundred_kilobytes_is_refused_before_it_is_sent(path, tmp_path):
    status, _, why = ctl("--run", str(path.parent), "kill", "x" * 100_000, cwd=tmp_path)
    assert status == 2
    assert why.endswith("… : expected 65536 bytes at most in one request\n".replace(" :", ":"))
    assert len(why) < 200
