"""A first afternoon with a live cluster, typed at a terminal, and said over its control socket."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from console.transcript import Exchange, example, read
from emulator.console.control_client import VerbRefusedError, say
from emulator.console.control_socket import SOCKET_FILE, newest_socket
from emulator.run.run import BY_HAND_FILE
from emulator.spec import load
from emulator.trace.run_directory import open_run

UP = ["-m", "emulator.cli", "up", "first_afternoon.toml"]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


@pytest.fixture
def place(tmp_path):
    """A directory with the example in it."""
    shutil.copy(example("first_afternoon.toml"), tmp_path)
    return tmp_path


def transcript() -> tuple[Exchange, ...]:
    return read(example("first_afternoon.txt").read_text())


def answer(path: Path, line: str) -> tuple[str, ...]:
    """What `rmqemu ctl` reports."""
    words = shlex.split(line, comments=True)
    try:
        return tuple(say(path, words)) if words else ()
    except VerbRefusedError as error:
        return (str(error),)


def test_over_the_control_socket_every_line_is_reported_as_in_the_transcript(place, monkeypatch):
    monkeypatch.chdir(place)
    process = subprocess.Popen(
        [sys.executable, *UP], cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    try:
        process.stdout.readline()  # something happens: it runs
        path = newest_socket(place / "runs")
        for exchange in transcript():
            reported = answer(path, exchange.typed)
            assert exchange.is_reported(reported), (exchange, reported)
        rest, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    run = open_run(rest.splitlines()[-1] if rest.startswith("/") else place / rest.splitlines()[-1])
    assert not (run.path / SOCKET_FILE).exists()
    kinds = [timed.fault.kind for timed in load(run.path / BY_HAND_FILE).faults.faults]
    assert kinds == ["kill", "cut", "delay", "drop", "clock_skew", "suspend", "scale", "kill"]
    assert load(place / "afternoon.toml").faults.faults


@pytest.mark.slow
def test_at_the_prompt_every_line_is_reported_as_in_the_transcript(place):
    terminal = pexpect.spawn(
        sys.executable,
        UP,
        cwd=str(place),
        env=dict(os.environ, TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1", XDG_STATE_HOME=str(place)),
        encoding="utf-8",
        timeout=60,
        dimensions=(50, 200),
    )
    try:
        terminal.expect(r"\[0 faults active\]>")
        for exchange in transcript():
            terminal.send(f"{exchange.typed}\r")
            for line in exchange.reported:
                if line != "..." and not exchange.typed.startswith("views"):  # that one is painted
                    terminal.expect(".*?".join(re.escape(part) for part in line.split("...")))
        terminal.expect("do again what was done interactively: rmqemu run ")
        terminal.expect(pexpect.EOF)
    finally:
        terminal.close(force=True)
    assert (place / "rmqemu" / "history").read_text().count("+kill c2") == 1
