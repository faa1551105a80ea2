"""`getBrokerConfig` prints every field that RocketMQ's classes have, and what the broker's file has besides."""

import pytest

from emulator.spec import SpecError, loads, to_dict
from emulator.spec.reading.file import from_dict
from emulator.spec.rocketmq.known_options import defaults_not_emulated
from emulator.testing import execute
from nodes.config import BrokerConfig, options
from nodes.protocol.codes import RequestCode
from support.asking_guest import a_guest
from support.every_case import each_case

SCENARIO = """
[scenario]
name = "printed"
run_for_s = 10
[[broker]]
name = "a"
container = {container}
options = {{ fileReservedTime = 12 }}
not_emulated = {{ storeType = "defaultRocksDB", noSuchOption = "x=y" }}
[[broker]]
name = "a"
id = 1
"""


def printed(scenario, node):
    answers = []

    async def script(stage):
        guest = await a_guest(stage)
        await stage.at_ms(5_000)
        answer = await guest.ask(node, RequestCode.GET_BROKER_CONFIG)
        answers.append((answer.body or b"").decode())

    execute(scenario, script)
    return dict(line.split("=", 1) for line in answers[0].splitlines())


@pytest.fixture
def scenario():
    return loads(SCENARIO.replace("container = {container}\n", "").format(), "printed.toml")


def test_options_and_other_fields_and_unknown_names_are_printed_in_order(scenario):
    found = printed(scenario, "a")

    assert found["fileReservedTime"] == "12"
    assert found["storeType"] == "defaultRocksDB"
    assert found["noSuchOption"] == "x=y"
    assert found["sendThreadPoolQueueCapacity"] == "10000"
    assert found["haListenPort"] == "10912"
    assert list(found) == sorted(found)


def test_no_default_stands_in_the_way_of_an_emulated_option():
    assert len(defaults_not_emulated()) > 100
    assert [name for name in defaults_not_emulated() if name in options(BrokerConfig)] == []


def test_a_slave_prints_its_role_and_the_memory_that_it_has_for_its_log(scenario):
    master, slave = printed(scenario, "a"), printed(scenario, "a-s1")

    assert (master["brokerRole"], slave["brokerRole"]) == ("ASYNC_MASTER", "SLAVE")
    assert (master["accessMessageInMemoryMaxRatio"], slave["accessMessageInMemoryMaxRatio"]) == ("40", "30")
    assert (slave["brokerId"], slave["storeType"]) == ("1", "default")


def test_a_broker_in_a_container_prints_them_too():
    found = printed(loads(SCENARIO.format(container='"c0"'), "printed.toml"), "a")

    assert (found["storeType"], found["fileReservedTime"]) == ("defaultRocksDB", "12")


def test_the_bits_of_filters_are_computed_as_at_the_start_of_a_broker(scenario):
    assert printed(scenario, "a")["bitMapLengthConsumeQueueExt"] == "112"


@pytest.mark.parametrize("number", ["0", "x", "-1", "9" * 200])
def test_a_text_that_is_no_number_of_consumers_is_printed_as_it_is(number):
    text = SCENARIO.replace("container = {container}\n", "").format()
    scenario = loads(text.replace("noSuchOption", "expectConsumerNumUseFilter").replace("x=y", number), "printed.toml")

    assert printed(scenario, "a")["expectConsumerNumUseFilter"] == number


def test_texts_that_are_not_emulated_are_written_with_the_scenario(scenario):
    written = to_dict(scenario)

    assert written["broker"][0]["not_emulated"] == {"storeType": "defaultRocksDB", "noSuchOption": "x=y"}
    assert "not_emulated" not in written["broker"][1]
    assert from_dict(written) == scenario


@each_case(
    ("given", "problem"),
    [
        ('fileReservedTime = "1"', "broker[0].not_emulated.fileReservedTime: expected in options: it is emulated"),
        ('secretKey = "canary"', "broker[0].not_emulated.secretKey: expected none: its value is a secret"),
        ('"a\\u001b" = "x"', "broker[0].not_emulated.a\\x1b: expected the name of an option"),
        ('password = "canary", storeType = 3', "broker[0].not_emulated: expected a table of texts"),
    ],
)
def test_what_belongs_elsewhere_is_refused(given, problem):
    text = f'[scenario]\nname = "x"\nrun_for_s = 1\n[[broker]]\nname = "a"\nnot_emulated = {{ {given} }}\n'

    with pytest.raises(SpecError) as caught:
        loads(text, "wrong.toml")

    assert [f"{item.key}: {item.problem}" for item in caught.value.all] == [problem]
    assert "canary" not in str(caught.value)
