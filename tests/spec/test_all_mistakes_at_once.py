"""All mistakes of a scenario file are reported at once, each with its line and the user's own key, none twice."""

import copy
import pickle

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.spec import SpecError, from_dict, loads
from emulator.spec.tables.mistakes import MISTAKES_MAX
from support.every_case import each_case

GOOD = """\
[scenario]
name = "good"
run_for_s = 60

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"
replicas = 2

[[topic]]
name = "orders"

[[consumer]]
group = "g"
topics = ["orders"]
count = 2

[[producer]]
group = "p"
topic = "orders"

[[fault]]
kind = "cut"
from = "consumer-2"
to = "broker-b-s1"
at_s = 10
"""


def mistakes(text):
    """(line, key) of each mistake."""
    with pytest.raises(SpecError) as caught:
        loads(text, "x.toml")
    assert len(caught.value.lines) == len(caught.value.all)
    return [(item.line, item.key) for item in caught.value.all]


def with_lines(text, **changes):
    """The good file with other lines: `l2 = ...` replaces line 2."""
    lines = text.splitlines()
    for name, line in changes.items():
        lines[int(name[1:]) - 1] = line
    return "\n".join(lines)


def test_independent_mistakes_are_reported_together_in_the_order_of_lines():
    text = with_lines(
        GOOD,
        l3="run_for_s = 0",
        l6='name = "broker-a"\noptions = { brokerHeartbeatInterval = -1, forceRegister = 3 }',
        l13='name = "orders"\nquees = 3',
        l17='topics = ["ordres"]',
        l26='from = "consumer-9"',
        l28="at_s = 10\nfor_s = -1",
    )

    assert mistakes(text) == [
        (3, "scenario.run_for_s"),
        (7, "broker[0].options.brokerHeartbeatInterval"),
        (7, "broker[0].options.forceRegister"),
        (15, "topic[0].quees"),
        (19, "consumer[0].topics[0]"),
        (28, "fault[0].from"),
        (31, "fault[0].for_s"),
    ]


FOLLOWED = {
    "a broker without a name, which a topic and a fault name": (
        with_lines(GOOD, l9="nmae = 'broker-b'", l13="name = 'orders'\nbrokers = ['broker-b']"),
        [(9, "broker[1].nmae")],
    ),
    "a mistyped length of the run": (with_lines(GOOD, l3="runs_for_s = 60"), [(3, "scenario.runs_for_s")]),
    "a mistyped table of the scenario": (with_lines(GOOD, l1="[scenaro]"), [(1, "scenaro")]),
    "a mistyped number of replicas, one of which a fault names": (
        with_lines(GOOD, l10="replcas = 2"),
        [(10, "broker[1].replcas")],
    ),
    "a topic without a name": (with_lines(GOOD, l13="queues = 4"), [(12, "topic[0].name")]),
    "a mistyped table of brokers": (
        GOOD.replace("[[broker]]", "[[brokr]]"),
        [(5, "brokr")],
    ),
    "consumers that are counted in words": (with_lines(GOOD, l18='count = "two"'), [(18, "consumer[0].count")]),
    "a group that is not read, which another one shares": (
        GOOD.replace('group = "g"', 'group = "!"')
        + '[[consumer]]\ngroup = "h"\ntopics = ["orders"]\nshare_process_with = "g"\n',
        [(16, "consumer[0].group")],
    ),
    "an option that another one needs": (
        GOOD.replace("count = 2", "count = 2\noptions = { pinnedAssigner = 1, revokeBeforeAssign = true }"),
        [(19, "consumer[0].options.pinnedAssigner")],
    ),
    "a StatefulSet that is not read": (
        GOOD.replace("count = 2", 'options = { allocateMessageQueueStrategy = "ORDINAL" }').replace("consumer-2", "x-1")
        + '[[statefulset]]\ngroup = "g"\nname = "x y"\nreplicas = 2\n',
        [(31, "statefulset[0].name")],
    ),
    "a preset that is meant": (
        GOOD.replace("run_for_s = 60", 'run_for_s = 60\npreset = "asigner"').replace(
            "count = 2", "count = 2\noptions = { revokeBeforeAssign = true }"
        ),
        [(4, "scenario.preset")],
    ),
    "no broker at all, but a topic with a mistake": (
        GOOD.partition("[[broker]]")[0] + '[[topic]]\nname = "t"\nqueues = 0\n[[topic]]\nname = "u"\nbrokers = ["b"]',
        [(7, "topic[0].queues"), (0, "broker")],
    ),
    "no broker at all, but faults of some": (
        GOOD.partition("[[broker]]")[0] + '[[fault]]\ndo = "kill broker-a"\nat_s = 1\n',
        [(0, "broker")],
    ),
    "a scenario that is no table": (
        'scenario = "good"\n' + GOOD.partition("\n\n")[2],
        [(1, "scenario")],
    ),
    "two nodes of one name on one port": (
        with_lines(GOOD, l9='name = "broker-a"', l10="").replace("broker-b-s1", "broker-a"),
        [(9, "broker[1].name")],
    ),
}


@each_case(("text", "reported"), FOLLOWED.values(), ids=list(FOLLOWED))
def test_what_only_follows_from_a_mistake_is_not_reported(text, reported):
    assert mistakes(text) == reported


@each_case(
    ("text", "reported"),
    [
        (with_lines(GOOD, l3="run_for_ms = 0"), (3, "scenario.run_for_ms")),
        (with_lines(GOOD, l28="at_s = 60"), (28, "fault[0].at_s")),
        (with_lines(GOOD, l28="at_ms = 60_000"), (28, "fault[0].at_ms")),
        (with_lines(GOOD, l6="name = 'broker-a'\noptions.total_replicas = 0"), (7, "broker[0].options.total_replicas")),
        (GOOD + "[[fault]]\nat_s = 1\ndo = 'kill broker-x'\n", (31, "fault[1].do")),
        (GOOD + "[[fault]]\ndo = 'kill broker-a'\n", (29, "fault[1].at_s")),
        (GOOD + '[[broker]]\nname = "c"\nnode = "broker-b-s1"\n', (31, "broker[2].node")),
    ],
)
def test_a_mistake_has_the_key_that_the_user_wrote_and_its_line(text, reported):
    assert mistakes(text) == [reported]


def test_all_wrong_values_of_a_fault_are_reported():
    text = GOOD + '[[fault]]\nkind = "drop"\nnext = 0\nskip = -1\nduring = "never"\nat_s = -1\nid = 3\n'

    assert mistakes(text) == [
        *((31, "fault[1].next"), (32, "fault[1].skip"), (33, "fault[1].during")),
        *((34, "fault[1].at_s"), (35, "fault[1].id")),
    ]


def test_a_broken_table_does_not_hide_the_mistakes_of_others():
    text = GOOD.replace("count = 2", "count = 2\noptions = { pullBatchSize = 0 }").replace("consumer-2", "consumer-9")

    assert mistakes(text) == [(19, "consumer[0].options.pullBatchSize"), (27, "fault[0].from")]


def test_plain_values_have_no_lines_and_are_reported_together_as_well():
    with pytest.raises(SpecError) as caught:
        from_dict({"scenario": {"name": "x", "run_for_s": -1}, "broker": [{"name": "b", "id": -1}]}, "manifest")

    assert caught.value.lines == (
        "manifest: scenario.run_for_s: expected seconds >= 0, not -1",
        "manifest: broker[0].id: expected a whole number >= 0, not -1",
    )


def test_the_first_mistake_is_the_error_and_a_traceback_has_all():
    with pytest.raises(SpecError) as caught:
        loads(with_lines(GOOD, l3="run_for_s = 0", l17='topics = ["x"]'), "x.toml")
    error = pickle.loads(pickle.dumps(caught.value))

    assert (error.key, error.source, error.line) == ("scenario.run_for_s", "x.toml", 3)
    assert error.problem == "expected a whole number of milliseconds >= 1, not 0"
    assert str(error) == f"x.toml:3: scenario.run_for_s: {error.problem}"
    assert error.__notes__ == ['x.toml:17: consumer[0].topics[0]: unknown topic "x"; known are orders']
    assert error.lines == caught.value.lines == (str(error), *error.__notes__)


def test_of_very_many_mistakes_the_first_are_reported():
    text = GOOD + "".join(f'[[topic]]\nname = "t{number}"\nqueues = 0\n' for number in range(10 * MISTAKES_MAX))

    reported = mistakes(text)
    assert len(reported) == MISTAKES_MAX + 1
    assert reported[-1] == (0, "file")


@pytest.mark.parametrize("command", ["check", "run", "up", "shrink"])
def test_every_command_notifies_them_all_and_starts_nothing(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text(with_lines(GOOD, l3="run_for_s = 0", l17='topics = ["x"]'))
    done = CliRunner().invoke(app, [command, "x.toml"])

    assert (done.exit_code, done.stdout) == (2, "")
    assert [line.split(": ")[:3] for line in done.stderr.splitlines()] == [
        ["rmqemu", "x.toml:3", "scenario.run_for_s"],
        ["rmqemu", "x.toml:17", "consumer[0].topics[0]"],
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["x.toml"]


def test_a_campaign_reports_all_mistakes_of_its_own_file_and_of_its_scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text(with_lines(GOOD, l3="run_for_s = 0", l17='topics = ["x"]'))
    (tmp_path / "c.toml").write_text('[campaign]\nname = "c"\nscenario = "x.toml"\nseeds = "9-1"\njobs = 0\n')
    (tmp_path / "d.toml").write_text(
        '[campaign]\nname = "d"\nseeds = "1-2"\n[[variant]]\nname = "v"\n[variant.options.broker]\nforceRegister = 1\n'
        '[[variant]]\nname = "w"\nleave_out = ["x"]\n' + GOOD
    )
    wrong = CliRunner().invoke(app, ["campaign", "c.toml"]).stderr.splitlines()
    variants = CliRunner().invoke(app, ["campaign", "d.toml"]).stderr.splitlines()

    assert [line.split(": ")[1] for line in wrong] == ["c.toml:4", "c.toml:5", "x.toml:3", "x.toml:17"]
    assert [line.split(": ")[1:3] for line in variants] == [
        ["d.toml:7", "variant[0].options.broker.forceRegister"],
        ["d.toml:10", "variant[1].leave_out[0]"],
    ]


SPOILED = {
    ("scenario", "run_for_s"): -1,
    ("scenario", "seed"): -1,
    ("broker", 0, "cluster"): 3,
    ("broker", 1, "options"): {"slaveReadEnable": 3},
    ("topic", 0, "queues"): 0,
    ("consumer", 0, "fail_times"): -1,
    ("consumer", 0, "topics", 0): "nowhere",
    ("producer", 0, "rate_per_s"): 0,
    ("producer", 0, "topic"): "nowhere",
    ("fault", 0, "to"): "nobody",
    ("network", "jitter_ms"): -1,
}
"""Independent mistakes: place -> value."""
TABLES = {
    "scenario": {"name": "good", "run_for_s": 60, "seed": 1},
    "network": {"jitter_ms": 1},
    "broker": [{"name": "broker-a", "cluster": "c"}, {"name": "broker-b", "cluster": "c"}],
    "topic": [{"name": "orders", "queues": 4}],
    "consumer": [{"group": "g", "topics": ["orders"], "fail_times": 0}],
    "producer": [{"group": "p", "topic": "orders", "rate_per_s": 1}],
    "fault": [{"kind": "cut", "from": "broker-a", "to": "consumer-1", "at_s": 1}],
}


@given(st.sets(st.sampled_from(sorted(SPOILED, key=repr)), min_size=1))
def test_any_set_of_independent_mistakes_is_reported_completely_each_at_a_line_of_its_table(places):
    tables = copy.deepcopy(TABLES)
    for place in sorted(places, key=repr):
        at = tables
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = SPOILED[place]
    text = tomli_w.dumps(tables)

    reported = mistakes(text)
    expected = [
        "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
        for place in places
    ]
    assert sorted(key.removesuffix(".slaveReadEnable") for _, key in reported) == sorted(expected)
    assert reported == sorted(reported, key=lambda item: item[0])
    for line, key in reported:
        name = key.removesuffix("]").rpartition("[")[0] if key.endswith("]") else key
        assert name.rpartition(".")[2] in text.splitlines()[line - 1] or "nowhere" in text.splitlines()[line - 1]
