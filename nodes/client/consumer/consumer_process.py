"""A process with consumers of several groups."""

import trio

from nodes.client.consumer.consumer_setup import ConsumerSetup
from nodes.client.consumer.push_consumer import PushConsumer, instance_name
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.producer.message_traces import TraceProducers
from nodes.host import Host


class ConsumerProcess:
    """Consumers that share a process.

    Consumers with the same instance name are one client: one id, one set of connections, one thread for routes,
    heartbeats and commits, one for rebalance. As shipped every consumer has its own name, so they share only the
    process; broadcasting consumers and those with a configured name may share more. Then the client options of the
    first one apply.

    Mirrors:
        `org.apache.rocketmq.client.impl.MQClientManager`, under an application that starts one consumer after the
        other.
    """

    def __init__(self, host: Host, consumers: tuple[ConsumerSetup, ...]) -> None:
        instances: dict[str, ClientInstance] = {}
        trace_producers = TraceProducers(host)
        self.consumers: dict[str, PushConsumer] = {}
        """By group."""
        for ordinal, consumer in enumerate(consumers):
            name = instance_name(consumer.config, host, ordinal)
            if name not in instances:
                instances[name] = ClientInstance(host, consumer.config, consumer.nameservers, name)
            self.consumers[consumer.group] = PushConsumer(
                host, consumer, instance=instances[name], trace_producers=trace_producers
            )
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Start one after the other; if one of them fails to start, the process ends."""
        for consumer in self.consumers.values():
            if not await consumer.start():
                return
            consumer.on_ready()
        await self._stopping.wait()
        for consumer in self.consumers.values():
            await consumer.shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()
