"""Acts of administrators in scenario files: as keys or in words, there and back for every act, and one line each."""

import json

import attrs
import pytest

from emulator.acts.catalogue import ACT_VERBS, ACTS, act_of
from emulator.spec import SpecError, from_dict, loads, to_dict
from faults.catalogue import WORDINGS
from faults.words import WordsError
from support.act_lines import ACT_LINES
from support.every_case import each_case
from support.mistakes import only_mistake

CLUSTER = """
[scenario]
name = "acts"
run_for_s = 60
{more}
[nameserver]
count = 2
[address_server]
[[domain]]
name = "nameservers.example"
nodes = ["ns-1", "ns-2"]
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[broker]]
name = "inner"
container = "box"
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1", "c2"]
topics = ["orders"]
[[consumer]]
group = "billing"
topics = ["orders"]
[[statefulset]]
name = "consumer"
group = "billing"
[[account]]
access_key = "rocketmq-shop"
[account.secret_key]
env = "SHOP_KEY"
"""
AT = "\nat_s = 30\n"


def scenario(*tables, more=""):
    return loads(CLUSTER.format(more=more) + "".join(f"[[admin]]\n{table}\n" for table in tables), "acts.toml")


def mistake(table):
    with pytest.raises(SpecError) as caught:
        scenario(table)
    (line,) = caught.value.lines
    return line


def test_each_act_has_a_line_and_no_verb_is_that_of_a_fault():
    assert list(ACT_LINES) == list(ACTS)
    assert not [verb for verb in ACT_VERBS if verb in WORDINGS]


@each_case("kind", ACTS)
def test_an_act_in_words_is_an_act_and_its_line_is_the_same_act_again(kind):
    act = act_of(ACT_LINES[kind])
    assert type(act) is ACTS[kind]
    assert act_of(act.line()) == act


@each_case("kind", [kind for kind in ACTS if kind != "update_controller_config"])
def test_a_scenario_with_an_act_is_the_same_after_it_was_written(kind):
    made = scenario(f"do = {ACT_LINES[kind]!r}{AT}" if "'" not in ACT_LINES[kind] else f'do = "{ACT_LINES[kind]}"{AT}')
    (timed,) = made.acts
    assert (timed.id, timed.at_ms) == (f"{timed.act.wording.verb}-1", 30_000)
    # A manifest is JSON, which has texts where the act has an enum.
    assert from_dict(json.loads(json.dumps(to_dict(made)))) == made
    assert to_dict(made)["admin"][0]["kind"] == kind


def test_keys_and_words_are_the_same_act():
    keys = scenario('kind = "update_topic"\ntopic = "orders"\nqueues = 4\non = "broker-a"' + AT)
    words = scenario('do = "update-topic orders queues 4 on broker-a"' + AT)
    assert keys == words
    options = scenario('kind = "update_sub_group"\ngroup = "g"\noptions = { consumeEnable = false }' + AT)
    assert options == scenario('do = "update-sub-group g consumeEnable=false"' + AT)


def test_a_scenario_without_acts_is_written_as_before():
    made = scenario()
    assert "admin" not in to_dict(made)
    assert "administrator" not in made.node_names()


@each_case(
    ("table", "reported"),
    [
        (
            'do = "update-topik orders"' + AT,
            'admin[0].do: "update-topik" is not an act of administrators; did you mean',
        ),
        ('do = "update-topic orders queues many"' + AT, "admin[0].do: queues: expected a whole number >= 1, not"),
        (
            'do = "clone-group-offset g h orders on broker-a"' + AT,
            "admin[0].do: expected: clone-group-offset SOURCE DESTINATION TOPIC",
        ),
        ('do = "update-topic orders queues 0"' + AT, "admin[0].do: queues: expected a whole number >= 1, not 0"),
        ('do = "update-topic queues 8"' + AT, "admin[0].do: expected: update-topic TOPIC"),
        ('do = "update-topic orders on"' + AT, "admin[0].do: expected something after on"),
        ('do = "update-topic a/b"' + AT, "admin[0].do: expected a topic of up to"),
        ('do = "update-topic orders perm 3"' + AT, "admin[0].do: perm: expected a permission of 2 (write only), 4"),
        ('do = "update-topic orders on broker-c"' + AT, 'admin[0].do: unknown broker or cluster "broker-c"; did you'),
        ('do = "delete-topic order"' + AT, 'admin[0].do: unknown topic "order"; did you mean "orders"?'),
        ('do = "delete-sub-group h"' + AT, 'admin[0].do: unknown group "h"'),
        ('do = "update-sub-group g consumeEnabled=false"' + AT, "admin[0].do: options: expected options of a group"),
        ('do = "update-sub-group g consumeEnable"' + AT, "admin[0].do: expected: update-sub-group GROUP"),
        ('do = "update-sub-group g consumeEnable=no"' + AT, "admin[0].do: options: expected consumeEnable of true or"),
        (
            'do = "reset-offset-by-time g orders noon"' + AT,
            "admin[0].do: to: expected an instant of the run such as 30s",
        ),
        ('do = "reset-offset g orders 0 7"' + AT, "admin[0].do: expected: reset-offset GROUP TOPIC QUEUE OFFSET on"),
        ('do = "reset-offset g orders 0 -7 on broker-a"' + AT, "admin[0].do: offset: expected a whole number >= 0"),
        ('do = "reset-offset g orders 0 7 on ns-1"' + AT, 'admin[0].do: unknown broker "ns-1"'),
        ('do = "wipe-write-perm broker-c"' + AT, 'admin[0].do: unknown broker "broker-c"'),
        ('do = "wipe-write-perm broker-a on broker-a"' + AT, 'admin[0].do: unknown nameserver "broker-a"'),
        ('do = "update-broker-config brokerPermission 4"' + AT, "admin[0].do: expected: update-broker-config OPTION="),
        ('do = "update-broker-config secretKey=abc"' + AT, "admin[0].do: update-broker-config: an act sets no secret"),
        ('do = "update-controller-config a=1"' + AT, "admin[0].do: expected a scenario with controllers: there are"),
        ('do = "send-message orders hello queue 1"' + AT, "admin[0].do: on: expected on with queue"),
        ('do = "kill broker-a"' + AT, 'admin[0].do: "kill" is not an act of administrators; there are update-topic'),
        ('do = "delete-topic orders"', "admin[0].at_s: missing; expected seconds"),
        ('do = "delete-topic orders"\nat_s = 60', "admin[0].at_s: expected an instant before the end at 60000 ms"),
        ('kind = "grow"' + AT, 'admin[0].kind: unknown act of administrators "grow"'),
        ('kind = "delete_topic"\ntopic = "orders"\nperm = 4' + AT, "admin[0].perm: unknown key"),
        ('kind = "delete_topic"' + AT, "admin[0].topic: missing; expected a text"),
        ('kind = "update_broker_config"\noptions = {}' + AT, "admin[0].options: expected a table of options"),
        (
            'kind = "update_broker_config"\noptions = {secretKey = "x"}' + AT,
            "admin[0].options: expected a table of",
        ),
    ],
)
def test_what_an_act_cannot_be_is_one_line(table, reported):
    assert reported in mistake(table)


def test_an_act_before_the_brokers_start_is_refused():
    text = CLUSTER.format(more="nameserver_start_spread_s = 5")
    with pytest.raises(SpecError) as caught:
        loads(text + '[[admin]]\ndo = "update-topic orders"\nat_s = 2\n', "acts.toml")
    assert "expected an instant not before 5000 ms, the earliest start of broker-a" in only_mistake(caught.value)


def test_two_acts_have_two_ids():
    with pytest.raises(SpecError) as caught:
        scenario('id = "x"\ndo = "delete-topic orders"' + AT, 'id = "x"\ndo = "add-write-perm broker-a"' + AT)
    assert "admin[1].id: expected an id of its own, x is taken" in only_mistake(caught.value)


def test_a_topic_that_an_act_creates_may_be_named_by_another_act():
    made = scenario('do = "update-topic news"' + AT, 'do = "delete-topic news"\nat_s = 40')
    assert [timed.act.kind for timed in made.acts] == ["update_topic", "delete_topic"]


def test_no_node_has_the_name_of_the_administrator():
    with pytest.raises(SpecError) as caught:
        loads(CLUSTER.format(more="").replace("broker-b", "administrator"), "acts.toml")
    assert 'expected another name than "administrator"' in only_mistake(caught.value)


def test_a_fault_may_hit_the_links_of_the_administrator_and_nothing_else_of_it():
    text = CLUSTER.format(more="") + "[[fault]]\ndo = '{}'\nat_s = 1\n"
    assert loads(text.format("cut administrator broker-a"), "acts.toml").faults.faults
    with pytest.raises(SpecError) as caught:
        loads(text.format("kill administrator"), "acts.toml")
    assert "administrator is a machine that only faults of links can hit" in only_mistake(caught.value)


@pytest.mark.parametrize("line", ["", "update-topic 'orders", "update-topic"])
def test_a_line_that_is_no_act_is_refused_in_one_line(line):
    with pytest.raises(WordsError) as caught:
        act_of(line)
    assert "\n" not in str(caught.value)


def test_acts_are_values():
    act = act_of("update-topic orders")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        act.queues = 3
