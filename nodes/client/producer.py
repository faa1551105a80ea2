"""A producer process that sends at a steady rate, one message at a time."""

from collections.abc import Mapping

import attrs
import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.client.instance import ClientInstance
from nodes.client.latency_fault import MQFaultStrategy
from nodes.client.routes import TopicPublishInfo, topic_publish_info
from nodes.client.send_which_queue import SendWhichQueue
from nodes.config import ProducerConfig
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import AUTO_CREATE_TOPIC, ConsumerData, MessageQueue, ProducerData, TopicRouteData
from nodes.protocol.registry import encode_header
from nodes.rpc.errors import RemotingConnectError, RemotingError, RemotingTimeoutError
from nodes.rpc.typed import BrokerError, succeeded
from nodes.threads import ScheduledThread

_NS_PER_MS = 1_000_000
_FIRST_INDEX_BOUND = 1_000
_RETRY_CODES = (
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.SERVICE_NOT_AVAILABLE,
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.SYSTEM_BUSY,
    ResponseCode.NO_PERMISSION,
)


class SteadyProducer:
    """Sends a message to a topic every `1 / rate_per_s` seconds.

    A send that hangs delays those after it; they are made up for back to back.

    Mirrors:
        `org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl` under an application's timer.
    """

    def __init__(
        self,
        host: Host,
        config: ProducerConfig,
        *,
        group: str,
        topic: str,
        nameservers: tuple[str, ...],
        rate_per_s: int,
    ) -> None:
        self._host = host
        self._config = config
        self._group = group
        self._topic = topic
        self._rate_per_s = rate_per_s
        self.instance = ClientInstance(host, config, nameservers)
        self._publish: dict[str, TopicPublishInfo] = {}
        self._which = SendWhichQueue(host.rng("sendWhichQueue").randrange(_FIRST_INDEX_BOUND))
        self._faults = MQFaultStrategy(send_latency_enable=config.send_latency_enable)
        self._sent = 0
        self._timer = ScheduledThread(host, "application")
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Start, send, stop."""
        self.instance.register(self)
        self.instance.start()
        await self.instance.heartbeat_all()
        self._timer.at_fixed_rate("send", self._send_one, 0, 1_000 / self._rate_per_s)
        self._timer.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()
        await self.instance.unregister(self, self._group, is_consumer=False)
        self.instance.rpc.close_all()

    def request_shutdown(self) -> None:
        """Begin the orderly stop."""
        self._stopping.set()

    # --- what the instance asks for ------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """Topics that were sent to."""
        return tuple(self._publish)

    def consumer_data(self) -> ConsumerData | None:
        """None: this is a producer."""
        return None

    def producer_data(self) -> ProducerData:
        """Its group."""
        return ProducerData(self._group)

    def lacks_info(self, topic: str) -> bool:
        """Whether a topic that is sent to has no queues yet."""
        return topic in self._publish and not self._publish[topic].ok

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Take over the queues to send to."""
        if topic in self._publish:
            info = topic_publish_info(topic, route)
            self._publish[topic] = attrs.evolve(info, have_topic_router_info=True)

    def persist_offsets(self) -> None:
        """A producer has none."""

    # --- sending --------------------------------------------------------------------

    async def _send_one(self) -> None:
        self._sent += 1
        try:
            await self.send(self._topic, str(self._sent).encode())
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("send failed", topic=self._topic, error=str(error))

    async def send(self, topic: str, body: bytes) -> None:
        """Send synchronously, on other brokers again if need be, within one time-out.

        A timed-out attempt may have been stored, so a retry can double the message.

        Raises:
            RemotingError: no attempt was answered, or there is no queue to send to.
            BrokerError: the broker refused, and not in a way that another broker could cure.
        """
        deadline_ns = self._host.clock.monotonic_ns() + self._config.send_msg_timeout * _NS_PER_MS
        info = await self._find_publish_info(topic)
        last_broker: str | None = None
        error: RemotingError | BrokerError = RemotingTimeoutError(f"sending to {topic} took too long")
        for _ in range(1 + self._config.retry_times_when_send_failed):
            left_ms = (deadline_ns - self._host.clock.monotonic_ns()) // _NS_PER_MS
            if left_ms <= 0:
                break
            now_ms = self._host.clock.now_ms()
            queue = self._faults.select_one_message_queue(info.message_queues, self._which, last_broker, now_ms)
            last_broker = queue.broker_name
            try:
                await self._send_to(queue, body, left_ms)
            except RemotingError as failed:
                self._tell_fault(last_broker, now_ms, isolation=True, reachable=True)
                error = failed
            except BrokerError as refused:
                # RocketMQ takes a broker that refuses for one that cannot be reached.
                self._tell_fault(last_broker, now_ms, isolation=True, reachable=False)
                if refused.code not in _RETRY_CODES:
                    raise
                error = refused
            else:
                self._tell_fault(last_broker, now_ms, isolation=False, reachable=True)
                return
        raise error

    def _tell_fault(self, broker_name: str, begin_ms: int, *, isolation: bool, reachable: bool) -> None:
        now_ms = self._host.clock.now_ms()
        self._faults.update_fault_item(
            broker_name, now_ms - begin_ms, isolation=isolation, reachable=reachable, now_ms=now_ms
        )

    async def _find_publish_info(self, topic: str) -> TopicPublishInfo:
        """The queues to send to; asks the nameserver where none is known."""
        info = self._publish.setdefault(topic, TopicPublishInfo(()))
        if not info.ok:
            await self.instance.update_topic_route(topic)
            info = self._publish[topic]
        if not info.ok:
            raise RemotingConnectError(f"No route info of this topic: {topic}")
        return info

    async def _send_to(self, queue: MessageQueue, body: bytes, timeout_ms: int) -> None:
        address = self.instance.routes.find_broker_address_in_publish(queue.broker_name)
        if address is None:
            raise RemotingConnectError(f"The broker[{queue.broker_name}] not exist")
        header = headers.SendMessageRequestHeaderV2(
            self._group,
            queue.topic,
            AUTO_CREATE_TOPIC,
            self._config.default_topic_queue_nums,
            queue.queue_id,
            0,
            self._host.clock.now_ms(),
            0,
        )
        fields: Mapping[str, str] = encode_header(header)
        rpc = self.instance.rpc
        succeeded(await rpc.call(address, int(RequestCode.SEND_MESSAGE_V2), fields, body, timeout_ms=timeout_ms))
