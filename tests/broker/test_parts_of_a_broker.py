"""What a broker is made of: parts in order, a small core, and the tables of each family."""

from pathlib import Path

import attrs
import pytest

import nodes.broker
from emulator.testing.worlds import add_host, execute_world, process_of
from nodes.broker.broker import Broker
from nodes.broker.broker_setup import BrokerSetup
from nodes.broker.context import BrokerContext
from nodes.config import BrokerConfig

FOLDER = Path(nodes.broker.__file__).parent
CONTROLLED = BrokerConfig(enable_controller_mode=True)
WITHOUT_TIMER = BrokerConfig(timer_wheel_enable=False)


def broker_of(world, config):
    host = process_of(add_host(world, 1, "b0"))
    return Broker(host, config, BrokerSetup("cluster", "bk", 0, (), controllers=("127.1.1.9:9878",)))


@pytest.mark.parametrize("config", [BrokerConfig(), CONTROLLED, WITHOUT_TIMER])
def test_each_part_that_starts_stops_once(config):
    async def main(world):
        parts = broker_of(world, config).parts
        return [id(part) for part in parts.in_order], [id(part) for part in parts.in_order_of_stop]

    started, stopped = execute_world(main).result

    assert len(set(started)) == len(started)
    assert sorted(started) == sorted(stopped)


def test_ports_open_after_the_ha_service_starts_and_close_before_held_pops_are_answered():
    async def main(world):
        parts = broker_of(world, BrokerConfig()).parts
        return [[type(part).__name__ for part in order] for order in (parts.in_order, parts.in_order_of_stop)]

    started, stopped = execute_world(main).result

    assert started.index("HaService") < started.index("BrokerPorts") < started.index("NameserverRegistration")
    assert stopped[:5] == ["TimerMessageStore", "NameserverRegistration", "BrokerPorts", "Pops", "HaService"]


def test_the_core_that_all_parts_take_has_at_most_a_dozen_fields():
    assert len(attrs.fields(BrokerContext)) <= 12


def test_only_what_makes_a_broker_takes_the_tables_of_all_families():
    found = sorted(path.name for path in FOLDER.rglob("*.py") if "BrokerTables" in path.read_text())

    assert found == ["assembly.py", "broker_setup.py"]
