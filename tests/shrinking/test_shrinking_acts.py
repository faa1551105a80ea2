"""Shrinking a scenario with acts of administrators, with a model of what fails."""

from emulator.shrinking import shrink
from emulator.spec import Scenario, loads

LARGE = loads(
    """
[scenario]
name = "large"
seed = 7
run_for_s = 120
[[nameserver]]
name = "ns-1"
[[nameserver]]
name = "ns-2"
[address_server]
[[domain]]
name = "nameservers.example"
nodes = ["ns-1", "ns-2"]
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1"]
topics = ["orders"]
[[admin]]
id = "grow"
do = "update-topic orders queues 12 read 9 write 3 order true attributes +reserve.time=60 on broker-a"
at_s = 60
[[admin]]
id = "options"
do = "update-broker-config brokerPermission=4 maxMessageSize=9 slaves on broker-b"
at_s = 70
[[admin]]
id = "list"
do = "update-domain nameservers.example ns-1 ns-2"
at_s = 80
[[admin]]
id = "server"
do = "update-address-server ns-2 ns-1"
at_s = 90
""",
    "large.toml",
)


def lines(scenario: Scenario) -> list[str]:
    return [timed.describe() for timed in scenario.acts]


def test_an_act_that_matters_stays_happens_earlier_and_has_the_words_that_matter():
    def fails(scenario: Scenario) -> bool:
        """The topic shrinks to fewer write queues than it has read queues, 20 s after the start at the earliest."""
        found = [timed for timed in scenario.acts if timed.id == "grow" and timed.at_ms >= 20_000]
        return any(timed.act.write is not None and timed.act.read == 9 for timed in found)

    found = shrink(LARGE, fails)
    assert found.is_minimal
    (timed,) = found.scenario.acts
    assert timed.act.line() == "update-topic orders queues 8 read 9 write 1"
    assert 20_000 <= timed.at_ms < 25_000
    assert any(line.startswith("3 of 4 [[admin]]: options, list, server") for line in found.removed)
    assert found.scenario.address_server is None
    assert found.scenario.domains == ()


def test_options_and_lists_of_an_act_become_shorter():
    def fails(scenario: Scenario) -> bool:
        acts = {timed.id: timed.act for timed in scenario.acts}
        has_option = "options" in acts and acts["options"].options.get("brokerPermission") == "4"
        return has_option and "list" in acts and "ns-2" in acts["list"].nodes

    found = shrink(LARGE, fails)
    assert [line.partition(": ")[2] for line in lines(found.scenario)] == [
        "update-broker-config brokerPermission=4",
        "update-domain nameservers.example ns-2",
    ]
    assert [spec.name for spec in found.scenario.brokers] == ["broker-a"]
