"""What guests call their things reaches the terminal of an operator as text: it commands nothing and forges no line."""

import json
import re
import signal

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from analysis.trace_rows import HandMadeTrace, write_run
from emulator.acts.catalogue import ACT_VERBS
from emulator.cli.main import app
from emulator.console.verbs import VERBS
from nodes.protocol.bodies import LockBatchRequestBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers import RegisterBrokerRequestHeader
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    MessageQueue,
    ProducerData,
    SubscriptionData,
)
from support.live_cluster import BROKER_PORT, NAMESERVER_PORT, LiveCluster
from support.remoting_program import Caller

FORGED = "namesrvAddr=6.6.6.6:9876"
COMMANDS = "\x1b]0;title\x07\x1b[31m\x9b2J\x08\x7f\x00\u202e\u2066\u200f\u061c\u2028\u2029\x85\ufeff\t"
EVIL = f"evil\n{FORGED}\r{FORGED}\r\n{FORGED}{COMMANDS}[bold red][link=http://6.6.6.6]:bomb:[/]"
_OWN_STYLE = re.compile(r"\x1b\[[0-9;]*m|\r?\x1b\[2K|\x1b\[1A|\x1b\[\?25[hl]")
"""Colours, and how a progress bar is drawn again."""
_COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")

SCENARIO = """
[scenario]
name = "evil"
run_for_s = 600
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[topic]]
name = "t"
queues = 2
[[consumer]]
group = "g"
count = 1
topics = ["t"]
"""


def assert_harmless(text, subject):
    """It has no character that commands a terminal, and no line that begins with what a guest wrote."""
    plain = _OWN_STYLE.sub("", text)
    assert not (found := _COMMANDS.search(plain)), (
        f"{subject}: {plain[max(0, found.start() - 60) : found.end() + 20]!r}"
    )
    forged = [line for line in plain.splitlines() if line.startswith(FORGED)]
    assert not forged, f"{subject}: {forged}"


def recorded_by(*words, **environment):
    done = CliRunner(env=environment).invoke(app, [str(word) for word in words])
    assert not (done.exception and not isinstance(done.exception, SystemExit)), done.exception
    assert "this is a bug" not in done.output, done.output
    return done


def heartbeat(name, group, topic):
    consumer = ConsumerData(
        group,
        ConsumeType.CONSUME_PASSIVELY,
        MessageModel.CLUSTERING,
        ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        (SubscriptionData(topic, sub_string=f"tag{EVIL}"),),
    )
    return HeartbeatData(name, (ProducerData(f"p{EVIL}"),), (consumer,))


def attack(cluster):
    """All texts that a guest can have recorded."""
    broker = Caller(cluster.broker, BROKER_PORT)
    nameserver = Caller(cluster.nameserver, NAMESERVER_PORT)
    header = RegisterBrokerRequestHeader(f"b{EVIL}", f"1.2.3.4:5{EVIL}", f"c{EVIL}", EVIL, 0)
    nameserver.ask(RequestCode.REGISTER_BROKER, header)
    for name in (f"one{EVIL}", f"two{EVIL}"):
        client = Caller(cluster.broker, BROKER_PORT)
        client.ask(RequestCode.HEART_BEAT, None, heartbeat(name, f"group{EVIL}", f"topic{EVIL}"))
        client.ask(RequestCode.HEART_BEAT, None, heartbeat(name, "g", "t"))
        queue = MessageQueue("t", "broker-a", 0)
        client.ask(RequestCode.LOCK_BATCH_MQ, None, LockBatchRequestBody("g", name, (queue,)))
    send = dict(zip("abcdefghi", [f"p{EVIL}", "t", "TBW102", "4", "0", "0", "1", "0", ""], strict=True))
    send["i"] = f"KEYS\x01k{EVIL}\x02TAGS\x01t{EVIL}\x02UNIQ_KEY\x01u{EVIL}\x02{EVIL}\x01{EVIL}\x02"
    broker.ask_raw(RequestCode.SEND_MESSAGE_V2, send, EVIL.encode())
    broker.ask_raw(RequestCode.SEND_MESSAGE_V2, {**send, "b": f"t{EVIL}"}, b"x")
    for code, fields in (
        (
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            {"topic": f"t{EVIL}", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6"},
        ),
        (
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            {"topic": "u", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6", "attributes": EVIL},
        ),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": f"g{EVIL}"}),
        (
            RequestCode.UPDATE_CONSUMER_OFFSET,
            {"consumerGroup": f"g{EVIL}", "topic": "t", "queueId": "0", "commitOffset": "1"},
        ),
        (
            RequestCode.PULL_MESSAGE,
            {
                "consumerGroup": f"g{EVIL}",
                "topic": "t",
                "queueId": "0",
                "queueOffset": "0",
                "maxMsgNums": "1",
                "sysFlag": "0",
                "commitOffset": "0",
                "suspendTimeoutMillis": "0",
                "subscription": EVIL,
                "subVersion": "0",
            },
        ),
        (RequestCode.UPDATE_BROKER_CONFIG, {}),
        (RequestCode.UNREGISTER_CLIENT, {"clientID": f"one{EVIL}", "consumerGroup": "g"}),
        (4_711, {EVIL: EVIL}),
    ):
        broker.ask_raw(code, fields, f"{EVIL}={EVIL}".encode() if code == RequestCode.UPDATE_BROKER_CONFIG else b"")
    nameserver.ask_raw(RequestCode.PUT_KV_CONFIG, {"namespace": EVIL, "key": EVIL, "value": EVIL}, b"")


BREAKING_VERBS = (
    "cut", "partition", "loss", "tcp-loss", "delay", "drop", "refuse", "kill", "stop", "power-off",
    "suspend", "slow-cpu", "skew", "drift", "jump", "slow-disk", "lost-writes", "permission", "scale",
    "rebalance", "consume-mode", "restart", "upgrade", "chaos", "resume", "start", "heal",
)  # fmt: skip
TIMING_VERBS = ("at", "run-for", "step", "until")
VERB_WORDS = {
    "status": ((),),
    "nodes": ((),),
    "views": ((), ("all",), (f"group{EVIL}/topic{EVIL}",), (f"group{EVIL}",), (EVIL,)),
    "owners": ((), ("t",), (EVIL,)),
    "diff": (("guest", "guest/2"), ("broker-a", "guest"), (EVIL, EVIL)),
    "links": ((),),
    "faults": ((),),
    "rates": ((), ("60s",), (EVIL,)),
    "lag": ((), ("g",), (EVIL,)),
    "why": (
        ("node", "guest"),
        ("group", f"group{EVIL}"),
        ("group", "g"),
        ("topic", f"topic{EVIL}"),
        ("lag", f"group{EVIL}"),
        ("queue", "t/broker-a/0"),
        ("message", f"k{EVIL}"),
        ("storm",),
        (EVIL,),
    ),
    "help": ((), (EVIL,)),
    "script": ((EVIL,),),
    "save": ((EVIL,), ("SAVED",)),
    **dict.fromkeys((*BREAKING_VERBS, *TIMING_VERBS, *ACT_VERBS), ((EVIL,), (EVIL, EVIL))),
    "quit": ((EVIL,),),
}
"""Mapping verb -> words with which it is said."""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """What each verb answered a guest's operator, what `up` printed, and the run."""
    folder = tmp_path_factory.mktemp("evil")
    cluster = LiveCluster(folder, SCENARIO)
    attack(cluster)
    answers = {}
    for verb, sayings in VERB_WORDS.items():
        for words in sayings:
            places = (folder / word if word == "SAVED" else word for word in words)
            answers[verb, words] = recorded_by("ctl", "--run", cluster.run, verb, *places).output
    recorded_by("ctl", "--run", cluster.run, "refuse", "SEND_MESSAGE_V2", "with", "SYSTEM_BUSY", "group", f"g{EVIL}")
    for verb in ("faults", "links"):
        answers[verb, "later"] = recorded_by("ctl", "--run", cluster.run, verb).output
    cluster.process.send_signal(signal.SIGINT)
    out, err = cluster.process.communicate(timeout=60)
    return {"answers": answers, "up": out + err, "run": cluster.run}


def test_every_verb_is_in_the_table():
    assert sorted(VERB_WORDS) == sorted(VERBS)


def test_events_of_a_live_cluster_are_harmless(live):
    assert live["up"].count("\\x1b]0;title\\x07") > 4, "guests are in the events"
    assert_harmless(live["up"], "up")


@pytest.mark.parametrize("verb", sorted(VERB_WORDS))
def test_what_a_verb_answers_is_harmless(live, verb):
    answers = {words: text for (answer, words), text in live["answers"].items() if answer == verb}
    for words, text in answers.items():
        assert_harmless(text, f"ctl {verb} {words}")


@pytest.mark.parametrize("verb", ["nodes", "views", "diff", "why"])
def test_the_verbs_show_what_guests_are_called(live, verb):
    assert any("evil\\n" in text for (answer, words), text in live["answers"].items() if answer == verb)


def evil_run(folder, name, node):
    """A run in which everything has an evil name."""
    trace = HandMadeTrace()
    group, topic, broker, item, two = f"g{EVIL}", f"t{EVIL}", f"broker{EVIL}", f"{node}{EVIL}", f"two{EVIL}"
    subject = f"{group}/{topic}"
    trace.at(0).life(broker, "started", role="broker")
    for client in (item, two):
        trace.at(0).life(client, "started", group, role="consumer").subscribe(client, EVIL, group=group, topic=topic)
    trace.at(1).believe(item, {"cids": [f"1{EVIL}"], "queues": {broker: 1}}, subject, source=EVIL)
    trace.at(2).believe(two, {"cids": [f"2{EVIL}"], "queues": {broker: 1}}, subject, source=EVIL)
    trace.at(2).believe(item, {"cids": [EVIL]}, EVIL, "consumer_ids", EVIL)
    for client in (item, two):
        trace.at(3).own(client, "acquired", 0, topic, broker, group, 0)
    for offset in range(20):
        trace.at(4 + offset / 10).message(broker, "stored", offset, 0, topic, key=EVIL, tags=EVIL, broker_name=broker)
    for client in (item, two):
        trace.at(8).message(client, "consumed", 0, 0, topic, group, broker_name=broker)
    trace.at(9).fault("begin", f"f{EVIL}", "cut", f"{item} → {broker}", hits=0, reason=EVIL)
    trace.at(9).admin(broker, "UPDATE_AND_CREATE_TOPIC", topic, group, broker, EVIL, **{EVIL: EVIL})
    for second in range(20):
        trace.at(10 + second).ask(item, broker, RequestCode.PULL_MESSAGE, 1, 5_000)
    trace.at(50).life(item, "crashed", f"{EVIL}: {EVIL}")
    trace.at(60).fault("end", f"f{EVIL}", "cut", f"{item} → {broker}")
    scenario = {
        "scenario": {"name": "hand-made", "run_for_ms": 600_000},
        "broker": [{"name": "broker-a"}],
        "topic": [{"name": "t"}],
    }
    more = {
        "trace": "full",
        "versions": {},
        "addresses": {EVIL: item},
        "crashes": [f"{EVIL}: {EVIL}"],
        "ended": "failed",
    }
    run = write_run(trace, folder / name, 600, scenario=scenario)
    return _with_manifest(run, more)


def _with_manifest(run, more):
    from emulator.trace.seals import sealed, unsealed

    manifest = run / "manifest.json"
    manifest.write_text(sealed({**unsealed(manifest.read_bytes()), **more}))
    return run


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    name = f"B{COMMANDS}[bold]\n{FORGED}".replace("\0", "")
    return evil_run(folder, "A", "one"), evil_run(folder, name, "other")


def scenario_file(folder, **names):
    """A scenario in which some texts are evil."""
    texts = {"scenario": "s", "topic": "t", "group": "g", "broker": "broker-a", "producer": "p", "tag": "x", **names}
    path = folder / "evil.toml"
    path.write_text(f"""
[scenario]
name = {json.dumps(texts["scenario"])}
run_for_s = 5
[[broker]]
name = {json.dumps(texts["broker"])}
[[topic]]
name = {json.dumps(texts["topic"])}
[[consumer]]
group = {json.dumps(texts["group"])}
topics = [{json.dumps(texts["topic"])}]
expression = {json.dumps(texts["tag"])}
[[producer]]
group = {json.dumps(texts["producer"])}
topic = {json.dumps(texts["topic"])}
rate_per_s = 1
[[fault]]
id = {json.dumps(texts.get("fault", "f"))}
kind = "kill"
node = "{json.dumps(texts["broker"])[1:-1]}"
at_s = 1
""")
    return path


OF_RUNS = {
    "analyze": (
        ("analyze", "--engine", "local", "A"),
        ("analyze", "--engine", "local", "--all", "A"),
        ("analyze", "--engine", "local", "--table", "holds", "--table", "orphans", "A"),
        ("analyze", "--engine", "local", "--table", EVIL, "A"),
        ("analyze", "--engine", "local", "--json", "A"),
        ("analyze", "--engine", "local", "A", "B"),
    ),
    "report": (("report", "--engine", "local", "A"), ("report", "--engine", "local", "B", "--all")),
    "compare": (
        ("compare", "--engine", "local", "A", "B"),
        ("compare", "--engine", "local", "B", "A"),
        ("compare", "A", EVIL),
    ),
    "why": (
        ("why", "A"),
        ("why", "B"),
        ("why", "A", "group", f"g{EVIL}"),
        ("why", "A", "topic", f"t{EVIL}"),
        ("why", "A", "storm"),
        ("why", "A", "lag", f"g{EVIL}"),
        ("why", "A", "queue", f"t{EVIL}/broker{EVIL}/0"),
        ("why", "A", "node", f"one{EVIL}"),
        ("why", "A", EVIL),
    ),
    "verify": (("verify", "A"), ("verify", "B")),
    "watch": (("watch", "A"), ("watch", "B")),
    "land": (("land", "A", "B", "--to", "DATASET"),),
    "ctl": (("ctl", "--run", "B", "status"),),
    "shrink": (("shrink", "A"), ("shrink", "SCENARIO")),
    "campaign": (("campaign", "SCENARIO"),),
    "run": (("run", "SCENARIO"), ("run", "B")),
    "up": (("up", "SCENARIO"),),
    "check": (("check", "SCENARIO"), ("check", "B"), ("check", "--kind", "broker", "SCENARIO")),
    "import": (("import", "--kind", "broker", "SCENARIO"), ("import", EVIL.replace("\0", ""))),
    "options": (("options", EVIL),),
}
"""Mapping command -> arguments with evil runs or an evil scenario."""
NO_TEXTS_OF_OTHERS = ("demo", "examples", "fidelity", "spark", "verbs")


def test_every_command_is_in_the_table():
    assert sorted((*OF_RUNS, *NO_TEXTS_OF_OTHERS)) == sorted(get_command(app).commands)


@pytest.mark.parametrize(
    "arguments", [item for every in OF_RUNS.values() for item in every], ids=lambda a: ascii(" ".join(a))[:60]
)
@pytest.mark.parametrize("coloured", [False, True])
def test_what_a_command_prints_of_others_is_harmless(evil, tmp_path, monkeypatch, arguments, coloured):
    monkeypatch.chdir(tmp_path)
    first, second = evil
    places = {"A": first, "B": second, "DATASET": tmp_path / "dataset"}
    places["SCENARIO"] = scenario_file(tmp_path, topic=EVIL, group=f"g{EVIL}", broker=EVIL, scenario=EVIL)
    environment = {"FORCE_COLOR": "1"} if coloured else {}
    done = recorded_by(*(places.get(word, word) for word in arguments), **environment)
    assert_harmless(done.output, arguments)


@pytest.mark.parametrize("key", ["scenario", "topic", "group", "broker", "producer", "tag", "fault"])
@pytest.mark.parametrize("text", [EVIL, "x[bold]y", "x\u202ey", "订单"])
def test_a_scenario_with_evil_names_is_harmless(tmp_path, monkeypatch, key, text):
    monkeypatch.chdir(tmp_path)
    path = scenario_file(tmp_path, **{key: text})
    for command in ("check", "run"):
        assert_harmless(recorded_by(command, path).output, command)
    for run in (tmp_path / "runs").glob("*"):
        for command in (("analyze", "--engine", "local"), ("why",), ("report", "--engine", "local")):
            assert_harmless(recorded_by(*command, run).output, command)


@pytest.mark.parametrize(
    "arguments", [("analyze", "--engine", "local"), ("why",), ("report", "--engine", "local"), ("verify",), ("watch",)]
)
def test_what_is_printed_of_a_live_run_is_harmless(live, arguments):
    assert_harmless(recorded_by(*arguments, live["run"]).output, arguments)
