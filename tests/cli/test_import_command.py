"""`rmqemu import` writes a scenario, and `rmqemu check` accounts for a configuration file."""

import os
import stat

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.run import run_scenario
from emulator.spec import load, loads

BROKER = """brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
fileReservedTime = 29*1000
autoCreateTopicEnabled = true
storeType = defaultRocksDB
secretKey = canary
commercialBaseCount = 1
enablePropertyFilter = yes
"""
COMPOSE = """
services:
  broker:
    image: apache/rocketmq
    command: sh mqbroker -c /conf/broker.conf
    volumes: ["FOLDER:/conf"]
"""


def rmqemu(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def broker_conf(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broker.conf").write_text(BROKER)
    return "broker.conf"


def test_the_scenario_is_printed_and_the_account_goes_to_standard_error(broker_conf):
    done = rmqemu("import", broker_conf)

    assert done.exit_code == 0
    assert loads(done.stdout, "printed").brokers[0].broker_name == "broker-a"
    assert [line[:70] for line in done.stderr.splitlines()] == [
        "warning: broker.conf:4: fileReservedTime: '29*1000' is not read: expec",
        "warning: broker.conf:5: autoCreateTopicEnabled: unknown to RocketMQ 5.",
        "warning: broker.conf:6: storeType: known, not emulated: a detail of th",
        "warning: broker.conf:7: secretKey: RocketMQ 5.3.3 does not read it; a ",
        "warning: broker.conf:9: enablePropertyFilter: 'yes' is false in Rocket",
        "broker.conf: 9 options: 1 taken, 3 set elsewhere, 1 known, not emulate",
    ]
    assert "canary" not in done.output


def test_a_written_scenario_is_checked_and_run_as_it_is(broker_conf, tmp_path):
    done = rmqemu("import", broker_conf, "--output", "made.toml")

    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "made.toml")
    assert rmqemu("check", "made.toml").stdout == "no warnings\n"
    assert run_scenario(load("made.toml"), runs=tmp_path).manifest["digest"]
    assert stat.S_IMODE((tmp_path / "made.toml").stat().st_mode) == 0o600


def test_check_accounts_for_each_option(broker_conf):
    lines = rmqemu("check", broker_conf).stdout.splitlines()

    assert [line.split(": ")[1:3] for line in lines if line.startswith("warning: ")] == [
        ["broker.conf:4", "fileReservedTime"],
        ["broker.conf:5", "autoCreateTopicEnabled"],
        ["broker.conf:6", "storeType"],
        ["broker.conf:7", "secretKey"],
        ["broker.conf:9", "enablePropertyFilter"],
    ]
    assert "broker.conf:2: brokerName: set elsewhere: name of the broker group: name of [[broker]]" in lines
    assert lines[-1] == "this is a configuration file: rmqemu import broker.conf makes a scenario of it"


def test_the_kind_may_be_given(tmp_path):
    file = tmp_path / "ports"
    file.write_text("listenPort = 9000\n")

    assert "may be for a broker or a namesrv" in rmqemu("import", file).stderr
    made = loads(rmqemu("import", file, "--kind", "namesrv").stdout, "printed")
    assert made.nameservers[0].config.listen_port == 9000
    assert "listenPort: taken" in rmqemu("check", file, "--kind", "namesrv").stdout


@pytest.mark.parametrize("folder", ["./conf", "conf", "./conf/"])
def test_a_file_that_a_compose_file_mounts_is_read(tmp_path, folder):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "broker.conf").write_text("brokerName=mounted\n")
    (tmp_path / "docker-compose.yml").write_text(COMPOSE.replace("FOLDER", folder))

    done = rmqemu("import", tmp_path / "docker-compose.yml")

    assert loads(done.stdout, "printed").brokers[0].broker_name == "mounted"


@pytest.mark.parametrize("folder", ["../secret", "/etc", "./link"])
def test_no_file_outside_the_folder_of_a_compose_file_is_read(tmp_path, folder):
    secret, inside = tmp_path / "secret", tmp_path / "inside"
    secret.mkdir()
    inside.mkdir()
    (secret / "broker.conf").write_text("brokerName=outside\n")
    (inside / "link").symlink_to(secret)
    (inside / "docker-compose.yml").write_text(COMPOSE.replace("FOLDER", folder))

    done = rmqemu("import", inside / "docker-compose.yml")

    assert loads(done.stdout, "printed").brokers[0].broker_name == "broker"


def fifo(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def folder(path):
    path.mkdir()


def dangling(path):
    path.symlink_to("nowhere")


def nothing(_path):
    return


def huge(path):
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("entry", [fifo, device, folder, dangling, nothing, huge], ids=lambda entry: entry.__name__)
@pytest.mark.parametrize("command", ["import", "check"])
def test_what_is_no_file_is_refused_in_one_line(tmp_path, command, entry):
    path = tmp_path / "broker.conf"
    entry(path)

    done = rmqemu(command, path)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rmqemu: {path}: cannot be read: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("entry", [fifo, device, folder, dangling, huge], ids=lambda entry: entry.__name__)
def test_nothing_is_written_where_something_is(broker_conf, tmp_path, entry):
    entry(tmp_path / "made.toml")
    before = sorted((path.name, path.lstat().st_mode, path.lstat().st_size) for path in tmp_path.iterdir())

    done = rmqemu("import", broker_conf, "--output", "made.toml")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "rmqemu: made.toml: expected a path at which there is nothing yet\n"
    assert sorted((path.name, path.lstat().st_mode, path.lstat().st_size) for path in tmp_path.iterdir()) == before


def test_every_option_of_rocketmq_is_listed():
    lines = [line.split("\t") for line in rmqemu("options", "--all", "broker").stdout.splitlines()]
    listed = {(line[1], line[2]): line[3:6] for line in lines}

    assert len(lines) == 454
    assert listed["BrokerConfig", "brokerHeartbeatInterval"] == ["int", "1000", "emulated"]
    assert listed["BrokerConfig", "brokerName"] == ["String", "[host]", "elsewhere"]
    assert listed["MessageStoreConfig", "timerWarmEnable"] == ["boolean", "false", "read from no file"]


def test_an_unknown_kind_of_node_is_one_line():
    done = rmqemu("options", "--all", "brokr")

    assert done.stderr == 'rmqemu: options: unknown kind of node "brokr"; did you mean "broker"?\n'
