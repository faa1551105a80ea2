"""Controllers in a scenario file: how many, with which options, and what is said of odd numbers of them."""

import attrs
import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.model.addresses import addresses, node_ports
from emulator.spec.model.scenario import NameserverSpec
from emulator.spec.warnings.harmful_settings import check
from nodes.config import ControllerConfig, NameserverConfig, NameserverWithControllerConfig
from support.every_case import each_case

HEAD = '[scenario]\nname = "x"\nrun_for_s = 1\n[[broker]]\nname = "b"\n'


def scenario(text=""):
    return loads(HEAD + text, "x.toml")


def test_without_a_table_there_are_none():
    assert scenario().controllers == ()
    assert "controller" not in to_dict(scenario())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[controller]\n", ["controller-1", "controller-2", "controller-3"]),
        ("[controller]\ncount = 1\n", ["controller-1"]),
        ('[[controller]]\nname = "left"\n[[controller]]\nname = "right"\n', ["left", "right"]),
    ],
)
def test_one_table_says_how_many_and_a_table_for_each_gives_names(text, names):
    read = scenario(text)
    assert [spec.name for spec in read.controllers] == names
    assert from_dict(to_dict(read)) == read
    ips = addresses(read)
    assert len({ips[name] for name in names}) == len(names)


def test_their_options_have_the_names_of_rocketmq():
    (item,) = scenario("[controller]\ncount = 1\noptions = { enableElectUncleanMaster = true }\n").controllers
    assert item.config == ControllerConfig(enable_elect_unclean_master=True)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[controller]\ncount = 0\n", "x.toml:7: controller.count: expected"),
        ("[controller]\ncount = 10\n", "x.toml:7: controller.count: expected"),
        ('[[controller]]\nname = "b"\n', "x.toml:5: broker[0].name: expected a name of its own"),
        ("[controller]\noptions = { electUnclean = true }\n", "x.toml:7: controller.options.electUnclean: unknown"),
    ],
)
def test_a_mistake_has_its_line(text, line):
    with pytest.raises(SpecError) as refused:
        scenario(text)
    assert any(item.startswith(line) for item in refused.value.lines), refused.value.lines


@each_case(("count", "warned"), [(1, False), (2, True), (3, False), (4, True)])
def test_an_even_number_is_warned_of(count, warned):
    found = [item.name for item in check(scenario(f"[controller]\ncount = {count}\n"))]
    assert ("even-number-of-controllers" in found) == warned


INSIDE = "[nameserver]\ncount = 3\noptions = { enableControllerInNamesrv = true, electMasterMaxRetryCount = 4 }\n"


def test_controllers_inside_of_nameservers_have_their_options_and_their_addresses():
    read = scenario(INSIDE)
    assert read.controllers == ()
    assert read.controller_names() == read.by_role()["controller"] == ("ns-1", "ns-2", "ns-3")
    assert {spec.config.elect_master_max_retry_count for spec in read.nameservers} == {4}
    assert [node.ports for node in node_ports(read)][:3] == [(9_876, 9_878)] * 3
    assert from_dict(to_dict(read)) == read


def test_a_preset_with_controllers_starts_none_with_those_in_nameservers():
    text = HEAD.replace("run_for_s", 'preset = "controller"\nrun_for_s')
    assert loads(text + INSIDE, "x.toml").controllers == ()
    assert len(loads(text, "x.toml").controllers) == 3


def test_nodes_of_their_own_and_nameservers_may_be_controllers_of_one_group():
    read = scenario(INSIDE.replace("count = 3", "count = 2") + "[controller]\ncount = 1\n")
    assert read.controller_names() == ("controller-1", "ns-1", "ns-2")


def test_a_nameserver_has_the_options_of_a_controller_as_long_as_it_has_one():
    spec = NameserverSpec("ns-1", NameserverConfig(enable_controller_in_namesrv=True))
    assert isinstance(spec.config, NameserverWithControllerConfig)
    off = attrs.evolve(spec, config=attrs.evolve(spec.config, enable_controller_in_namesrv=False))
    assert off.config == NameserverConfig()


@each_case(
    ("text", "line"),
    [
        (
            "[nameserver]\noptions = { electMasterMaxRetryCount = 4 }\n",
            "x.toml:7: nameserver.options.electMasterMaxRetryCount: expected enableControllerInNamesrv = true: it is",
        ),
        (INSIDE.replace("= true", '= "yes"'), "x.toml:8: nameserver.options.enableControllerInNamesrv: expected true"),
        (INSIDE.replace("= 4", "= 0"), "x.toml:8: nameserver.options.electMasterMaxRetryCount: expected"),
        (
            INSIDE.replace("= 4", '= 4, release = "4.9"'),
            "x.toml:8: nameserver.options.enableControllerInNamesrv: expected none: release 4.9 does not have it",
        ),
        (
            INSIDE.replace("= 4", "= 4, listenPort = 9878"),
            "x.toml:8: nameserver.options.listenPort: expected another port, 9878 belongs to the controller",
        ),
        (INSIDE + "[controller]\ncount = 8\n", "x.toml:9: controller: expected 9 at most in all, not 11"),
        (
            INSIDE + '[[fault]]\ndo = "restart ns-1 with {enableControllerInNamesrv = false}"\nat_ms = 1\n',
            "x.toml:9: fault[0].options.enableControllerInNamesrv: expected another option: controllers know",
        ),
    ],
)
def test_a_mistake_about_controllers_in_nameservers_has_its_line(text, line):
    with pytest.raises(SpecError) as refused:
        scenario(text)
    assert any(item.startswith(line) for item in refused.value.lines), refused.value.lines


def test_an_even_number_in_nameservers_is_warned_of_by_their_names():
    (found,) = (item for item in check(scenario(INSIDE.replace("3", "2"))) if item.name == "even-number-of-controllers")
    assert found.where == "ns-1, ns-2"


GROUP = '[scenario]\nname = "x"\nrun_for_s = 1\npreset = "controller_strict"\n[[broker]]\nname = "ba"\nreplicas = 3\n'


@each_case(
    ("text", "name", "where", "words"),
    [
        (
            "[controller]\noptions = { enableElectUncleanMaster = true }\n",
            "unclean-election",
            "controller-1, controller-2, controller-3",
            "offsets beyond the end of its log",
        ),
        (
            "[controller]\noptions = { scanInactiveMasterInterval = 3_600_000 }\n",
            "dead-masters-are-rarely-looked-for",
            "controller-1, controller-2, controller-3",
            "scanInactiveMasterInterval is 3600 s",
        ),
        (
            "options = { controllerHeartBeatTimeoutMills = 1_999 }\n",
            "heartbeats-to-controllers-expire",
            "ba, ba-s1, ba-s2",
            "one late heartbeat",
        ),
        (
            "options = { allAckInSyncStateSet = false, minInSyncReplicas = 2 }\n",
            "acknowledged-by-the-master-alone",
            "ba, ba-s1, ba-s2",
            "minInSyncReplicas does not prevent it",
        ),
    ],
)
def test_options_with_which_users_lost_messages_or_masters_are_warned_of(text, name, where, words):
    (found,) = check(loads(GROUP + text, "x.toml"))
    assert (found.name, found.where) == (name, where)
    assert words in found.consequence


@each_case(
    "text",
    [
        "",
        "options = { allAckInSyncStateSet = false, inSyncReplicas = 2 }\n",
        "options = { controllerHeartBeatTimeoutMills = 2_000 }\n",
        "[controller]\noptions = { scanInactiveMasterInterval = 60_000 }\n",
    ],
)
def test_what_prevents_it_is_not_warned_of(text):
    assert check(loads(GROUP + text, "x.toml")) == ()


def test_groups_with_the_same_options_have_one_warning_together():
    groups = GROUP.replace("controller_strict", "controller") + '[[broker]]\nname = "bb"\nreplicas = 2\n'
    (found,) = check(loads(groups, "x.toml"))
    assert (found.name, found.where) == ("acknowledged-by-the-master-alone", "ba, ba-s1, ba-s2, bb, bb-s1")


def test_a_broker_alone_acknowledges_alone_and_one_without_controllers_is_not_elected():
    alone = GROUP.replace("controller_strict", "controller").replace("replicas = 3", "replicas = 1")
    assert check(loads(alone, "x.toml")) == ()
    assert check(loads(GROUP.replace("controller_strict", "classic"), "x.toml")) == ()
