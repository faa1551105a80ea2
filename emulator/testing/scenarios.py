"""Small scenarios for tests."""

from emulator.spec.model.networks import Network
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Scenario,
    TopicSpec,
)
from nodes.config import BrokerConfig, ConsumerConfig

GROUP, TOPIC = "g", "orders"
RETRY = f"%RETRY%{GROUP}"
_BROKER = "broker-a"
_NETWORK = Network(delay_ms=1)


def broker_groups(*names: str, config: BrokerConfig | None = None, slaves: int = 0) -> tuple[BrokerSpec, ...]:
    """Broker groups for `a_scenario`, with the same options.

    Args:
        names: brokerName of each; none: `broker-a` alone.
        config: options of masters and slaves.
        slaves: of each group, `broker-a-s1`, ...; each starts half a second after the previous one.
    """
    return tuple(
        BrokerSpec(name, i, config=config or BrokerConfig(), start_after_ms=500 * i)
        for name in names or (_BROKER,)
        for i in range(slaves + 1)
    )


def consumer_group(
    count: int, config: ConsumerConfig | None = None, *, consume_ms: int = 0, topics: tuple[str, ...] = (TOPIC,)
) -> tuple[ConsumerGroupSpec, ...]:
    """The group `g` for `a_scenario`, with the consumers `c1`, `c2`, ...; no group if there are none.

    Args:
        count: number of consumers.
        config: options of each consumer.
        consume_ms: time of a listener for a message.
        topics: that it subscribes to.
    """
    names = tuple(f"c{i}" for i in range(1, count + 1))
    return (ConsumerGroupSpec(GROUP, names, topics, config or ConsumerConfig(), consume_ms),) if names else ()


def a_scenario(
    *,
    run_for_ms: int = 3_600_000,
    seed: int = 1,
    spread_ms: int = 0,
    network: Network = _NETWORK,
    nameservers: int | tuple[NameserverSpec, ...] = 1,
    brokers: tuple[str, ...] | tuple[BrokerSpec, ...] = (_BROKER,),
    topics: tuple[TopicSpec, ...] | None = None,
    queues: int = 4,
    consumers: int | tuple[ConsumerGroupSpec, ...] = 0,
    rate_per_s: int = 0,
) -> Scenario:
    """A small cluster: the topic `orders` on all brokers, a group `g` that consumes it, a producer if it has a rate.

    Nodes are named `ns-1`, `broker-a`, `broker-a-s1`, `c1` and `p1`; options have RocketMQ's defaults. Each part is
    given as its specification, or as what most tests need of it: a number or a name.

    Args:
        run_for_ms: length of the scenario, where it is run as a whole.
        seed: of all random streams.
        spread_ms: the clients start within this time, at instants drawn from the seed; 0: all at once.
        network: latency and jitter of every link, 1 ms one way unless given.
        nameservers: how many, or each of them.
        brokers: names of broker groups without slaves, or the brokers, as `broker_groups` makes them.
        topics: replace `orders`.
        queues: queues of `orders` on each master.
        consumers: number of consumers of all topics, or groups, as `consumer_group` makes them.
        rate_per_s: messages per second of `p1`; 0: no producer.
    """
    if isinstance(nameservers, int):
        nameservers = tuple(NameserverSpec(f"ns-{i}") for i in range(1, nameservers + 1))
    specs = tuple(
        spec for item in brokers for spec in ((item,) if isinstance(item, BrokerSpec) else broker_groups(item))
    )
    if topics is None:
        topics = (TopicSpec(TOPIC, tuple(dict.fromkeys(spec.broker_name for spec in specs)), queues),)
    if isinstance(consumers, int):
        consumers = consumer_group(consumers, topics=tuple(topic.name for topic in topics))
    return Scenario(
        name="test",
        seed=seed,
        run_for_ms=run_for_ms,
        start_spread_ms=spread_ms,
        network=network,
        nameservers=nameservers,
        brokers=specs,
        topics=topics,
        consumers=consumers,
        producers=(ProducerSpec("p1", "pg", TOPIC, rate_per_s),) if rate_per_s else (),
    )
