"""Controllers in a scenario file: how many, with which options, and what is said of odd numbers of them."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.addresses import addresses
from emulator.spec.checks import check
from nodes.config import ControllerConfig

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
    (one,) = scenario("[controller]\ncount = 1\noptions = { enableElectUncleanMaster = true }\n").controllers
    assert one.config == ControllerConfig(enable_elect_unclean_master=True)


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
    assert any(one.startswith(line) for one in refused.value.lines), refused.value.lines


@pytest.mark.parametrize(("count", "warned"), [(1, False), (2, True), (3, False), (4, True)])
def test_an_even_number_is_warned_of(count, warned):
    found = [one.name for one in check(scenario(f"[controller]\ncount = {count}\n"))]
    assert ("even-number-of-controllers" in found) == warned
