"""`rmqemu up SPEC --exec COMMAND...`: a program, or a test suite, next to a live cluster."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.forked_command import forked
from support.small_scenario import SCENARIO


@pytest.fixture
def up(tmp_path):
    """Runs a command next to a cluster."""
    (tmp_path / "small.toml").write_text(SCENARIO)

    return lambda *command: forked(["up", "small.toml", "--exec", *command], tmp_path, {})


def test_a_command_finds_the_nameservers_and_ends_the_cluster_with_its_own_status(up, tmp_path):
    code = (
        "import json, os, socket, sys\n"
        "first = os.environ['NAMESRV_ADDR'].split(';')[0].split(':')\n"
        "socket.create_connection((first[0], int(first[1])), 5).close()\n"
        "print(json.dumps(dict(os.environ)))\n"
        "sys.exit(7)\n"
    )
    done = up(sys.executable, "-c", code)
    assert done.returncode == 7, done.stderr
    surroundings = json.loads(done.stdout)
    assert [address.rpartition(":")[2] for address in surroundings["NAMESRV_ADDR"].split(";")] == ["9876", "9876"]
    run = Path(surroundings["RMQEMU_RUN"])
    assert run == next((tmp_path / "runs").iterdir())
    assert (run / "manifest.json").exists()
    assert not (run / "ctl.sock").exists()
    assert f"what happened: rmqemu analyze runs/{run.name}\n" in done.stderr


def test_each_guest_has_an_address_in_the_environment(up, tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO.replace("run_for_s", 'guests = ["shop", "e-mail"]\nrun_for_s'))
    done = up("sh", "-c", 'echo "$NAMESRV_ADDR"; echo "$NAMESRV_ADDR_SHOP"; echo "$NAMESRV_ADDR_E_MAIL"')
    first, shop, mail = done.stdout.splitlines()
    assert first == shop
    assert mail not in ("", shop)


def test_a_command_breaks_the_cluster_by_ctl(up, tmp_path):
    ctl = f'{sys.executable} -m emulator.cli ctl --run "$RMQEMU_RUN"'
    done = up("sh", "-c", f"{ctl} kill broker-a && {ctl} status")
    assert done.returncode == 0, done.stderr
    assert "2 running, 1 down; 1 active fault" in done.stdout
    assert (next((tmp_path / "runs").iterdir()) / "by_hand.toml").exists()


def test_a_command_has_the_input_of_whoever_started_the_cluster(tmp_path):
    (tmp_path / "small.toml").write_text(SCENARIO)
    command = [sys.executable, "-m", "emulator.cli", "up", "small.toml", "--exec", "cat"]
    given = "the cluster ends with this\n"
    done = subprocess.run(command, check=False, cwd=tmp_path, input=given, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "the cluster ends with this\n")


def test_what_stands_behind_exec_belongs_to_the_command(up):
    done = up(sys.executable, "-c", "import sys; print(sys.argv[1:])", "--help", "--runs", "x y")
    assert done.stdout == "['--help', '--runs', 'x y']\n"


def test_a_command_that_cannot_be_run_is_reported_in_one_line(up):
    done = up("no-such-command")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "rmqemu: no-such-command: No such file or directory\n"
    killed = up("sh", "-c", "kill -9 $$")
    assert killed.returncode == 128 + 9
