"""`rmqemu options`: the options of a role, for people, for grep, and for programs."""

import json
import os
import pty
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.spec import loads
from emulator.spec.reading.reference import ROLES
from nodes.config import BrokerConfig, ConsumerConfig, NameserverConfig
from nodes.config import options as fields

HEAD = '[scenario]\nname = "x"\nrun_for_s = 1\n'
BROKER = '[[broker]]\nname = "b"\n'
GROUP = '[[topic]]\nname = "t"\n[[consumer]]\ngroup = "g"\ntopics = ["t"]\n'


def options(*arguments):
    return CliRunner().invoke(app, ["options", *arguments])


def listed(role):
    return {load["name"]: load for load in json.loads(options(role, "--json").stdout)[role]}


def test_a_line_of_the_piped_list_says_all_of_an_option():
    done = options("broker")
    lines = dict(line.split("\t", 2)[1:] for line in done.stdout.splitlines())

    assert done.exit_code == 0
    assert lines["brokerHeartbeatInterval"].split("\t") == [
        *("whole number >= 1", "milliseconds", "1000", ""),
        "Time between two heartbeats; sent only with `enableSlaveActingMaster`.",
    ]
    reported = "rip32: true; release 4.9: false; release 5.3.3: false"
    assert lines["enableSlaveActingMaster"].split("\t")[:4] == ["true or false", "", "false", reported]
    assert lines["totalReplicas"].split("\t")[3].startswith("rip32: as many as replicas; ")
    assert lines["release"].startswith("one of 4.9, 5.3.3, 5.4.0\t")


def test_without_a_role_all_roles_are_listed():
    done = options()

    assert list(dict.fromkeys(line.split("\t")[0] for line in done.stdout.splitlines())) == list(ROLES)
    assert list(json.loads(options("--json").stdout)) == list(ROLES)


def test_an_unknown_role_is_one_line():
    done = options("brokr")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == 'rmqemu: options: unknown role "brokr"; did you mean "broker"?\n'


@pytest.mark.parametrize("preset", ["rip32", "assigner", "classic"])
def test_what_a_preset_sets_is_what_the_loader_sets(preset):
    scenario = loads(HEAD + f'preset = "{preset}"\n' + BROKER + GROUP, "x")
    configs = {
        "broker": (scenario.brokers[0].config, BrokerConfig()),
        "nameserver": (scenario.nameservers[0].config, NameserverConfig()),
        "consumer": (scenario.consumers[0].config, ConsumerConfig()),
    }
    for role, (config, shipped) in configs.items():
        reported = {name: item["sets"].get(preset) for name, item in listed(role).items() if preset in item["sets"]}
        reported.pop("totalReplicas", None)  # it depends on the scenario
        found = {name: json.loads(value) for name, value in reported.items()}
        names = {name: field.name for name, field in fields(type(config)).items()}
        assert found == {name: getattr(config, names[name]) for name in found}
        changed = [key for key, name in names.items() if getattr(config, name) != getattr(shipped, name)]
        assert [key for key in changed if key not in found] == []


def test_what_a_release_sets_is_what_the_loader_sets():
    scenario = loads(HEAD + BROKER + 'options.release = "4.9"\n', "x")
    for name, item in listed("broker").items():
        if "release 4.9" in item["sets"]:
            value = getattr(scenario.brokers[0].config, fields(BrokerConfig)[name].name)
            assert json.loads(item["sets"]["release 4.9"]) == value, name


def test_options_that_a_lite_pull_consumer_cannot_change_are_not_listed():
    assert "consumeOrderly" not in listed("lite-pull-consumer")
    assert listed("lite-pull-consumer")["pullBatchSize"]["default"] == "10"


def in_a_terminal(*arguments):
    """Exit status and output of the command in a terminal."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "emulator.cli", "options", *arguments]
    process = subprocess.Popen(command, stdout=follower, env={**os.environ, "COLUMNS": "120", "TERM": "dumb"})
    os.close(follower)
    reported = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        reported += part
    os.close(leader)
    return process.wait(), reported


def test_in_a_terminal_it_is_a_table_with_the_meaning_below_each_option():
    status, reported = in_a_terminal("statefulset")

    assert status == 0
    assert b"statefulset: 15 options" in reported
    assert b"From SIGTERM to SIGKILL." in reported
    assert b"\t" not in reported


def test_every_option_of_rocketmq_is_a_table_in_a_terminal():
    status, reported = in_a_terminal("--all", "namesrv")

    assert status == 0
    assert b"namesrv: 61 options" in reported
    assert b"emulated: Present" in reported
    assert b"\t" not in reported


def test_who_has_read_enough_is_reported_nothing():
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "emulator.cli", "options"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")
