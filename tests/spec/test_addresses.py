"""Addresses follow from the scenario alone."""

from emulator.spec import BrokerSpec, ConsumerGroupSpec, Scenario, TopicSpec
from emulator.spec.model.addresses import addresses


def test_every_role_has_subnets_of_its_own_that_overflow_into_the_next():
    names = tuple(f"c{number}" for number in range(600))
    scenario = Scenario(
        name="wide",
        run_for_ms=1,
        brokers=(BrokerSpec("broker-a"),),
        topics=(TopicSpec("t", ("broker-a",), 1),),
        consumers=(ConsumerGroupSpec("g", names, ("t",)),),
    )

    ips = addresses(scenario)

    assert [ips[name] for name in ("ns-1", "ns-2", "broker-a", "c0", "c249", "c250", "c599")] == [
        "127.1.1.1",
        "127.1.1.2",
        "127.1.2.1",
        "127.1.10.1",
        "127.1.10.250",
        "127.1.11.1",
        "127.1.12.100",
    ]
    assert len(dict.fromkeys(ips.values())) == len(ips) == 603
