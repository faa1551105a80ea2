"""`rmqemu --help`, and completion for shells."""

import os
import subprocess
from importlib.metadata import version

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from emulator.base.commit import commit
from emulator.cli.main import app
from support.every_case import each_case
from support.rmqemu_process import COMMAND, rmqemu

COMMANDS = tuple(get_command(app).commands)


def test_the_help_lists_every_command_and_what_the_exit_status_means():
    done = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"})

    assert done.exit_code == 0
    assert all(f" {command} " in done.stdout for command in COMMANDS)
    assert "Exit status: 0 valid, 1 an oracle was violated, 2 unknown, damaged or bad input" in done.stdout
    assert "--install-completion" in done.stdout
    assert "--show-completion" in done.stdout


@each_case("command", COMMANDS)
def test_each_command_has_help(command):
    done = CliRunner().invoke(app, [command, "-h"])

    assert done.exit_code == 0
    assert f"Usage: rmqemu {command}" in done.stdout


@pytest.mark.parametrize("command", ["start", "stop", "status", "archive"])
def test_each_command_about_spark_has_help(command):
    done = CliRunner().invoke(app, ["spark", command, "-h"])

    assert done.exit_code == 0
    assert f"Usage: rmqemu spark {command}" in done.stdout


def test_no_command_shows_the_help():
    assert "Usage: rmqemu" in CliRunner().invoke(app, []).output


def test_an_unknown_command_is_bad_input(tmp_path):
    done = rmqemu("dmeo", cwd=tmp_path)

    assert done.returncode == 2
    assert "No such command 'dmeo'" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_a_shell(tmp_path, shell):
    shown = rmqemu("--show-completion", shell, cwd=tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")

    assert shown.returncode == 0, shown.stderr
    assert "_RMQEMU_COMPLETE" in shown.stdout


def test_a_shell_is_offered_the_commands_that_fit():
    requested = {"_RMQEMU_COMPLETE": "complete_bash", "COMP_WORDS": "rmqemu f", "COMP_CWORD": "1"}
    done = subprocess.run(COMMAND, env={**os.environ, **requested}, capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["fidelity"]


def test_a_shell_is_offered_the_commands_about_spark():
    requested = {"_RMQEMU_COMPLETE": "complete_bash", "COMP_WORDS": "rmqemu spark st", "COMP_CWORD": "2"}
    done = subprocess.run(COMMAND, env={**os.environ, **requested}, capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["start", "stop", "status"]


def test_help_does_not_wait_for_spark(tmp_path):
    code = "import sys, emulator.cli.main; sys.exit('pyspark' in sys.modules or 'pyarrow' in sys.modules)"
    done = subprocess.run([COMMAND[0], "-c", code], cwd=tmp_path, check=False)

    assert done.returncode == 0


def test_the_version_is_that_of_the_package_with_its_commit_and_that_of_rocketmq():
    done = CliRunner().invoke(app, ["--version"])
    expected = f"rmqemu {version('rocketmq-emulator')} (commit {commit()}), after RocketMQ 5.3.3\n"
    assert (done.exit_code, done.stdout) == (0, expected)
