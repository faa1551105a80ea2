"""One process that consumes for several groups."""

from collections.abc import Mapping

import attrs
import trio

from nodes.client.consumer import PushConsumer, instance_name
from nodes.client.instance import ClientInstance
from nodes.config import ConsumerConfig
from nodes.host import Host
from nodes.protocol.model import NO_TEXTS


@attrs.frozen
class ConsumerOfProcess:
    """One consumer of a process, before it exists."""

    group: str
    topics: tuple[str, ...]
    config: ConsumerConfig
    consume_ms: int = 0
    fail_times: int = 0
    expressions: Mapping[str, str] = NO_TEXTS


class ConsumerProcess:
    """Consumers that live and die together.

    Those that go by the same instance name are one client: one id, one set of connections, one thread each for
    routes, heartbeats and commits, and for rebalance. As shipped every consumer makes up a name of its own, so they
    share nothing but the process; broadcasting consumers and those that were given a name do. Then the options of
    a client in general are those of whoever came first.

    Mirrors:
        `org.apache.rocketmq.client.impl.MQClientManager`, under an application that starts one consumer after the
        other.
    """

    def __init__(self, host: Host, consumers: tuple[ConsumerOfProcess, ...], nameservers: tuple[str, ...]) -> None:
        instances: dict[str, ClientInstance] = {}
        self.consumers: dict[str, PushConsumer] = {}
        """By group."""
        for ordinal, one in enumerate(consumers):
            name = instance_name(one.config, host, ordinal)
            if name not in instances:
                instances[name] = ClientInstance(host, one.config, nameservers, name)
            self.consumers[one.group] = PushConsumer(
                host,
                one.config,
                group=one.group,
                topics=one.topics,
                nameservers=nameservers,
                consume_ms=one.consume_ms,
                fail_times=one.fail_times,
                instance=instances[name],
                expressions=one.expressions,
            )
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Start one after the other; if one of them does not come up, the application gives up."""
        for consumer in self.consumers.values():
            if not await consumer.start():
                return
        await self._stopping.wait()
        for consumer in self.consumers.values():
            await consumer.shutdown()

    def request_shutdown(self) -> None:
        """Begin the orderly stop."""
        self._stopping.set()
