"""A push consumer in a pod of a StatefulSet: its health endpoint, and where it learns how many replicas there are."""

from nodes.client.consumer.consumer_setup import ConsumerSetup
from nodes.client.consumer.push_consumer import PushConsumer, instance_name
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.rebalance.replica_count import ReplicaCount
from nodes.config import AllocateStrategy
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_statefulset import ProbePath, ProbeRequestHeader
from nodes.protocol.registry import decode_header
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import success
from nodes.values import frozen


@frozen
class PodEnvironment:
    """What the manifest gives a pod in environment variables."""

    statefulset: str
    replicas_address: str
    """`ip:port` of the API server, or of the scaler that stands before it."""
    is_notified: bool
    """Whether it is a scaler."""
    port: int
    """Where the pod answers probes."""


class ConsumerPod:
    """A push consumer that runs as a pod; implements `nodes.host.Node`.

    With the strategy ORDINAL it asks no broker for the members of its group: it knows its ordinal from its name, and
    learns the number of replicas from the API server or a scaler.
    """

    def __init__(self, host: Host, setup: ConsumerSetup, environment: PodEnvironment) -> None:
        config = setup.config
        self._host = host
        self._port = environment.port
        instance = ClientInstance(host, config, setup.nameservers, instance_name(config, host))
        by_ordinal = config.allocate_message_queue_strategy is AllocateStrategy.ORDINAL
        self._replicas = (
            ReplicaCount(
                instance,
                config,
                setup.group,
                environment.statefulset,
                environment.replicas_address,
                is_notified=environment.is_notified,
            )
            if by_ordinal
            else None
        )
        self.consumer = PushConsumer(host, setup, instance=instance, replicas=self._replicas)
        self._health = RpcServer(host)
        self._health.serve({RequestCode.PROBE: self._probe})

    async def main(self) -> None:
        """Answer probes, learn the replicas, and consume."""
        self._host.listen(self._port, self._health)
        if self._replicas is not None:
            self._replicas.start()
        await self.consumer.main()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self.consumer.request_shutdown()

    def _probe(self, _channel: Channel, request: Command) -> Command:
        path = decode_header(ProbeRequestHeader, request.ext_fields).path
        if path == ProbePath.READINESS and not self.consumer.is_started:
            return request.answer(ResponseCode.SERVICE_NOT_AVAILABLE, "the consumer has not started")
        return success(request)
