"""Clusters whose brokers live in containers, and what a nameserver knew of them."""

from typing import Any

from emulator.spec.model.scenario import BrokerSpec, NameserverSpec, Scenario, TopicSpec
from emulator.testing import Caller, a_scenario
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_container import AddBrokerRequestHeader, RemoveBrokerRequestHeader
from support.grouped import ACTING, acting

CLUSTER = "DefaultCluster"


def broker(name: str, broker_id: int, container: str | None, place: int = 0, **options: Any) -> BrokerSpec:
    """A broker of a group of two; `place` is its position in the container, which decides its port."""
    config = acting(**{"total_replicas": 2, "listen_port": 10_911 + 10 * place, **options})
    return BrokerSpec(name, broker_id, config=config, container=container)


def crossed(**options: Any) -> tuple[BrokerSpec, ...]:
    """Two containers, each with the master of one group and the slave of the other."""
    return (
        broker("ba", 0, "box0", 0, **options),
        broker("bb", 1, "box0", 1, **options),
        broker("bb", 0, "box1", 0, **options),
        broker("ba", 1, "box1", 1, **options),
    )


def in_containers(*brokers: BrokerSpec, topics: tuple[TopicSpec, ...] | None = None, **given: Any) -> Scenario:
    """A scenario with these brokers, which all have the topic `orders` unless topics are given."""
    names = tuple(dict.fromkeys(spec.broker_name for spec in brokers))
    topics = (TopicSpec("orders", names, 4),) if topics is None else topics
    return a_scenario(nameservers=(NameserverSpec("ns-1", ACTING),), brokers=brokers, topics=topics, **given)


async def add(probe: Caller, container: str, node: str) -> Command:
    """Ask a container to add a broker."""
    header = AddBrokerRequestHeader(f"conf/{node}.conf" if node else "")
    return await probe.ask(container, RequestCode.ADD_BROKER, header)


async def remove(probe: Caller, container: str, name: str, broker_id: int) -> Command:
    """Ask a container to remove a broker."""
    header = RemoveBrokerRequestHeader(CLUSTER, name, broker_id)
    return await probe.ask(container, RequestCode.REMOVE_BROKER, header)
