"""`rmqemu check`: settings that do harm are named with their consequence; they are no mistakes."""

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.spec.warnings.harmful_settings import check
from support.every_case import each_case

HEAD = """
[scenario]
name = "harm"
run_for_s = 60
preset = "rip32"
"""
NAMESERVERS = "[nameserver]\ncount = 1\n"
PAIR = '[[broker]]\nname = "ba"\nreplicas = 2\n'
THREE = '[[broker]]\nname = "ba"\nreplicas = 3\n'
MASTER, SLAVE = '[[broker]]\nname = "ba"\n', '[[broker]]\nname = "ba"\nid = 1\n'

IMPACT = {
    "two-brokers-of-one-id": (MASTER + MASTER + 'node = "twin"\n', "ba, twin", "messages end up in several logs"),
    "one-name-in-two-clusters": (MASTER + SLAVE + 'cluster = "other"\n', "ba", "DefaultCluster and other"),
    "acting-flag-on-some-members": (
        MASTER + SLAVE + "options = { enableSlaveActingMaster = false }\n",
        "ba",
        "ba set enableSlaveActingMaster, ba-s1 not",
    ),
    "total-replicas-1-with-acting-master": (
        PAIR + "options = { totalReplicas = 1 }\n",
        "ba, ba-s1",
        "consumer offsets roll back",
    ),
    "skip-pre-online-with-acting-master": (
        PAIR + "options = { skipPreOnline = true }\n",
        "ba, ba-s1",
        "without comparing versions",
    ),
    "pop-records-without-database": (
        PAIR + "options = { popConsumerKVServiceEnable = true }\n",
        "ba, ba-s1",
        "every pop fails",
    ),
    "brokers-of-a-group-on-one-address": (PAIR + "one_address = true\n", "ba, ba-s1", "by IP address alone"),
    "strict-lock-with-2-replicas": (
        PAIR + "options = { lockInStrictMode = true }\n",
        "ba, ba-s1",
        "more than half of 2 is both",
    ),
    "version-step-with-several-slaves": (
        THREE + "options = { consumerOffsetUpdateVersionStep = 500 }\n",
        "ba, ba-s1, ba-s2",
        "takes over the data of its last slave",
    ),
    "nameserver-without-acting-master": (
        PAIR + NAMESERVERS + "options = { supportActingMaster = false }\n",
        "ns-1",
        "shows no one as its master",
    ),
    "broker-refused-by-its-container": (
        MASTER + 'container = "box"\noptions = { inSyncReplicas = 2 }\n',
        "ba",
        "invalid replicas number: box ends as soon as it reads",
    ),
}


STORM = "pulls-beyond-an-acting-slave"
"""What the preset has by itself, since RIP-32 as shipped has it."""


def besides_the_storm(text):
    """What `check` finds besides what each group with a slave that may act has."""
    return [found for found in check(loads(text, "x")) if found.name != STORM]


@each_case(("name", "text", "where", "says"), [(name, *rest) for name, rest in IMPACT.items()], ids=IMPACT)
def test_each_harmful_setting_is_warned_of_by_its_name_and_no_other_is(name, text, where, says):
    (found,) = besides_the_storm(HEAD + text)

    assert (found.name, found.where) == (name, where)
    assert says in found.consequence


@pytest.mark.parametrize("text", [text for text, _, _ in IMPACT.values()], ids=IMPACT)
def test_what_is_warned_of_runs_all_the_same(text, tmp_path):
    manifest = run_scenario(loads(HEAD + text, "x"), runs=tmp_path).manifest

    assert manifest["ended"] == "complete"
    assert manifest["crashes"] == []


@pytest.mark.parametrize(("text", "slaves"), [(PAIR, "ba-s1"), (THREE, "ba-s1, ba-s2"), (MASTER, "")])
def test_the_preset_itself_has_the_pull_storm_and_no_other_harm(text, slaves):
    assert besides_the_storm(HEAD + text) == []
    assert [found.where for found in check(loads(HEAD + text, "x"))] == ([slaves] if slaves else [])


def test_shipped_defaults_do_no_harm():
    assert check(loads(HEAD.replace("rip32", "classic") + THREE, "x")) == ()


def test_warnings_are_lines_and_no_failure(tmp_path):
    (tmp_path / "harm.toml").write_text(HEAD + PAIR + "options = { totalReplicas = 1, skipPreOnline = true }\n")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "harm.toml")])

    assert done.exit_code == 0
    assert [line.split(": ")[:3] for line in done.stdout.splitlines()] == [
        ["warning", "total-replicas-1-with-acting-master", "ba, ba-s1"],
        ["warning", "skip-pre-online-with-acting-master", "ba, ba-s1"],
        ["warning", STORM, "ba-s1"],
    ]


def test_nothing_to_warn_of_is_said(tmp_path):
    (tmp_path / "calm.toml").write_text(HEAD + MASTER)
    done = CliRunner().invoke(app, ["check", str(tmp_path / "calm.toml")])

    assert (done.exit_code, done.stdout) == (0, "no warnings\n")


def test_what_is_no_scenario_is_refused_as_everywhere(tmp_path):
    (tmp_path / "wrong.toml").write_text(HEAD + "[[brokr]]\n")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "wrong.toml")])

    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


OLD = '[nameserver]\ncount = 1\noptions = { release = "4.9" }\n'
OLD_PAIR = PAIR + 'options = { release = "4.9" }\n'
FIRST = "upgrade nameservers with {release = 5.3.3, supportActingMaster = true} one every 1s"
ACT = "with {release = 5.3.3, enableSlaveActingMaster = true, totalReplicas = 2"
MEMBERS = '[[topic]]\nname = "orders"\n[[consumer]]\ngroup = "g"\nnames = ["c1", "c2"]\ntopics = ["orders"]\n'
ORDERS = {
    "nameservers, slaves, masters": ((FIRST, f"upgrade brokers {ACT}}} one every 10s, slaves first"), []),
    "brokers that can wait": (
        (f"upgrade brokers {ACT}}} one every 10s, slaves first",),
        [("brokers-upgraded-before-nameservers", "ba-s1, ba", "of little use")],
    ),
    "brokers that cannot": (
        (f"upgrade brokers {ACT}, compatibleWithOldNameSrv = false}} one every 10s, slaves first",),
        [("brokers-upgraded-before-nameservers", "ba-s1, ba", "no one finds its queues")],
    ),
    "masters first": (
        (FIRST, f"upgrade brokers {ACT}}} one every 10s, masters first"),
        [("master-upgraded-before-its-slaves", "ba", "has no master until the slave is upgraded")],
    ),
    "a strategy at once": (("restart members of g with {allocateMessageQueueStrategy = AVG_BY_CIRCLE}",), []),
    "a strategy slowly": (
        ("upgrade members of g with {allocateMessageQueueStrategy = AVG_BY_CIRCLE} one every 25s",),
        [("strategies-mixed-for-long", "g", "for 25 s its members allocate by AVG_BY_CIRCLE and by AVG")],
    ),
    "a strategy of one member": (
        ("restart c1 with {allocateMessageQueueStrategy = AVG_BY_CIRCLE}",),
        [("strategies-mixed-for-long", "g", "for 50 s")],
    ),
}


@pytest.mark.parametrize("lines", [lines for lines, _ in ORDERS.values()], ids=ORDERS)
def test_orders_of_restarts_that_harm_are_warned_of_and_others_are_not(lines):
    faults = "".join(f'[[fault]]\ndo = "{line}"\nat_s = {10 + i}\n' for i, line in enumerate(lines))
    found = check(loads(HEAD.replace("rip32", "classic") + OLD + OLD_PAIR + MEMBERS + faults, "x"))

    expected = next(warned for answer, warned in ORDERS.values() if answer == lines)
    assert [(item.name, item.where) for item in found] == [(name, where) for name, where, _ in expected]
    assert all(says in item.consequence for item, (_, _, says) in zip(found, expected, strict=True))
