"""`rmqemu check` about allocation strategies: what nothing refuses, and a trial of the user's own."""

import shutil

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check
from support.own_code import OWN, OWN_CODE

HEAD = """
[scenario]
name = "harm"
run_for_s = 60
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
queues = 4
"""


def group(options="", names='["c1", "c2"]', more=""):
    return f'[[consumer]]\ngroup = "g"\ntopics = ["orders"]\nnames = {names}\noptions = {{ {options} }}\n{more}'


def by(strategy, *others, names='["c1", "c2"]'):
    return group(", ".join([f'allocateMessageQueueStrategy = "{strategy}"', *others]), names)


def found(text):
    return {setting.name: setting for setting in check(loads(HEAD + text, "x", code=OWN_CODE))}


@pytest.mark.parametrize("strategy", ["CONSISTENT_HASH", "STICKY", "PR2169", "KAFKA_ROUND_ROBIN", OWN + "turned"])
def test_a_strategy_that_brokers_do_not_know_is_warned_of(strategy):
    (setting,) = found(by(strategy, "clientRebalance = false")).values()

    assert (setting.name, setting.where) == ("strategy-unknown-to-brokers", "g")
    assert f"they know AVG and AVG_BY_CIRCLE, not {strategy}: they answer nothing" in setting.consequence


@pytest.mark.parametrize("other", ["consumeOrderly = true", 'messageModel = "BROADCASTING"'])
def test_who_never_asks_a_broker_needs_no_strategy_that_it_knows(other):
    assert found(by("CONSISTENT_HASH", "clientRebalance = false", other)) == {}
    assert found(by("AVG_BY_CIRCLE", "clientRebalance = false")) == {}


@pytest.mark.parametrize(
    ("strategy", "option", "reader"),
    [
        ("AVG", "virtualNodeCnt = 20", "CONSISTENT_HASH"),
        ("CONSISTENT_HASH", 'consumeridcs = "r1"', "MACHINE_ROOM"),
        ("AVG", 'messageQueueList = "orders@broker-a@0"', "CONFIG"),
        ("MACHINE_ROOM", 'innerAllocateStrategy = "AVG_BY_CIRCLE"', "MACHINE_ROOM_NEARBY"),
        ("KAFKA_ROUND_ROBIN", 'machineRooms = "r=b"', "MACHINE_ROOM_NEARBY"),
        ("AVG", f'hashFunction = "{OWN}last_digits"', "CONSISTENT_HASH"),
    ],
)
def test_a_parameter_of_another_strategy_is_warned_of(strategy, option, reader):
    (setting,) = found(by(strategy, option)).values()

    assert (setting.name, setting.where) == ("parameter-of-another-strategy", "g")
    name = option.partition(" ")[0]
    assert (
        setting.consequence == f"only {reader} reads {name}, and the group allocates by {strategy}: it changes nothing"
    )


def test_a_strategy_inside_another_reads_its_own_parameters():
    inside = ('machineRooms = "r=broker-"', 'innerAllocateStrategy = "CONSISTENT_HASH"', "virtualNodeCnt = 20")

    assert found(by("MACHINE_ROOM_NEARBY", *inside)) == {}


@pytest.mark.parametrize(
    ("item", "other", "answer"),
    [
        (by("AVG"), by("AVG_BY_CIRCLE", names='["c3"]'), "c1, c2 by AVG but c3 by AVG_BY_CIRCLE: "),
        (
            by("CONSISTENT_HASH"),
            by("CONSISTENT_HASH", "virtualNodeCnt = 3", names='["c3"]'),
            "c1, c2 by CONSISTENT_HASH but c3 by CONSISTENT_HASH: ",
        ),
    ],
)
def test_two_strategies_in_one_group_are_warned_of(item, other, answer):
    (setting,) = found(item + other).values()

    assert (setting.name, setting.where) == ("two-strategies-in-one-group", "g")
    assert setting.consequence.startswith(answer)
    assert "some queues have two owners" in setting.consequence


@pytest.mark.parametrize(
    ("other", "answer"),
    [
        ("clientRebalance = true", "each member allocates for c1, c2 but the assigner allocates for c3: "),
        ("clientRebalance = false", "any broker allocates for c1, c2 but the assigner allocates for c3: "),
    ],
)
def test_two_ways_to_allocate_in_one_group_are_warned_of(other, answer):
    assigned = group("clientRebalance = false, pinnedAssigner = true", names='["c3"]')
    (setting,) = found(group(other) + assigned).values()

    assert (setting.name, setting.where) == ("two-dividers-in-one-group", "g")
    assert setting.consequence.startswith(answer)
    assert found(group("clientRebalance = false, consumeOrderly = true") + group(names='["c3"]')) == {}
    assert found(assigned + group('messageModel = "BROADCASTING"')) == {}


def test_members_with_lists_of_their_own_have_one_strategy():
    lists = (f'messageQueueList = "orders@broker-{name}@0"' for name in "ab")
    item, other = (by("CONFIG", listed, names=f'["c{i}"]') for i, listed in enumerate(lists))

    assert found(item + other) == {}
    assert found(group() + group(names='["c3"]')) == {}


@pytest.mark.parametrize(
    ("function", "name", "says"),
    [
        (
            "throws",
            "strategy-throws",
            "failed with ZeroDivisionError: integer division or modulo by zero, given",
        ),
        ("exits", "strategy-throws", "failed with SystemExit: 3, given 1 queue and 1 member"),
        ("texts", "strategy-throws", "which is no queue"),
        (
            "foreign",
            "strategy-gives-foreign-queues",
            "gave MessageQueue [topic=orders, brokerName=broker-z, queueId=0], which was not there to be allocated",
        ),
        (
            "everything",
            "strategy-gives-a-queue-twice",
            "gave MessageQueue [topic=orders, brokerName=broker-a, queueId=0] 2 times, given 1 queue and 2 members",
        ),
        (
            "only_the_first",
            "strategy-forgets-a-queue",
            "gave MessageQueue [topic=orders, brokerName=broker-b, queueId=0] to no one, given 2 queues and 1 member",
        ),
        ("unsteady", "strategy-is-not-steady", "gave other queues when it was asked a second time"),
    ],
)
def test_a_strategy_of_the_users_own_is_tried_and_what_it_does_wrong_is_named(function, name, says):
    settings = found(by(OWN + function))

    assert settings[name].where == "g"
    assert settings[name].consequence.startswith(f"{OWN}{function} ")
    assert says in settings[name].consequence


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("hash_throws", "hash_throws threw KeyError: "),
        ("half", "half gave 13.0, which is no whole number"),
    ],
)
def test_a_hash_function_of_the_users_own_is_tried_too(function, says):
    (setting,) = found(by("CONSISTENT_HASH", f'hashFunction = "{OWN}{function}"')).values()

    assert setting.name == "strategy-throws"
    assert says in setting.consequence


def test_good_functions_of_the_users_own_are_not_warned_of():
    assert found(by(OWN + "turned")) == {}
    assert found(by("CONSISTENT_HASH", f'hashFunction = "{OWN}last_digits"')) == {}


def test_each_warning_is_a_line_of_the_command(tmp_path):
    (tmp_path / "harm.toml").write_text(HEAD + by(OWN + "everything", "virtualNodeCnt = 3"))
    shutil.copy(OWN_CODE.folder / "own_strategies.py", tmp_path)
    done = CliRunner().invoke(app, ["check", "--allow-code", str(tmp_path / "harm.toml")])

    assert done.exit_code == 0
    assert [line.split(": ")[:3] for line in done.stdout.splitlines()] == [
        ["warning", "parameter-of-another-strategy", "g"],
        ["warning", "strategy-gives-a-queue-twice", "g"],
    ]
