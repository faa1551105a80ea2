"""Faults in scenario files: as keys or in words, there and back for every kind, and one line for each mistake."""

import json
import tomllib

import attrs
import pytest
import tomli_w

from emulator.spec import SpecError, from_dict, loads, to_dict
from faults.catalogue import CHAOS_NAMES, FAULTS, WORDINGS, WordsError, fault_of
from faults.link import Drop, ProcessStage
from faults.nemesis import Nemesis
from faults.plan import Plan, TimedFault
from faults.scope import LinkScope
from nodes.protocol.codes import RequestCode
from support.every_case import each_case
from support.mistakes import only_mistake

CLUSTER = """
[scenario]
name = "faults"
run_for_s = 60
[nameserver]
count = 2
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1", "c2"]
topics = ["orders"]
"""
# In words and as keys; several of a kind where it has several forms.
SENT = {
    "cut c1 broker-a one-way": {"kind": "cut", "from": "c1", "to": "broker-a", "one_way": True},
    "cut c1": {"kind": "cut", "from": "c1"},
    "partition bridge": {"kind": "partition", "shape": "bridge"},
    "partition isolate minor brokers among servers": {
        "kind": "partition",
        "shape": "isolate",
        "node": "minor brokers",
        "among": "servers",
    },
    "loss 20": {"kind": "loss", "percent": 20},
    "loss 0.5%": {"kind": "loss", "percent": 0.5},
    "loss 20 c1 code HEART_BEAT during starting": {
        "kind": "loss",
        "percent": 20,
        "from": "c1",
        "code": "HEART_BEAT",
        "during": "starting",
    },
    "tcp-loss 30 c1 'acting master of broker-a'": {
        "kind": "tcp_loss",
        "percent": 30,
        "from": "c1",
        "to": "acting master of broker-a",
    },
    "delay 40 jitter 5 group g": {"kind": "delay", "delay_ms": 40, "jitter_ms": 5, "group": "g"},
    "drop 34 from c1 to brokers next 3 skip 1 topic orders": {
        "kind": "drop",
        "from": "c1",
        "to": "brokers",
        "one_way": True,
        "code": 34,
        "next": 3,
        "skip": 1,
        "topic": "orders",
    },
    "drop during pre-online": {"kind": "drop", "during": "pre-online"},
    "refuse SEND_MESSAGE_V2 with SYSTEM_BUSY from c1 to brokers next 5 skip 1 topic orders": {
        "kind": "refuse",
        "code": "SEND_MESSAGE_V2",
        "response": "SYSTEM_BUSY",
        "from": "c1",
        "to": "brokers",
        "next": 5,
        "skip": 1,
        "topic": "orders",
    },
    "refuse 34 with 16": {"kind": "refuse", "code": 34, "response": 16},
    "kill random brokers": {"kind": "kill", "node": "random brokers"},
    "stop c1, c2": {"kind": "restart", "node": "c1, c2"},
    "power-off acting master of broker-a": {"kind": "power_off", "node": "acting master of broker-a"},
    "suspend owner of orders/broker-a/0": {"kind": "suspend", "node": "owner of orders/broker-a/0"},
    "slow-cpu * 100": {"kind": "slow_cpu", "node": "*", "turn_ms": 100},
    "skew members of g -5": {"kind": "clock_skew", "node": "members of g", "offset_ms": -5},
    "drift broker-a +200": {"kind": "clock_drift", "node": "broker-a", "ppm": 200},
    "jump broker-a 130000": {"kind": "clock_jump", "node": "broker-a", "by_ms": 130_000},
    "slow-disk broker-a 50": {"kind": "slow_disk", "node": "broker-a", "flush_ms": 50},
    "lost-writes broker-a": {"kind": "lost_writes", "node": "broker-a"},
    "permission brokers 4": {"kind": "permission", "node": "brokers", "perm": 4},
    "permission broker-a, broker-b 2 topic orders": {
        "kind": "permission",
        "node": "broker-a, broker-b",
        "perm": 2,
        "topic": "orders",
    },
    "scale g 4": {"kind": "scale", "group": "g", "members": 4},
    "rebalance g assigner AVG": {"kind": "rebalance", "group": "g", "by": "assigner", "strategy": "AVG"},
    "rebalance g broker": {"kind": "rebalance", "group": "g", "by": "broker"},
    "consume-mode g pop share 2 at broker-a": {
        "kind": "consume_mode",
        "group": "g",
        "mode": "pop",
        "share": 2,
        "broker": "broker-a",
    },
    "restart c1, c2 with {pullBatchSize = 16, allocateMessageQueueStrategy = AVG_BY_CIRCLE}": {
        "kind": "reconfigure",
        "node": "c1, c2",
        "options": {"pullBatchSize": 16, "allocateMessageQueueStrategy": "AVG_BY_CIRCLE"},
    },
    "restart random brokers": {"kind": "reconfigure", "node": "random brokers"},
    "upgrade brokers with {release = 5.3.3, slaveReadEnable = true} one every 1.5m, slaves first": {
        "kind": "upgrade",
        "node": "brokers",
        "options": {"release": "5.3.3", "slaveReadEnable": True},
        "apart_ms": 90_000,
        "order": "slaves first",
    },
    "upgrade members of g one every 30s": {"kind": "upgrade", "node": "members of g", "apart_ms": 30_000},
    "chaos minor-kill": {"kind": "minor-kill"},
    "chaos fixed-suspend broker-a": {"kind": "fixed-suspend", "node": "broker-a"},
    "chaos bridge": {"kind": "bridge"},
    "chaos random-loss": {"kind": "random-loss"},
    "chaos random-delay c1": {"kind": "random-delay", "from": "c1"},
}


def read(**table):
    """The only fault of a scenario."""
    answer = tomli_w.dumps({"fault": [{"id": "it", "at_s": 1, "for_s": 5, **table}]})
    (timed,) = loads(answer + CLUSTER, "faults.toml").faults.faults
    return timed


def mistake(text):
    with pytest.raises(SpecError) as error:
        loads(text + CLUSTER, "faults.toml")
    reported = only_mistake(error.value)
    assert "\n" not in reported
    return reported.removeprefix("faults.toml: ")


@each_case("line", SENT)
def test_words_say_the_same_as_keys(line):
    assert read(do=line) == read(**SENT[line]) == TimedFault("it", fault_of(line), 1_000, 5_000)


@each_case("line", SENT)
def test_a_fault_that_is_written_is_read_again_as_it_was(line):
    scenario = loads(CLUSTER, "faults.toml")
    plan = Plan((TimedFault("it", fault_of(line), 1_000, 5_000), TimedFault("on and on", fault_of(line), 0)))
    scenario = attrs.evolve(scenario, faults=plan)

    assert from_dict(to_dict(scenario)) == scenario
    assert from_dict(json.loads(json.dumps(to_dict(scenario)))) == scenario
    assert from_dict(tomllib.loads(tomli_w.dumps(to_dict(scenario)))) == scenario


def test_no_kind_and_no_verb_is_forgotten_above():
    assert list(dict.fromkeys(fault_of(line).kind for line in SENT)) == list(FAULTS)
    assert sorted(dict.fromkeys(line.split()[0] for line in SENT)) == sorted(WORDINGS)


@each_case("kind", list(FAULTS))
def test_a_parameter_that_is_missing_is_named(kind):
    needed = [field.name for field in attrs.fields(FAULTS[kind]) if field.default is attrs.NOTHING and field.init]
    whole = next(keys for keys in SENT.values() if keys["kind"] == kind)
    for name in (name for name in needed if name != "scope"):
        table = {key: value for key, value in whole.items() if key != name}
        reported = mistake(tomli_w.dumps({"fault": [{"at_s": 1, **table}]}))
        assert reported.startswith(f"fault[0].{name}: missing; expected ")
        assert "None" not in reported


@each_case("kind", list(FAULTS))
def test_a_parameter_of_another_kind_is_refused(kind):
    table = next(dict(keys) for keys in SENT.values() if keys["kind"] == kind)
    other = "percent" if "percent" not in table else "turn_ms"
    reported = mistake(tomli_w.dumps({"fault": [{"at_s": 1, **table, other: 5}]}))

    assert reported.startswith(f"fault[0].{other}: unknown key")


@each_case(
    ("table", "reported"),
    [
        ('kind = "cutt"\nat_s = 1', 'fault[0].kind: unknown kind of fault "cutt"; did you mean "cut"?'),
        ("at_s = 1", "fault[0].kind: missing; expected a text"),
        ('kind = "cut"', "fault[0].at_s: missing; expected"),
        ('kind = "kill"\nat_s = 1', "fault[0].node: missing; expected the exact name of a node"),
        ('kind = "fixed-kill"\nat_s = 1', "fault[0].node: missing; expected the exact name of a node"),
        (
            'kind = "loss"\npercent = 120\nat_s = 1',
            "fault[0].percent: expected a number of percent from 0 to 100",
        ),
        ('kind = "loss"\npercent = "20"\nat_s = 1', "fault[0].percent: expected a number of percent from 0 to"),
        ('kind = "drop"\ncode = "HEARTBEAT"\nat_s = 1', 'fault[0].code: unknown request code "HEARTBEAT"'),
        ('kind = "drop"\ncode = -1\nat_s = 1', "fault[0].code: expected a request code, not -1"),
        ('kind = "refuse"\nresponse = 2\nat_s = 1', "fault[0].code: missing; expected a request code"),
        (
            'kind = "refuse"\ncode = 34\nresponse = "BUSY"\nat_s = 1',
            'fault[0].response: unknown response code "BUSY"',
        ),
        (
            'kind = "refuse"\ncode = 34\nresponse = 0\nat_s = 1',
            "fault[0].response: expected a response code other than SUCCESS, not 0",
        ),
        (
            'do = "refuse HEART_BEAT with SYSTEM_BUSI"\nat_s = 1',
            "fault[0].do: expected a response code, not SYSTEM_BUSI",
        ),
        ('do = "refuse HEART_BEAT from c1"\nat_s = 1', "fault[0].do: expected: refuse CODE with RESPONSE"),
        ('kind = "drop"\nnext = 0\nat_s = 1', "fault[0].next: expected a whole number of frames >= 1, not 0"),
        (
            'kind = "drop"\nduring = "lunch"\nat_s = 1',
            "fault[0].during: expected one of starting, pre-online, stopping",
        ),
        ('kind = "drop"\ngroup = ""\nat_s = 1', "fault[0].group: expected a text, not ''"),
        ('kind = "cut"\nfrom = "c1"\nto = "c1"\nat_s = 1', "fault[0].to: expected another node than c1"),
        ('kind = "cut"\nfrom = "c9"\nat_s = 1', 'fault[0].from: unknown node "c9"'),
        ('kind = "kill"\nnode = "members of h"\nat_s = 1', 'fault[0].node: unknown group "h"'),
        ('kind = "kill"\nnode = "master of broker-c"\nat_s = 1', 'fault[0].node: unknown broker "broker-c"'),
        (
            'kind = "kill"\nnode = "leader of controllers"\nat_s = 1',
            "fault[0].node: expected leader of controllers, not leader of controllers; there are no controllers",
        ),
        ('kind = "kill"\nnode = "owner of orders"\nat_s = 1', "fault[0].node: expected owner of TOPIC/BROKER/QUEUE"),
        ('kind = "kill"\nnode = "owner of bills/broker-a/0"\nat_s = 1', 'fault[0].node: unknown topic "bills"'),
        ('kind = "kill"\nnode = "g+2"\nat_s = 1', 'fault[0].node: unknown node "g+2"'),
        ('kind = "partition"\nat_s = 1', "fault[0].shape: missing; expected one of isolate, majorities-ring, bridge"),
        ('kind = "scale"\ngroup = "h"\nmembers = 3\nat_s = 1', 'fault[0].group: unknown group "h"'),
        (
            'kind = "scale"\ngroup = "g"\nmembers = 2000\nat_s = 1',
            "fault[0].members: expected a whole number of members",
        ),
        (
            'kind = "clock_skew"\nnode = "c1"\noffset_ms = 0\nat_s = 1',
            "fault[0].offset_ms: expected a whole number of milliseconds other than 0",
        ),
        ('do = "kil c1"\nat_s = 1', 'fault[0].do: "kil" is not a fault; did you mean kill?'),
        ('do = "loss"\nat_s = 1', "fault[0].do: expected: loss PERCENT"),
        ('do = "kill c9"\nat_s = 1', 'fault[0].do: unknown node "c9"'),
        ('do = "kill c1"\nkind = "kill"\nat_s = 1', "fault[0].kind: unknown key"),
        ('do = "loss 5"\npercent = 5\nat_s = 1', "fault[0].percent: unknown key"),
        ("do = 3\nat_s = 1", "fault[0].do: expected a text, not 3"),
        (
            'do = "restart broker-a with {slaveReedEnable = true}"\nat_s = 1',
            'fault[0].options.slaveReedEnable: unknown option; did you mean "slaveReadEnable"?',
        ),
        (
            'do = "upgrade servers with {slaveReadEnable = true} one every 5s"\nat_s = 1',
            "fault[0].options.slaveReadEnable: unknown option",
        ),
        (
            'do = "restart c1 with {pullBatchSize = many}"\nat_s = 1',
            "fault[0].options.pullBatchSize: expected a whole number from 1 to 1024, not 'many'",
        ),
        (
            'do = "restart c1 with {allocateMessageQueueStrategy = STICKY}"\nat_s = 1',
            "fault[0].options.allocateMessageQueueStrategy: expected clientRebalance = false with it",
        ),
        (
            'do = "restart broker-a with {listenPort = 10912}"\nat_s = 1',
            "fault[0].options.listenPort: expected another option: a node keeps its port",
        ),
        (
            'do = "restart broker-a with {release = 4.4}"\nat_s = 1',
            "fault[0].options.release: expected one of 4.9, 5.3.3, 5.4.0, not '4.4'",
        ),
        (
            'do = "restart c1 with {release = 4.9}"\nat_s = 1',
            "fault[0].options.release: expected none: only nameservers, brokers and proxies",
        ),
        (
            'do = "restart broker-a with {release = 4.9, enableSlaveActingMaster = true}"\nat_s = 1',
            "fault[0].options.enableSlaveActingMaster: expected none: release 4.9 does not have it",
        ),
        (
            'kind = "reconfigure"\nnode = "c1"\noptions = { pullBatchSize = 1.5 }\nat_s = 1',
            "fault[0].options: expected a table of options, not {'pullBatchSize': 1.5}",
        ),
        (
            'kind = "upgrade"\nnode = "brokers"\norder = "at random"\nat_s = 1',
            "fault[0].order: expected one of slaves first, masters first, by name, not 'at random'",
        ),
        ('do = "upgrade brokers one every day"\nat_s = 1', "fault[0].do: expected a time such as 30s"),
        ('do = "restart c1 with {pullBatchSize}"\nat_s = 1', "fault[0].do: expected OPTION = VALUE between the braces"),
    ],
)
def test_a_mistake_is_reported_in_one_line_with_its_key(table, reported):
    assert mistake(f"[[fault]]\n{table}\n").startswith(reported)


@each_case(
    "line",
    [
        *("", " ", "loss", "drop from", "chaos", "chaos fixed-kill", "scale g", "cut 'c1"),
        *(
            "restart",
            "restart c1 with",
            "restart c1 with {",
            "restart c1 with {a = 1, a = 2}",
            "upgrade brokers with {}",
        ),
    ],
)
def test_words_that_say_nothing_are_refused_in_one_line(line):
    with pytest.raises(WordsError) as error:
        fault_of(line)
    assert "\n" not in str(error.value)


def test_a_chaos_name_is_what_it_says():
    assert {kind for kind, _ in CHAOS_NAMES.values()} == {
        *("kill", "suspend", "partition", "loss", "delay"),
    }
    for name in CHAOS_NAMES:
        node = {"node": "broker-a"} if name.startswith("fixed-") else {}
        assert read(kind=name, **node).fault == fault_of(f"chaos {name} {node.get('node', '')}")


def test_a_request_code_may_be_a_number_or_a_name_and_a_stage_is_no_bare_text():
    by_name, by_number = (read(kind="drop", code=code, during="starting") for code in ("HEART_BEAT", 34))

    assert by_name == by_number
    drop = Drop(LinkScope("*", "*"), code=int(RequestCode.HEART_BEAT), during=ProcessStage.STARTING)
    assert by_name.fault == drop
    assert isinstance(by_name.fault.during, ProcessStage)


NEMESIS = {"kind": "kill", "node": "random brokers", "every_s": 20, "min_s": 1, "max_s": 3}


def nemesis(**answer):
    text = tomli_w.dumps({"nemesis": [{**NEMESIS, **answer}]})
    return loads(text + CLUSTER, "faults.toml")


def test_a_nemesis_is_read_with_its_rates():
    (item,) = nemesis(id="n", from_s=5, until_s=50).nemeses

    assert item == Nemesis("n", fault_of("kill random brokers"), 20_000, 1_000, 3_000, 5_000, 50_000)
    assert nemesis().nemeses[0].id == "nemesis-kill-1"
    answer = {name: value for name, value in NEMESIS.items() if name not in ("kind", "node", "max_s")}
    text = tomli_w.dumps({"nemesis": [{"do": "chaos random-kill", **answer}]})
    (words,) = loads(text + CLUSTER, "faults.toml").nemeses
    assert (words.fault, words.min_ms, words.max_ms) == (item.fault, 1_000, 1_000)


def test_a_nemesis_that_is_written_is_read_again_as_it_was():
    for scenario in (nemesis(), nemesis(id="n", from_s=5, until_s=50), nemesis(periodic=True)):
        assert from_dict(tomllib.loads(tomli_w.dumps(to_dict(scenario)))) == scenario


@each_case(
    ("answer", "reported"),
    [
        ({"every_s": 0}, "nemesis[0].every_s: expected a whole number of milliseconds >= 1, not 0"),
        ({"every_s": None}, "nemesis[0].every_s: missing; expected"),
        ({"min_s": None}, "nemesis[0].min_s: missing; expected"),
        ({"min_s": 0}, "nemesis[0].min_s: expected a whole number of milliseconds >= 1, not 0"),
        ({"max_s": 0.5}, "nemesis[0].max_s: expected at least the shortest time, 1000 ms"),
        ({"from_s": 10, "until_s": 10}, "nemesis[0].until_s: expected an instant after the begin, 10000 ms"),
        ({"at_s": 1}, "nemesis[0].at_s: unknown key"),
        ({"node": "broker-c"}, 'nemesis[0].node: unknown node "broker-c"'),
        ({"kind": "kil"}, 'nemesis[0].kind: unknown kind of fault "kil"; did you mean "kill"?'),
        ({"id": ""}, "nemesis[0].id: expected a text, not ''"),
        ({"periodic": 1}, "nemesis[0].periodic: expected true or false, not 1"),
    ],
)
def test_a_mistake_in_a_nemesis_is_reported_in_one_line(answer, reported):
    table = {name: value for name, value in {**NEMESIS, **answer}.items() if value is not None}
    assert mistake(tomli_w.dumps({"nemesis": [table]})).startswith(reported)


def test_no_fault_and_no_other_nemesis_may_have_the_id_of_one():
    item = {**NEMESIS, "id": "n"}
    twice = mistake(tomli_w.dumps({"nemesis": [item, item]}))
    assert twice == "nemesis[1].id: expected an id of its own, n is taken by nemesis[0].id"
    fault = {"kind": "cut", "from": "c1", "at_s": 1, "id": "n-3"}
    taken = mistake(tomli_w.dumps({"fault": [fault], "nemesis": [item]}))
    assert taken == "nemesis[0].id: expected an id of its own, n is taken by fault[0].id"
