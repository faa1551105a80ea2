"""The scenarios of examples/rip32, executed once, show the behaviour that their comments promise."""

import json

import attrs
import pytest
import typer
from typer.testing import CliRunner

from emulator.spec import load
from emulator.spec.bundled import example
from faults.process import Kill, Restart, Suspend
from nodes.config import BrokerConfig, NameserverConfig
from studies.timelines.__main__ import timelines
from studies.timelines.seeds import execute_seed
from support.every_case import each_case


def executed(name, seed=1):
    return execute_seed(example("rip32") / f"{name}.toml", seed)


FAULTS = {
    "kill": (Kill, 45_000),
    "term": (Restart, 45_000),
    "stop15": (Suspend, 15_000),
    "stop40": (Suspend, 40_000),
    "stop150": (Suspend, 150_000),
}


@each_case("path", sorted(example("rip32").glob("p*.toml")), ids=lambda path: path.stem)
def test_a_file_holds_the_members_options_and_fault_of_the_real_run_it_is_named_after(path):
    setup, fault = path.stem.split("_")
    scenario = load(path)
    (timed,) = scenario.faults.faults
    acting = setup != "p3"

    assert (type(timed.fault), timed.for_ms) == FAULTS[fault]
    assert timed.fault.scope.node == "ba"
    assert len(scenario.nameservers) == (2 if setup == "p2" else 1)
    assert {spec.config for spec in scenario.nameservers} == {
        NameserverConfig(support_acting_master=acting, notify_min_broker_id_changed=acting)
    }
    assert {attrs.evolve(broker.config, listen_port=10_911) for broker in scenario.brokers} == {
        BrokerConfig(enable_slave_acting_master=acting, total_replicas=3 if acting else 1, slave_read_enable=True)
    }
    assert [broker.broker_id for broker in scenario.brokers] == [0, 1, 2]
    assert (scenario.topics[0].queues, scenario.producers[0].rate_per_s) == (4, 10)


def test_a_killed_master_is_replaced_at_once_and_takes_over_again_after_its_pre_online():
    found = executed("p1_kill")

    assert found["ns_removed"][0] <= found["s1_special_on"][0] < 0.1
    assert 1 < found["master_special_on"][0] < 8
    assert found["master_special_on"][0] < found["ns_master_back"][0] < found["s1_special_off"][0]
    assert found["overlap"][0] < 0.1


@pytest.mark.trap("M46")
def test_on_one_address_the_link_of_the_first_slave_passes_for_that_of_the_second():
    found = [executed("p1_kill", seed)["master_special_on"][0] for seed in (1, 2, 3)]

    # A slave looks for its master every 5 s: a wait of its own for the second slave would take 5 s more.
    assert all(seconds < 5 + 2 + 0.1 for seconds in found)


@pytest.mark.slow
def test_a_frozen_master_is_missed_at_a_scan_10_s_after_its_last_heartbeat_and_returns_without_pre_online():
    found = executed("p1_stop15")

    assert 9 < found["ns_removed"][0] <= 15.1
    assert "master_special_on" not in found
    assert found["overlap"] == found["s1_special_off"]


@pytest.mark.slow
def test_without_acting_master_no_one_acts_and_a_freeze_lasts_120_s_from_the_last_registration():
    found = executed("p3_stop150")

    assert "route_acting" not in found
    assert "s1_special_on" not in found
    assert 90 < found["ns_removed"][0] <= 125.1


def test_a_cold_start_is_a_chain_of_hand_overs():
    found = {event: values[0] for event, values in executed("cold_start").items() if event != "overlap"}

    assert list(found) == sorted(found, key=found.__getitem__)
    assert next(iter(found)) == "s2_special_on"
    assert list(found)[-1] == "s1_special_off"


def test_the_command_writes_a_row_per_event_and_prints_it_against_the_real_values(tmp_path):
    app = typer.Typer()
    app.command()(timelines)
    out = tmp_path / "timelines.json"
    done = CliRunner().invoke(app, ["--only", "cold_start", "--seeds", "2", "--out", str(out)])
    rows = json.loads(out.read_text())

    assert done.exit_code == 0, done.output
    assert all(list(row) == ["run", "event", "n", "minimum", "median", "maximum"] for row in rows)
    assert {row["run"] for row in rows} == {"cold_start"}
    assert all(row["minimum"] <= row["median"] <= row["maximum"] for row in rows)
    assert "8.86" in done.stdout, "the real instant of master_special_on"
    assert "0 outside" in done.stdout


def test_a_run_that_does_not_exist_is_refused(tmp_path):
    app = typer.Typer()
    app.command()(timelines)
    done = CliRunner().invoke(app, ["--only", "p9_kill", "--out", str(tmp_path / "t.json")])

    assert done.exit_code == 2
    assert "no run is called p9_kill" in done.stderr
