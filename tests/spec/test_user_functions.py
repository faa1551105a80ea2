"""Functions of the user's own that a scenario names: allowed and found when it is read, or refused in one line."""

import os
import py_compile
import sys
import tomllib
from pathlib import Path

import attrs
import pytest

from emulator.campaign.file import load_campaign
from emulator.cluster.cluster import Cluster
from emulator.spec import SpecError, UserCode, from_dict, load, loads, to_dict
from emulator.spec.code.permission_of_code import TRUSTED_FOLDERS
from emulator.spec.reading.user_functions import named_code
from emulator.testing import a_scenario, consumer_group
from nodes.allocation.strategies import strategy_name, strategy_of
from nodes.config import Config, ConsumerConfig, options
from nodes.config.user_functions import FunctionRule
from nodes.fields import Rule
from nodes.protocol.model import MessageQueue
from support.every_case import each_case
from support.mistakes import only_mistake
from support.own_code import OWN, OWN_CODE

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
KEY = "x: consumer[0].options."
EXPECTED = "expected an entry point, or a module next to the file"


def with_strategy(name, option="allocateMessageQueueStrategy"):
    return HEAD + f'options = {{ {option} = "{name}" }}\n'


def read(name, option="allocateMessageQueueStrategy", code=OWN_CODE):
    return loads(with_strategy(name, option), "x", code=code)


@pytest.fixture
def code_next_to(tmp_path):
    """Writes modules next to a scenario, and reads one that names a function of them."""

    def write(code, name, **files):
        (tmp_path / "mine.py").write_text(code)
        for path, text in files.items():
            (tmp_path / f"{path}.py").write_text(text)
        return read(name, "hashFunction", UserCode(tmp_path.resolve(), is_allowed=True))

    return write


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
    scenario = read(OWN + "turned")
    config = scenario.consumers[0].config

    assert strategy_name(config) == OWN + "turned"
    queues = [MessageQueue("t", "b", queue_id) for queue_id in range(2)]
    assert strategy_of(config)("g", "a", queues, ("a", "b")) == queues[1:]
    assert from_dict(to_dict(scenario)) == scenario


def test_an_entry_point_of_an_installed_package_is_found_by_its_name(package):
    points = (
        "[rmqemu.strategies]\nmine = own_package:allocate\n[rmqemu.hash_functions]\nmine = own_package:Hashes.hashed\n"
    )
    package(
        "own",
        "def allocate(*_):\n    return []\nclass Hashes:\n    def hashed(text):\n        return 7\n",
        points,
    )

    config = read("mine").consumers[0].config
    assert strategy_of(config)("g", "a", (), ()) == []

    hashed = read("mine", "hashFunction").consumers[0].config
    ring = strategy_of(attrs.evolve(hashed, allocate_message_queue_strategy="CONSISTENT_HASH"))
    assert ring.hash_function("x") == 7


@each_case(
    ("name", "problem"),
    [
        (
            "nowhere.at:all",
            f"nowhere/at.py next to the file cannot be read: No such file or directory; {EXPECTED}",
        ),
        (OWN + "nothing", "own_strategies.py has no nothing"),
        (
            OWN + "MessageQueue",
            f"{OWN}MessageQueue is imported there: expected a function that own_strategies.py defines",
        ),
        ("os:system", f"os is a module of Python: {EXPECTED}"),
        ("os.path:exists", f"os is a module of Python: {EXPECTED}"),
        ("subprocess:call", f"subprocess is a module of Python: {EXPECTED}"),
        ("builtins:eval", f"builtins is a module of Python: {EXPECTED}"),
        ("trio:run", f"trio.py next to the file cannot be read: No such file or directory; {EXPECTED}"),
        (OWN + "NO_FUNCTION", f"{OWN}NO_FUNCTION cannot be called: it is a int"),
        ("mine", "no entry point mine of rmqemu.strategies; no installed package has one"),
    ],
)
def test_what_cannot_be_imported_or_called_is_refused_in_one_line_with_its_key(name, problem):
    with pytest.raises(SpecError) as refused:
        read(name)

    assert only_mistake(refused.value) == f"{KEY}allocateMessageQueueStrategy: {problem}"


@pytest.mark.parametrize("code", ["raise SystemExit('no')", "1 / 0", "def f(:", "raise RuntimeError('two\\nlines')"])
def test_a_module_that_fails_when_it_is_imported_is_one_line(code_next_to, code):
    with pytest.raises(SpecError, match=r"hashFunction: cannot import mine:f: \w+: .*") as refused:
        code_next_to(code, "mine:f")
    assert only_mistake(refused.value).isprintable()


@pytest.mark.parametrize("name", ["mine:os.system", "mine:system", "mine:one", "mine:Mine.run.__globals__"])
def test_what_a_module_has_imported_is_none_of_its_functions(code_next_to, name):
    code = "import os\nfrom os import system\nfrom functools import partial\none = partial(system, 'x')\n"
    code += "class Mine:\n    def run(self):\n        pass\n"
    with pytest.raises(SpecError, match=r"is imported there|cannot be called"):
        code_next_to(code, name)


def test_a_module_stands_in_the_place_of_no_other_one(code_next_to):
    assert code_next_to("def f(text):\n    return 1\n", "orjson:f", orjson="def f(text):\n    return 2\n")

    assert sys.modules["orjson"].dumps([]) == b"[]"


def test_a_module_that_was_changed_is_read_once_more(code_next_to):
    assert strategy_of(with_ring(code_next_to("def f(text):\n    return 1\n", "mine:f"))).hash_function("x") == 1
    assert strategy_of(with_ring(code_next_to("def f(text):\n    return 2\n", "mine:f"))).hash_function("x") == 2


def with_ring(scenario):
    return attrs.evolve(scenario.consumers[0].config, allocate_message_queue_strategy="CONSISTENT_HASH")


def test_a_compiled_file_that_says_something_else_is_not_believed(tmp_path, code_next_to):
    (tmp_path / "mine.py").write_text("def f(text):\n    return 666\n")
    compiled = Path(py_compile.compile(str(tmp_path / "mine.py"), doraise=True))
    at_s = (tmp_path / "mine.py").stat().st_mtime
    (tmp_path / "mine.py").write_text("def f(text):\n    return 111\n")
    os.utime(tmp_path / "mine.py", (at_s, at_s))
    assert compiled.exists()

    scenario = read("mine:f", "hashFunction", UserCode(tmp_path.resolve(), is_allowed=True))
    assert strategy_of(with_ring(scenario)).hash_function("x") == 111


def test_a_module_that_is_a_link_out_of_the_folder_is_refused(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "mine.py").write_text("def f(text):\n    return 1\n")
    (inside / "mine.py").symlink_to(tmp_path / "mine.py")

    with pytest.raises(SpecError, match=r"mine.py is a link out of its folder"):
        read("mine:f", "hashFunction", UserCode(inside.resolve(), is_allowed=True))


def written(folder):
    folder.mkdir()
    (folder / "mine.py").write_text("def f(text):\n    return 1\n")
    (folder / "s.toml").write_text(with_strategy("mine:f", "hashFunction"))
    return folder / "s.toml"


def test_a_file_below_a_trusted_folder_may_run_the_code_with_it(tmp_path, monkeypatch):
    trusted, borrowed = written(tmp_path / "trusted"), written(tmp_path / "borrowed")
    monkeypatch.setenv(TRUSTED_FOLDERS, f":relative:{trusted.parent}")

    assert load(trusted).code.is_allowed
    with pytest.raises(SpecError, match="read the code first"):
        load(borrowed)
    assert load(borrowed, allow_code=True).code.folder == borrowed.parent.resolve()


@pytest.mark.parametrize("value", ["", ":", ".", "borrowed", "{}/trusted/../nothing", "{}/borrow"])
def test_a_folder_is_trusted_by_its_whole_absolute_path_alone(tmp_path, monkeypatch, value):
    borrowed = written(tmp_path / "borrowed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(TRUSTED_FOLDERS, value.format(tmp_path))

    with pytest.raises(SpecError, match="read the code first"):
        load(borrowed)


def test_a_link_in_a_trusted_folder_makes_no_file_of_it(tmp_path, monkeypatch):
    trusted, borrowed = written(tmp_path / "trusted"), written(tmp_path / "borrowed")
    (trusted.parent / "link.toml").symlink_to(borrowed)
    monkeypatch.setenv(TRUSTED_FOLDERS, str(trusted.parent))

    with pytest.raises(SpecError, match="read the code first"):
        load(trusted.parent / "link.toml")


def test_a_campaign_gets_no_code_from_a_folder_that_is_trusted_elsewhere(tmp_path, monkeypatch):
    trusted = written(tmp_path / "trusted")
    monkeypatch.setenv(TRUSTED_FOLDERS, str(trusted.parent))
    (tmp_path / "c.toml").write_text(f'[campaign]\nname = "c"\nseeds = "1-2"\nscenario = "{trusted}"\n')

    with pytest.raises(SpecError, match="read the code first"):
        load_campaign(tmp_path / "c.toml")
    assert load_campaign(tmp_path / "c.toml", allow_code=True).variants


def every_option_that_names_code():
    """By the rules of the options: what comes tomorrow is here."""
    classes = [Config]
    for config in classes:
        classes += config.__subclasses__()
    every = ((name, field) for config in classes for name, field in options(config).items())
    return list(dict.fromkeys(name for name, field in every if isinstance(field.metadata.get("rule"), FunctionRule)))


def test_each_field_whose_type_names_code_has_the_rule_of_code():
    named = {
        f"{kind.__module__}.{kind.__qualname__}.{field.name}": field.metadata.get("rule")
        for kind in classes_of_scenarios()
        for field in attrs.fields(kind)
        if any(word in str(field.type) for word in ("FunctionName", "Callable", "EntryPoint"))
    }

    assert named
    assert [name for name, rule in named.items() if not isinstance(rule, FunctionRule)] == []


def classes_of_scenarios():
    """All classes of attrs that hold what a scenario file says."""
    modules = ("emulator.spec.", "faults.", "nodes.config.", "nodes.client.producer.")
    return [
        each
        for module in sorted(sys.modules)
        if module.startswith(modules)
        for each in vars(sys.modules[module]).values()
        if isinstance(each, type) and attrs.has(each) and each.__module__ == module and not issubclass(each, Rule)
    ]


@pytest.mark.parametrize("option", every_option_that_names_code())
def test_code_is_found_in_each_option_that_can_name_it_wherever_it_stands(option):
    by_restart = f'[[fault]]\ndo = "restart c1 with {{{option} = os:system}}"\nat_s = 1\n'
    by_nemesis = f'[[nemesis]]\ndo = "restart random consumers with {{{option} = os:system}}"\nevery_s = 9\nmin_s = 1\n'
    places = {
        with_strategy("os:system", option): f"consumer[0].options.{option}",
        HEAD + 'names = ["c1"]\n' + by_restart: f"fault[0].options.{option}",
        HEAD + by_nemesis: f"nemesis[0].options.{option}",
    }
    for text, key in places.items():
        scenario = from_dict(tomllib.loads(text))
        assert [(item.key, item.name) for item in named_code(scenario)] == [(key, "os:system")]
        with pytest.raises(SpecError, match="os:system, which runs only with --allow-code") as refused:
            loads(text, "x")
        assert key in only_mistake(refused.value)


def test_an_entry_point_that_two_packages_have_is_refused_and_those_that_exist_are_named(package):
    package("own", "", "[rmqemu.strategies]\nmine = own_package:one\n")
    package("other", "", "[rmqemu.strategies]\nmine = own_package:two\nyours = own_package:two\n")

    with pytest.raises(SpecError, match=r"several packages have an entry point mine of .*: own_package:one, "):
        read("mine")
    with pytest.raises(SpecError, match=r"no entry point his of rmqemu.strategies; there are mine, yours"):
        read("his")


def test_an_entry_point_is_code_too(package):
    package("own", "def allocate(*_):\n    return []\n", "[rmqemu.strategies]\nmine = own_package:allocate\n")

    with pytest.raises(SpecError, match="names code, mine, which runs only with --allow-code"):
        read("mine", code=UserCode())


@each_case("name", ["BEST", "a:b:c", "a.b", "1:f", "a: f", ":f", "a:"])
def test_what_is_no_name_of_a_function_is_refused_with_all_strategies(name):
    expected = (
        "expected one of AVG, AVG_BY_CIRCLE, .*, a function of your own as module:function, or the name of an"
        " entry point of rmqemu.strategies, not"
    )
    if name == "a.b":
        expected = "no entry point a.b"
    with pytest.raises(SpecError, match=expected):
        read(name)


def test_the_scenario_of_an_old_run_is_read_without_its_functions():
    tables = to_dict(read(OWN + "turned"))
    tables["consumer"][0]["options"]["allocateMessageQueueStrategy"] = "gone.for:ever"

    scenario = from_dict(tables)

    assert scenario.consumers[0].config.allocate_message_queue_strategy == "gone.for:ever"
    # But it cannot be run.
    with pytest.raises(SpecError, match=r"names code, gone.for:ever, which runs only with --allow-code"):
        Cluster(None, scenario)
    with pytest.raises(SpecError, match=r"gone/for.py next to the file cannot be read"):
        Cluster(None, attrs.evolve(scenario, code=OWN_CODE))


def test_a_scenario_made_in_python_is_refused_before_anything_starts():
    scenario = a_scenario(consumers=consumer_group(1, ConsumerConfig(allocate_message_queue_strategy="gone.for:ever")))

    with pytest.raises(SpecError, match=r"consumer\[0\].options.allocateMessageQueueStrategy: names code"):
        Cluster(None, scenario)


def test_a_campaign_is_refused_if_a_variant_names_a_function_that_is_not_there(tmp_path):
    (tmp_path / "c.toml").write_text(
        HEAD + '[campaign]\nname = "c"\nseeds = "1-2"\n[[variant]]\nname = "own"\n'
        'options.consumer = { allocateMessageQueueStrategy = "gone.for:ever" }\n'
    )

    with pytest.raises(SpecError, match=r"names code, gone.for:ever"):
        load_campaign(tmp_path / "c.toml")
    with pytest.raises(SpecError, match=r"gone/for.py next to the file cannot be read"):
        load_campaign(tmp_path / "c.toml", allow_code=True)


@pytest.mark.parametrize("strategy", ["STICKY", "PR2169"])
def test_a_strategy_with_a_memory_is_refused_for_clients(strategy):
    with pytest.raises(SpecError) as refused:
        loads(with_strategy(strategy), "x")
    assert only_mistake(refused.value) == (
        f"{KEY}allocateMessageQueueStrategy: expected clientRebalance = false with it: "
        f"{strategy} is not supported by clients"
    )

    options = f'options = {{ allocateMessageQueueStrategy = "{strategy}", clientRebalance = false }}\n'
    assert loads(HEAD + options, "x").consumers[0].config.allocate_message_queue_strategy == strategy


@each_case("inner", ["STICKY", "PR2169", "KAFKA_ROUND_ROBIN", "MACHINE_ROOM_NEARBY"])
def test_within_a_room_only_a_strategy_that_can_allocate_one_is_taken(inner):
    expected = "innerAllocateStrategy: expected a strategy that can allocate one room: AVG, .*CONSISTENT_HASH, not"
    with pytest.raises(SpecError, match=f"{expected} {inner}"):
        loads(with_strategy(inner, "innerAllocateStrategy"), "x")
