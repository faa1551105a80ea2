"""`rmqemu examples`, and scenarios of the package by name, in a folder without any."""

import json
import signal

import pytest

from support.rmqemu_process import rmqemu, started

PATIENCE_S = 30


def test_the_command_lists_names_and_what_happens(tmp_path):
    listed = rmqemu("examples", cwd=tmp_path).stdout
    as_json = json.loads(rmqemu("examples", "--json", cwd=tmp_path).stdout)

    assert "  half-seen-consumer        A consumer that one broker cannot hear.\n" in listed
    assert "  silent-member       How long does no one consume" in listed
    assert [item["about"] for item in as_json["run"] if item["name"] == "p1-kill"] == [
        "The master is killed and comes back after 45 s."
    ]


def test_commands_take_names(tmp_path):
    checked = rmqemu("check", "half-seen-consumer", cwd=tmp_path)
    unknown = rmqemu("run", "half-seen-consume", cwd=tmp_path)

    assert (checked.returncode, checked.stdout) == (0, "no warnings\n")
    assert (unknown.returncode, "did you mean half-seen-consumer?" in unknown.stderr) == (2, True)


def test_up_without_a_file_is_the_cluster_for_guests(tmp_path):
    process = started("up", cwd=tmp_path)
    address = next(line for line in process.stdout if line.startswith("namesrvAddr="))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)

    assert address.strip().endswith(":9876")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["guests-live-seed1-1"]


@pytest.mark.parametrize("name", ["half-seen-consumer", "half_seen_consumer", "who-locks"])
def test_the_command_prints_the_file_of_a_name(tmp_path, name):
    printed = rmqemu("examples", name, cwd=tmp_path).stdout
    copy = tmp_path / "copy.toml"
    copy.write_text(printed, encoding="utf-8")

    assert printed.startswith("# ")
    assert rmqemu("check", str(copy), cwd=tmp_path).returncode == 0


def test_a_name_that_is_none_is_refused(tmp_path):
    refused = rmqemu("examples", "half-seen-consumers", cwd=tmp_path).stderr
    assert refused.startswith(
        "rmqemu: half-seen-consumers: file: there is no such file, and no scenario of the package"
    )
