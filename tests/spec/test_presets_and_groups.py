"""Groups of brokers in scenario files, and the options that a preset gives them."""

import pytest

from emulator.spec import BrokerSpec, Preset, SpecError, from_dict, loads, to_dict
from emulator.spec.model.addresses import addresses, owners
from nodes.config import BrokerConfig, NameserverConfig
from support.every_case import each_case
from support.mistakes import only_mistake

HEAD = """
[scenario]
name = "groups"
run_for_s = 60
"""
GROUP = """
[[broker]]
name = "ba"
replicas = 3
"""
RIP32 = HEAD + 'preset = "rip32"\n'


def test_replicas_are_a_master_and_its_slaves():
    scenario = loads(HEAD + GROUP, "x")

    assert scenario.brokers == (BrokerSpec("ba", 0), BrokerSpec("ba", 1), BrokerSpec("ba", 2))
    assert scenario.node_names()[2:] == ("ba", "ba-s1", "ba-s2")


def test_replicas_on_one_address_have_ports_of_their_own():
    scenario = loads(HEAD + GROUP + "one_address = true", "x")

    assert len({addresses(scenario)[name] for name in ("ba", "ba-s1", "ba-s2")}) == 1
    assert [broker.config.listen_port for broker in scenario.brokers] == [10_911, 10_921, 10_931]
    assert owners(scenario)[addresses(scenario)["ba-s2"]] == "ba"


def test_without_a_preset_options_are_as_shipped():
    scenario = loads(HEAD + GROUP, "x")

    assert scenario == loads(HEAD + 'preset = "classic"\n' + GROUP, "x")
    assert {broker.config for broker in scenario.brokers} == {BrokerConfig()}
    assert {nameserver.config for nameserver in scenario.nameservers} == {NameserverConfig()}


def test_rip32_sets_what_taking_over_and_handing_back_need():
    scenario = loads(RIP32 + GROUP + '[[broker]]\nname = "bb"\n', "x")
    config = scenario.brokers[0].config

    assert all(spec.config.support_acting_master for spec in scenario.nameservers)
    assert all(spec.config.notify_min_broker_id_changed for spec in scenario.nameservers)
    assert config.enable_slave_acting_master
    assert config.slave_read_enable
    assert config.enable_remote_escape
    assert (config.consumer_offset_update_version_step, config.delay_offset_update_version_step) == (1, 1)
    assert [broker.config.total_replicas for broker in scenario.brokers] == [3, 3, 3, 1]


def test_replicas_written_one_by_one_are_counted_like_those_of_one_table():
    one_by_one = '[[broker]]\nname = "ba"\n[[broker]]\nname = "ba"\nid = 1\n'

    assert [broker.config.total_replicas for broker in loads(RIP32 + one_by_one, "x").brokers] == [2, 2]


@pytest.mark.parametrize("key", ["totalReplicas", "total_replicas"])
def test_an_option_of_the_user_wins_over_the_preset_even_where_it_is_the_default(key):
    text = RIP32 + "[nameserver]\ncount = 1\noptions = { supportActingMaster = false }\n" + GROUP
    scenario = loads(text + f"options = {{ {key} = 1, consumerOffsetUpdateVersionStep = 500 }}", "x")

    assert not scenario.nameservers[0].config.support_acting_master
    assert scenario.nameservers[0].config.notify_min_broker_id_changed
    assert {broker.config.total_replicas for broker in scenario.brokers} == {1}
    assert {broker.config.consumer_offset_update_version_step for broker in scenario.brokers} == {500}
    assert from_dict(to_dict(scenario)) == scenario, "the manifest sends it without the preset"


def test_a_preset_is_there_for_scenarios_built_in_python():
    config = BrokerConfig(**Preset.RIP32.broker_options(replicas=2))

    assert (config.total_replicas, config.enable_slave_acting_master) == (2, True)
    assert NameserverConfig(**Preset.CLASSIC.nameserver_options()) == NameserverConfig()


def test_two_brokers_of_one_name_and_id_are_reported_apart_by_the_name_of_their_node():
    twins = '[[broker]]\nname = "ba"\n[[broker]]\nname = "ba"\nnode = "twin"\naddress_of = "ba"\n'
    scenario = loads(HEAD + twins + "options = { listenPort = 10921 }", "x")

    assert [(b.name, b.broker_name, b.broker_id) for b in scenario.brokers] == [("ba", "ba", 0), ("twin", "ba", 0)]
    assert from_dict(to_dict(scenario)) == scenario


def test_starts_and_boots_of_servers_are_spread_as_the_file_says():
    spreads = "nameserver_start_spread_s = 10\nbroker_start_spread_ms = 250\nbroker_boot_spread_s = 8\n"
    scenario = loads(HEAD + spreads + GROUP + "start_after_s = 2.5", "x")

    assert scenario.nameserver_start_spread_ms == 10_000
    assert scenario.broker_start_spread_ms == 250
    assert scenario.broker_boot_spread_ms == 8_000
    assert [broker.start_after_ms for broker in scenario.brokers] == [2_500] * 3
    assert from_dict(to_dict(scenario)) == scenario


@each_case(
    ("text", "line"),
    [
        (
            HEAD + 'preset = "rip23"\n' + GROUP,
            'scenario.preset: unknown preset "rip23"; did you mean "rip32"?',
        ),
        (HEAD + GROUP + "id = 1", "broker[0].id: expected only one of id and replicas"),
        (HEAD + GROUP + "replicas_ = 0", 'broker[0].replicas_: unknown key; did you mean "replicas"?'),
        (HEAD + '[[broker]]\nname = "ba"\none_address = true', "broker[0].one_address: expected only with replicas"),
        (
            HEAD + GROUP + "one_address = true\noptions = { listenPort = 65530 }",
            "broker[0].replicas: a port of a replica: expected a whole number from 1 to 65535, not 65540",
        ),
        (
            HEAD + GROUP + '[[broker]]\nname = "bb"\nnode = "ba-s1"',
            'broker[1].node: expected a name of its own, "ba-s1" is already at broker[0].name',
        ),
        (
            HEAD + GROUP + '[[broker]]\nname = "bb"\naddress_of = "bx"',
            'broker[1].address_of: unknown earlier broker "bx"; known are ba, ba-s1, ba-s2',
        ),
        (
            HEAD + GROUP + '[[broker]]\nname = "bb"\naddress_of = "ba"\noptions = { listenPort = 10912 }',
            "broker[1].options.listenPort: expected ports of its own on a shared address, 10912 belongs to ba",
        ),
        (
            HEAD + GROUP + 'one_address = true\n[[fault]]\nkind = "power_off"\nnode = "ba-s1"\nat_s = 1',
            "fault[0].kind: expected no loss of power where nodes share an address: use kill",
        ),
    ],
)
def test_a_mistake_in_a_group_is_notified_in_one_line(text, line):
    with pytest.raises(SpecError) as raised:
        loads(text, "x")

    assert only_mistake(raised.value) == f"x: {line}"
