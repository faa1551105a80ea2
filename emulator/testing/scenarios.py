"""Small scenarios for tests."""

from collections.abc import Mapping

from emulator.spec.model.scenario import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Network,
    ProducerSpec,
    Scenario,
    TopicSpec,
)
from nodes.config import BrokerConfig, ConsumerConfig, NameserverConfig

GROUP, TOPIC = "g", "orders"
RETRY = f"%RETRY%{GROUP}"


def a_scenario(
    *,
    run_for_ms: int = 3_600_000,
    seed: int = 1,
    delay_ms: int = 1,
    jitter_ms: int = 0,
    spread_ms: int = 0,
    nameservers: int = 1,
    nameserver: NameserverConfig | None = None,
    brokers: tuple[str, ...] | Mapping[str, BrokerConfig] = ("broker-a",),
    broker: BrokerConfig | None = None,
    slaves: int = 0,
    topics: tuple[TopicSpec, ...] | None = None,
    queues: int = 4,
    consumers: int | tuple[ConsumerGroupSpec, ...] = 0,
    consumer: ConsumerConfig | None = None,
    consume_ms: int = 0,
    rate_per_s: int = 0,
) -> Scenario:
    """A small cluster: the topic `orders` on all brokers, a group `g` that consumes it, a producer if it has a rate.

    Nodes are named `ns-1`, `broker-a`, `broker-a-s1`, `c1` and `p1`; options have
    RocketMQ's defaults.

    Args:
        run_for_ms: length of the scenario, where it is run as a whole.
        seed: of all random streams.
        delay_ms: latency of every link, one way.
        jitter_ms: upper bound of a uniform delay on top.
        spread_ms: the clients start within this time, at instants drawn from the seed; 0: all at once.
        nameservers: number of nameservers.
        nameserver: options of each nameserver.
        brokers: names of broker groups, or a mapping brokerName -> options of its master and slaves.
        broker: options of all brokers that are given by name only.
        slaves: slaves of each broker group; each starts half a second after the previous one.
        topics: replace `orders`.
        queues: queues of `orders` on each master.
        consumers: number of consumers `c1`, `c2`, ... of the group, or whole groups.
        consumer: options of each consumer.
        consume_ms: time of a listener for a message.
        rate_per_s: messages per second of `p1`; 0: no producer.
    """
    options = brokers if isinstance(brokers, Mapping) else dict.fromkeys(brokers, broker or BrokerConfig())
    if topics is None:
        topics = (TopicSpec(TOPIC, tuple(options), queues),)
    if isinstance(consumers, int):
        names = tuple(f"c{i}" for i in range(1, consumers + 1))
        subscribed = tuple(topic.name for topic in topics)
        group = ConsumerGroupSpec(GROUP, names, subscribed, consumer or ConsumerConfig(), consume_ms)
        consumers = (group,) if names else ()
    return Scenario(
        name="test",
        seed=seed,
        run_for_ms=run_for_ms,
        start_spread_ms=spread_ms,
        network=Network(delay_ms, jitter_ms),
        nameservers=tuple(
            NameserverSpec(f"ns-{i}", nameserver or NameserverConfig()) for i in range(1, nameservers + 1)
        ),
        brokers=tuple(
            BrokerSpec(name, i, config=config, start_after_ms=500 * i)
            for name, config in options.items()
            for i in range(slaves + 1)
        ),
        topics=topics,
        consumers=consumers,
        producers=(ProducerSpec("p1", "pg", TOPIC, rate_per_s),) if rate_per_s else (),
    )
