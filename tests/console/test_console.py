"""The prompt of `rmqemu up` in a real terminal, and what stands in its place without one."""

import os
import signal
import sys

import pexpect
import pytest

from emulator.console.control_socket import SOCKET_FILE
from emulator.run.run import BY_HAND_FILE
from emulator.trace.run_directory import open_run
from emulator.trace.schema import FAULTS
from support.run_rows import table_rows

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

[[consumer]]
group = "g"
topics = ["orders"]
names = ["c1", "c2"]
"""


@pytest.fixture
def terminal(tmp_path):
    """A terminal in which `rmqemu up` runs."""
    yield from in_a_terminal(tmp_path, PROMPT_TOOLKIT_NO_CPR="1")


@pytest.fixture
def terminal_with_page(tmp_path):
    """A terminal in which `rmqemu up --web` runs, and that says where its cursor is: only then it has a toolbar."""
    yield from in_a_terminal(tmp_path, "--web")


def in_a_terminal(tmp_path, *options, **environment):
    (tmp_path / "small.toml").write_text(SCENARIO)
    spawned = pexpect.spawn(
        sys.executable,
        ["-m", "emulator.cli", "up", *options, "small.toml"],
        cwd=str(tmp_path),
        env=dict(os.environ, TERM="xterm", **environment),
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 140),
        # Under nohup the tests ignore the signal, and what they start would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    yield spawned
    if spawned.isalive():  # else its window may be closed already
        spawned.close(force=True)


ASKS_FOR_THE_CURSOR, CURSOR_IS_ON_TOP = "\x1b[6n", "\x1b[1;1R"


def test_the_toolbar_keeps_the_address_of_the_page(terminal_with_page):
    terminal_with_page.expect(r"dashboard: (http://127\.0\.0\.1:\d+/#\S+)")
    address = terminal_with_page.match[1].strip()
    toolbar = "nothing is broken; help lists the verbs"
    while terminal_with_page.expect_exact([ASKS_FOR_THE_CURSOR, toolbar]) == 0:
        terminal_with_page.send(CURSOR_IS_ON_TOP)
    while terminal_with_page.expect_exact([ASKS_FOR_THE_CURSOR, f"dashboard: {address}"]) == 0:
        terminal_with_page.send(CURSOR_IS_ON_TOP)
    terminal_with_page.send("quit\r")
    terminal_with_page.expect(pexpect.EOF)


def test_verbs_are_typed_below_the_events_and_the_prompt_counts_what_is_broken(terminal):
    terminal.expect(r"\[0 faults active\]>")
    terminal.expect("c2 +ready")
    terminal.send("cut c1 broker-a\r")
    terminal.expect("FAULT begin +cut c1 <-> broker-a")
    terminal.expect("cut-1: cut c1 <-> broker-a")
    terminal.expect(r"\[1 fault active\]>")
    terminal.send("kill brokr-a\r")
    terminal.expect("there is no node brokr-a; did you mean broker-a")
    terminal.send("heal all\r")
    terminal.expect("healed cut-1: cut c1 <-> broker-a")
    terminal.expect(r"\[0 faults active\]>")
    terminal.send("quit\r")
    terminal.expect("leaving: every fault heals")
    terminal.expect("do again what was done interactively: rmqemu run runs/small-live-seed1-1/by_hand.toml")
    terminal.expect(pexpect.EOF)


def test_a_verb_is_completed_and_the_last_line_comes_back(terminal):
    terminal.expect("c2 +ready")
    terminal.send("susp\t")
    terminal.expect("suspend")
    terminal.send(" c2\r")
    terminal.expect("suspend-1: suspend c2")
    terminal.send("resume c2\r")
    terminal.expect("healed suspend-1")
    terminal.send("\x1b[A\r")
    terminal.expect("c2 is not suspended: there is nothing to resume")


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_leaving_with_a_key_heals_everything(terminal, key):
    terminal.expect("c2 +ready")
    terminal.send("loss 50\r")
    terminal.expect("loss-1: lose 50 % on all links")
    terminal.send(key)
    terminal.expect("FAULT end +loss all links")
    terminal.expect(pexpect.EOF)


def test_a_console_whose_window_is_closed_leaves_no_socket_and_keeps_what_was_done(terminal, tmp_path):
    terminal.expect(r"\[0 faults active\]>")
    terminal.send("cut c1 broker-a\r")
    terminal.expect("cut-1: cut c1 <-> broker-a")
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / SOCKET_FILE).exists()
    os.close(terminal.child_fd)  # the kernel sends SIGHUP to who sat there
    assert terminal.wait() == 130
    assert not (run / SOCKET_FILE).exists()
    assert 'id = "cut-1"' in (run / BY_HAND_FILE).read_text()
    ended = [row["event"] for row in table_rows(run, FAULTS, ("event",))]
    assert ended[0] == "begin"
    assert open_run(run).manifest["ended"] == "interrupted"
