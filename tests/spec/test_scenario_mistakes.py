"""Every mistake in a scenario file is reported in one line: file, key with its path, what was expected."""

import pickle

import pytest

from emulator.spec import SpecError, load, loads
from emulator.spec.tables.bounds import SCENARIO_NAME
from support.mistakes import only_mistake

HEAD = """
[scenario]
name = "wrong"
run_for_s = 60
[nameserver]
count = 1
"""
BROKERS = """
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
"""
TOPIC = BROKERS + '[[topic]]\nname = "orders"\n'
CONSUMER = TOPIC + '[[consumer]]\ngroup = "g"\ntopics = ["orders"]\n'
CUT = CONSUMER + '[[fault]]\nkind = "cut"\nat_s = 1\n'
LOSS = BROKERS + '[[fault]]\nkind = "loss"\nat_s = 1\n'
SUSPEND = '[[fault]]\nkind = "suspend"\nnode = "broker-a"\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(
            BROKERS + "options = { brokerHeartbeetInterval = 1 }",
            'broker[1].options.brokerHeartbeetInterval: unknown option; did you mean "brokerHeartbeatInterval"?',
            id="an option that does not exist",
        ),
        pytest.param(
            BROKERS + "options = { brokerHeartbeatInterval = -1 }",
            "broker[1].options.brokerHeartbeatInterval: expected a whole number of milliseconds >= 1, not -1",
            id="a negative period",
        ),
        pytest.param(
            BROKERS + "options = { registerBrokerTimeoutMills = -1 }",
            "broker[1].options.registerBrokerTimeoutMills: expected a whole number of milliseconds >= 0, not -1",
            id="a negative time-out",
        ),
        pytest.param(
            BROKERS + 'options = { forceRegister = "yes" }',
            "broker[1].options.forceRegister: expected true or false, not 'yes'",
            id="an option of the wrong type",
        ),
        pytest.param(
            BROKERS + "options = { forceRegister = true, force_register = false }",
            "broker[1].options.force_register: expected once, but forceRegister is there, too",
            id="an option under both its names",
        ),
        pytest.param(
            BROKERS + "options = 3", "broker[1].options: expected a table, not 3", id="options that are no table"
        ),
        pytest.param(BROKERS + "[brokr]", 'brokr: unknown key; did you mean "broker"?', id="an unknown table"),
        pytest.param(
            BROKERS + "clutser = 'c'", 'broker[1].clutser: unknown key; did you mean "cluster"?', id="an unknown key"
        ),
        pytest.param(
            BROKERS + "id = true", "broker[1].id: expected a whole number >= 0, not True", id="a number that is none"
        ),
        pytest.param("", "broker: expected at least one", id="no broker"),
        pytest.param("[broker]\nname = 'a'", "broker: expected tables written [[broker]]", id="a table for an array"),
        pytest.param(
            "[[broker]]",
            "broker[0].name: missing; expected a name of up to 127 characters without spaces, commas and slashes",
            id="a broker without a name",
        ),
        pytest.param(
            "[[broker]]\nname = ''",
            "broker[0].name: expected a name of up to 127 characters without spaces, commas and slashes, not ''",
            id="an empty name",
        ),
        pytest.param(
            "[[broker]]\nname = '*'", 'broker[0].name: expected the name of one node, not "*"', id="a pattern as a name"
        ),
        pytest.param(
            "[[broker]]\nname = 'ns-1'",
            'broker[0].name: expected a name of its own, "ns-1" is already at nameserver[0].name',
            id="two nodes of one name",
        ),
        pytest.param(
            TOPIC + "[[topic]]\nname = 'orders'",
            'topic[1].name: expected a name of its own, "orders" is already at topic[0].name',
            id="two topics of one name",
        ),
        pytest.param(
            TOPIC + "brokers = ['broker-a', 'broker-d']",
            'topic[0].brokers[1]: unknown broker "broker-d"; did you mean "broker-b"?',
            id="a topic on an unknown broker",
        ),
        pytest.param(
            TOPIC + "brokers = []",
            "topic[0].brokers: expected a list of one text or more, not []",
            id="a topic on no broker",
        ),
        pytest.param(
            TOPIC + "queues = 0", "topic[0].queues: expected a whole number >= 1, not 0", id="a topic without queues"
        ),
        pytest.param(
            TOPIC + "[[consumer]]\ngroup = 'g'\ntopics = ['odrers']",
            'consumer[0].topics[0]: unknown topic "odrers"; did you mean "orders"?',
            id="a consumer of an unknown topic",
        ),
        pytest.param(
            TOPIC + "[[consumer]]\ngroup = 'g'\ntopics = []",
            "consumer[0].topics: expected a list of one text or more, not []",
            id="a consumer of nothing",
        ),
        pytest.param(
            TOPIC + "[[consumer]]\ngroup = 'g'\ntopics = 'orders'",
            "consumer[0].topics: expected a list of one text or more, not 'orders'",
            id="a text for a list",
        ),
        pytest.param(
            CONSUMER + "count = 2\nnames = ['c']",
            "consumer[0].count: expected only one of count and names",
            id="consumers counted and named",
        ),
        pytest.param(
            BROKERS + "[[producer]]\ngroup = 'p'\ntopic = 'orders'",
            'producer[0].topic: unknown topic "orders"; none is known',
            id="a producer for an unknown topic",
        ),
        pytest.param(
            CUT + "from = 'consumer-9'\nto = 'broker-b'",
            'fault[0].from: unknown node "consumer-9"; did you mean "consumer-1"?',
            id="a fault on a link that does not exist",
        ),
        pytest.param(
            CUT + "from = 'broker-b'\nto = 'broker-b'",
            "fault[0].to: expected another node than broker-b: a node has no link to itself",
            id="a fault on the link of a node to itself",
        ),
        pytest.param(
            BROKERS + "[[fault]]\nkind = 'kill'\nnode = 'broker-x'\nat_s = 1",
            'fault[0].node: unknown node "broker-x"; did you mean "broker-b"?',
            id="a fault on a node that does not exist",
        ),
        pytest.param(
            BROKERS + "[[fault]]\nkind = 'kil'\nat_s = 1",
            'fault[0].kind: unknown kind of fault "kil"; did you mean "kill"?',
            id="an unknown kind of fault",
        ),
        pytest.param(
            CUT + "percent = 3",
            "fault[0].percent: unknown key; known are kind, id, at_s, at_ms, for_s, for_ms, from, to, one_way",
            id="a parameter of another kind",
        ),
        pytest.param(
            LOSS + "percent = 101",
            "fault[0].percent: expected a number of percent from 0 to 100, not 101",
            id="more than all",
        ),
        pytest.param(
            LOSS, "fault[0].percent: missing; expected a number of percent from 0 to 100", id="loss of nothing"
        ),
        pytest.param(
            LOSS + "percent = 1\nfor_s = 0",
            "fault[0].for_s: expected a whole number of milliseconds >= 1, not 0",
            id="a fault that ends as it begins",
        ),
        pytest.param(
            LOSS + "percent = 1\nfor_s = -1", "fault[0].for_s: expected seconds >= 0, not -1", id="a negative time"
        ),
        pytest.param(
            LOSS + "percent = 1\nfor_s = 0.0001",
            "fault[0].for_s: expected whole milliseconds, not 0.0001 s",
            id="less than a millisecond",
        ),
        pytest.param(
            LOSS + "percent = 1\nat_ms = 1",
            "fault[0].at_ms: expected only one of at_s and at_ms",
            id="a time in both units",
        ),
        pytest.param(BROKERS + SUSPEND, "fault[0].at_s: missing; expected seconds", id="a fault that never begins"),
        pytest.param(
            BROKERS + SUSPEND + "at_s = 60",
            "fault[0].at_s: expected an instant before the end at 60000 ms",
            id="a fault after the end",
        ),
        pytest.param(
            BROKERS + SUSPEND + "at_s = 1\nfor_s = 1\nid = 'x'\n" + SUSPEND + "at_s = 3\nid = 'x'",
            "fault[1].id: expected an id of its own, x is taken",
            id="two faults of one id",
        ),
    ],
)
def test_a_mistake_is_one_line_with_file_key_and_what_was_expected(text, line):
    with pytest.raises(SpecError) as caught:
        loads(HEAD + text, "wrong.toml")

    assert only_mistake(caught.value) == f"wrong.toml: {line}"
    assert "\n" not in only_mistake(caught.value)


def test_a_file_that_is_no_toml_says_where_it_stops_being_one():
    with pytest.raises(SpecError, match=r"^wrong\.toml: file: not TOML: .*line 2"):
        loads("[scenario]\nname = \n", "wrong.toml")


def test_a_file_that_is_not_there_is_named(tmp_path):
    missing = tmp_path / "missing.toml"

    with pytest.raises(SpecError) as caught:
        load(missing)

    assert only_mistake(caught.value).startswith(f"{missing}: file: cannot be read: ")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[scenario]\nrun_for_s = 1" + BROKERS,
            f"scenario.name: missing; expected {SCENARIO_NAME.expected}",
        ),
        ("[scenario]\nname = 'x'" + BROKERS, "scenario.run_for_s: missing; expected seconds"),
        (
            "[scenario]\nname = 'x'\nrun_for_s = 0" + BROKERS,
            "scenario.run_for_s: expected a whole number of milliseconds >= 1, not 0",
        ),
    ],
)
def test_a_scenario_needs_a_name_and_a_length(text, line):
    with pytest.raises(SpecError) as caught:
        loads(text, "wrong.toml")

    assert only_mistake(caught.value) == f"wrong.toml: {line}"


def test_a_mistake_is_reported_in_another_process_as_well():
    reported = SpecError("broker[1].name", "missing; expected a name", "cluster.toml")

    again = pickle.loads(pickle.dumps(reported))

    assert (str(again), again.key, again.problem, again.source) == (
        str(reported),
        reported.key,
        reported.problem,
        reported.source,
    )
