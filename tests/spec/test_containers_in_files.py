"""`container` in a scenario file: addresses and ports of its brokers, there and back, and one line for each mistake."""

import pytest

from emulator.spec import SpecError, from_dict, loads, to_dict
from emulator.spec.model.addresses import addresses
from support.every_case import each_case
from support.mistakes import only_mistake

HEAD = '[scenario]\nname = "s"\nrun_for_s = 10\n'
TWO = """
[[broker]]
name = "ba"
container = "box"
[[broker]]
name = "bb"
id = 1
container = "box"
[[broker]]
name = "bb"
"""


def mistake(text: str) -> str:
    with pytest.raises(SpecError) as error:
        loads(HEAD + text, "s.toml")
    reported = only_mistake(error.value)
    assert "\n" not in reported
    return reported.removeprefix("s.toml: ")


def test_the_brokers_of_a_container_share_its_address_and_have_ports_of_their_own():
    scenario = loads(HEAD + TWO, "s.toml")

    assert {name: tuple(spec.name for spec in specs) for name, specs in scenario.containers().items()} == {
        "box": ("ba", "bb-s1")
    }
    assert [spec.config.listen_port for spec in scenario.brokers] == [10_911, 10_921, 10_911]
    found = addresses(scenario)
    assert found["box"] == found["ba"] == found["bb-s1"] != found["bb"]
    assert "box" in scenario.node_names()


def test_what_is_written_is_read_again_as_it_was():
    scenario = loads(HEAD + TWO, "s.toml")
    assert from_dict(to_dict(scenario)) == scenario


@each_case(
    ("text", "reported"),
    [
        (
            TWO.replace('id = 1\ncontainer = "box"', 'id = 1\ncontainer = "box"\noptions = { listenPort = 10911 }'),
            "broker[1].options.listenPort: expected ports of its own on a shared address, 10911 belongs to ba",
        ),
        (
            TWO.replace('name = "ba"', 'name = "ba"\noptions = { listenPort = 10811 }'),
            "broker[0].options.listenPort: expected ports of its own on a shared address, 10811 belongs",
        ),
        (
            TWO.replace('name = "ba"', 'name = "ba"\nreplicas = 2'),
            "broker[0].container: expected only one of container and replicas",
        ),
        (
            TWO + 'container = "boxx"\naddress_of = "ba"\n',
            "broker[2].address_of: expected none: it has the address of its container",
        ),
        (
            TWO.replace('"box"', '"bb"'),
            'broker[0].container: expected a name of its own, "bb" is already at broker[2].name',
        ),
        (TWO.replace('"box"', '"b x"', 1), "broker[0].container: expected"),
        (
            TWO + '[[fault]]\ndo = "restart box with {slaveReadEnable = true}"\nat_s = 1\n',
            "fault[0].do: expected none for box: it has no options",
        ),
    ],
)
def test_a_mistake_is_reported_in_one_line_with_its_key(text, reported):
    assert mistake(text).startswith(reported)
