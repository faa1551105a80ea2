"""The number of replicas of a consumer's StatefulSet, in place of the list of members that brokers have."""

from collections.abc import Iterable

from nodes.allocation.ordinal import pod_name
from nodes.beliefs import Belief, BeliefKind
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.rebalance.roles import FoundAssignment, FoundConsumers, Requested
from nodes.config import ConsumerConfig
from nodes.host import Channel
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_statefulset import ScaleHeader, StatefulSetHeader
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.typed import invoke, succeeded
from nodes.threads import WakeUp


class ReplicaCount:
    """Learns the desired replicas, and names the pods that a rebalance pass allocates queues among.

    The API server is asked again and again; a scaler is asked once for each connection, over which it notifies. Until
    the first answer no queue is allocated. Later the last known number stays, however old it is. A new number starts a
    rebalance pass. Implements `nodes.client.rebalance.roles.AssignerRequests`.

    Args:
        instance: whose routes are refreshed, and whose rebalance thread is woken.
        config: how often is asked.
        group: the consumer group, for beliefs.
        statefulset: name of the StatefulSet.
        address: `ip:port` of the API server or the scaler.
        is_notified: whether it is a scaler.

    Emits:
        REPLICAS whenever the number changes.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        group: str,
        statefulset: str,
        address: str,
        *,
        is_notified: bool = False,
    ) -> None:
        self._instance = instance
        self._host = instance.host
        self._config = config
        self._group = group
        self._statefulset = statefulset
        self._address = address
        self._is_notified = is_notified
        self._disconnected = WakeUp(self._host)
        # Kubernetes' client shares no connection with RocketMQ's.
        self._client = RpcClient(
            self._host,
            config,
            on_request=self._on_request,
            on_channel_closed=lambda _: self._disconnected.wake(),
        )
        self._count: int | None = None

    def start(self) -> None:
        """Start to poll."""
        self._host.start_soon(self._poll, name="readReplicas")

    async def _poll(self) -> None:
        while True:
            self._host.begin_cause("readReplicas")
            count = await self._read()
            if count is not None:
                self._take(count)
                if self._is_notified:
                    await self._disconnected.wait()
            await self._host.sleep_ms(self._config.replicas_poll_interval_ms)

    def _on_request(self, _channel: Channel, command: Command) -> None:
        if command.code == RequestCode.REPLICAS_CHANGED:
            self._take(decode_header(ScaleHeader, command.ext_fields).spec_replicas)

    def _take(self, count: int) -> None:
        if count != self._count:
            self._count = count
            self._host.record(Belief(BeliefKind.REPLICAS, self._group, count, self._address))
            self._instance.rebalance_immediately()

    async def _read(self) -> int | None:
        """The desired replicas; None: the API server did not report."""
        header = StatefulSetHeader(self._statefulset)
        timeout_ms = self._config.mq_client_api_timeout
        try:
            answer = succeeded(
                await invoke(self._client, self._address, RequestCode.GET_SCALE, header, timeout_ms=timeout_ms)
            )
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("reading the replicas failed", address=self._address, error=str(error))
            return None
        return decode_header(ScaleHeader, answer.ext_fields).spec_replicas

    async def find_consumers(self, topic: str) -> FoundConsumers | None:
        """The names of the desired pods, whether they run or not; None: the number is not known yet.

        Raises:
            RemotingError: there is no route, and the nameserver did not answer.
        """
        if self._instance.routes.route(topic) is None:
            await self._instance.update_topic_route(topic)
        if self._count is None:
            return None
        names = tuple(pod_name(self._statefulset, ordinal) for ordinal in range(self._count))
        return FoundConsumers(names, Requested(self._address))  # the requests are those of polls, not of passes

    async def query_assignment(self, topic: str) -> FoundAssignment | None:  # noqa: ARG002 - the same for each topic
        """None: no broker knows the ordinals of pods."""
        return None

    async def ask_assigner(
        self,
        topic: str,  # noqa: ARG002
        owned: Iterable[MessageQueue],  # noqa: ARG002
        mq_all: Iterable[MessageQueue],  # noqa: ARG002
    ) -> FoundAssignment | None:
        """None, as above."""
        return None
