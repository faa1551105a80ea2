"""Functions of the user's own that a scenario names: found when it is read, or refused in one line."""

import sys

import attrs
import pytest

from emulator.campaign.file import load_campaign
from emulator.cluster import Cluster
from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.testing import a_scenario
from nodes.allocation.strategies import strategy_name, strategy_of
from nodes.config import ConsumerConfig
from nodes.protocol.model import MessageQueue
from support.mistakes import only_mistake

HEAD = """
[scenario]
name = "own"
run_for_s = 60
[[broker]]
name = "b"
[[topic]]
name = "orders"
[[consumer]]
group = "g"
topics = ["orders"]
"""
OWN = "support.own_strategies:"
KEY = "x: consumer[0].options."
WHERE = "; it must be installed, or in a directory of PYTHONPATH"


def with_strategy(name, option="allocateMessageQueueStrategy"):
    return HEAD + f'options = {{ {option} = "{name}" }}\n'


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name, code, points="", module="own_package"):
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)

    yield install
    sys.modules.pop("own_package", None)


def test_a_function_is_found_and_written_down_by_its_name():
    scenario = loads(with_strategy(OWN + "turned"), "x")
    config = scenario.consumers[0].config

    assert strategy_name(config) == OWN + "turned"
    queues = [MessageQueue("t", "b", queue_id) for queue_id in range(2)]
    assert strategy_of(config)("g", "a", queues, ("a", "b")) == queues[1:]
    assert from_dict(to_dict(scenario)) == scenario


def test_an_entry_point_of_an_installed_package_is_found_by_its_name(package):
    points = (
        "[rmqemu.strategies]\nmine = own_package:divide\n[rmqemu.hash_functions]\nmine = own_package:Hashes.hashed\n"
    )
    package(
        "own",
        "def divide(*_):\n    return []\nclass Hashes:\n    def hashed(text):\n        return 7\n",
        points,
    )

    config = loads(with_strategy("mine"), "x").consumers[0].config
    assert strategy_of(config)("g", "a", (), ()) == []

    hashed = loads(with_strategy("mine", "hashFunction"), "x").consumers[0].config
    ring = strategy_of(attrs.evolve(hashed, allocate_message_queue_strategy="CONSISTENT_HASH"))
    assert ring.hash_function("x") == 7


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere.at:all", f"cannot import nowhere.at:all: ModuleNotFoundError: No module named 'nowhere'{WHERE}"),
        (
            OWN + "nothing",
            f"cannot import {OWN}nothing: AttributeError: module 'support.own_strategies' has no attribute 'nothing'"
            + WHERE,
        ),
        (OWN + "NO_FUNCTION", f"{OWN}NO_FUNCTION cannot be called: it is a int"),
        ("mine", "no entry point mine of rmqemu.strategies; no installed package has one"),
    ],
)
def test_what_cannot_be_imported_or_called_is_refused_in_one_line_with_its_key(name, problem):
    with pytest.raises(SpecError) as refused:
        loads(with_strategy(name), "x")

    assert only_mistake(refused.value) == f"{KEY}allocateMessageQueueStrategy: {problem}"


@pytest.mark.parametrize("code", ["raise SystemExit('no')", "1 / 0", "def f(:", "raise RuntimeError('two\\nlines')"])
def test_a_module_that_fails_when_it_is_imported_is_one_line(package, code):
    package("own", code)

    with pytest.raises(SpecError, match=r"hashFunction: cannot import own_package:f: \w+: .*") as refused:
        loads(with_strategy("own_package:f", "hashFunction"), "x")
    assert only_mistake(refused.value).isprintable()


def test_an_entry_point_that_two_packages_have_is_refused_and_those_that_exist_are_named(package):
    package("own", "", "[rmqemu.strategies]\nmine = own_package:one\n")
    package("other", "", "[rmqemu.strategies]\nmine = own_package:two\nyours = own_package:two\n")

    with pytest.raises(SpecError, match=r"several packages have an entry point mine of .*: own_package:one, "):
        loads(with_strategy("mine"), "x")
    with pytest.raises(SpecError, match=r"no entry point his of rmqemu.strategies; there are mine, yours"):
        loads(with_strategy("his"), "x")


@pytest.mark.parametrize("name", ["BEST", "a:b:c", "a.b", "1:f", "a: f", ":f", "a:"])
def test_what_is_no_name_of_a_function_is_refused_with_all_strategies(name):
    expected = (
        "expected one of AVG, AVG_BY_CIRCLE, .*, a function of your own as package.module:function, or the name of an"
        " entry point of rmqemu.strategies, not"
    )
    if name == "a.b":
        expected = "no entry point a.b"
    with pytest.raises(SpecError, match=expected):
        loads(with_strategy(name), "x")


def test_the_scenario_of_an_old_run_is_read_without_its_functions():
    tables = to_dict(loads(with_strategy(OWN + "turned"), "x"))
    tables["consumer"][0]["options"]["allocateMessageQueueStrategy"] = "gone.for:ever"

    scenario = from_dict(tables)

    assert scenario.consumers[0].config.allocate_message_queue_strategy == "gone.for:ever"
    # But it cannot be played.
    with pytest.raises(SpecError, match=r"cannot import gone.for:ever"):
        Cluster(None, scenario)


def test_a_scenario_made_in_python_is_refused_before_anything_starts():
    scenario = a_scenario(consumers=1, consumer=ConsumerConfig(allocate_message_queue_strategy="gone.for:ever"))

    with pytest.raises(SpecError, match=r"consumer\[0\].options.allocateMessageQueueStrategy: cannot import"):
        Cluster(None, scenario)


def test_a_campaign_is_refused_if_a_variant_names_a_function_that_is_not_there(tmp_path):
    (tmp_path / "c.toml").write_text(
        HEAD + '[campaign]\nname = "c"\nseeds = "1-2"\n[[variant]]\nname = "own"\n'
        'options.consumer = { allocateMessageQueueStrategy = "gone.for:ever" }\n'
    )

    with pytest.raises(SpecError, match=r"cannot import gone.for:ever"):
        load_campaign(tmp_path / "c.toml")


@pytest.mark.parametrize("strategy", ["STICKY", "PR2169"])
def test_a_strategy_with_a_memory_is_refused_for_clients(strategy):
    with pytest.raises(SpecError) as refused:
        loads(with_strategy(strategy), "x")
    assert only_mistake(refused.value) == (
        f"{KEY}allocateMessageQueueStrategy: expected clientRebalance = false beside it: "
        f"{strategy} is not supported by clients"
    )

    options = f'options = {{ allocateMessageQueueStrategy = "{strategy}", clientRebalance = false }}\n'
    assert loads(HEAD + options, "x").consumers[0].config.allocate_message_queue_strategy == strategy


@pytest.mark.parametrize("inner", ["STICKY", "PR2169", "KAFKA_ROUND_ROBIN", "MACHINE_ROOM_NEARBY"])
def test_within_a_room_only_a_strategy_that_can_divide_one_is_taken(inner):
    expected = "innerAllocateStrategy: expected a strategy that can divide one room: AVG, .*CONSISTENT_HASH, not"
    with pytest.raises(SpecError, match=f"{expected} {inner}"):
        loads(with_strategy(inner, "innerAllocateStrategy"), "x")
