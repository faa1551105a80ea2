"""Small scenarios, in one call."""

from collections.abc import Mapping

from emulator.spec.model import (
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

    Nodes are called `ns-1`, `broker-a`, `broker-a-s1`, `c1` and `p1`; options that
    are not given are those of RocketMQ as shipped.

    Args:
        run_for_ms: how long the scenario itself lasts, where it is run as a whole.
        seed: of everything that is left to chance.
        delay_ms: latency of every link, one way.
        jitter_ms: upper bound of a uniform delay on top.
        spread_ms: within how long the clients start, at instants drawn from the seed; 0: all at once.
        nameservers: how many.
        nameserver: options of each nameserver.
        brokers: names of broker groups, or broker name -> options of its master and slaves.
        broker: options of all brokers that are given by name only.
        slaves: how many each broker name has; each starts half a second after the one before.
        topics: instead of `orders`.
        queues: of `orders` on each master.
        consumers: how many consumers `c1`, `c2`, ... the group has, or whole groups.
        consumer: options of each consumer.
        consume_ms: how long a listener takes for a message.
        rate_per_s: messages per second that `p1` sends; 0: there is no producer.
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
