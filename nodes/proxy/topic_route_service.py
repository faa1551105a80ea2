"""Routes of topics, of brokers and of clusters, in a cache; and which brokers sends avoid.

Mirrors:
    `org.apache.rocketmq.proxy.service.route.TopicRouteService`, `ClusterTopicRouteService`.
"""

from nodes.beliefs import Belief, BeliefKind
from nodes.client.tables.latency_fault import MQFaultStrategy
from nodes.config.proxy import ProxyConfig
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.java import hash_ordered
from nodes.protocol.model import TopicRouteData
from nodes.protocol.registry import decode_body_cached
from nodes.proxy.broker_calls import MQClientAPIFactory, broker_error
from nodes.proxy.loading_cache import LoadingCache
from nodes.proxy.tables.errors import CallError, TopicNotExistError
from nodes.proxy.tables.route_view import AddressableQueue, MessageQueueView
from nodes.routes import route_in_brief
from nodes.threads import ScheduledThread

_INT_RANGE = 2**32
_DETECT_PERIOD_MS = 3_000


class TopicRouteService:
    """What a proxy believes about routes; a topic that no nameserver knows is cached, too.

    Emits:
        ROUTE whenever a route was loaded and is another one; null: no nameserver knows the topic.
    """

    def __init__(self, host: Host, config: ProxyConfig, operations: MQClientAPIFactory) -> None:
        self._host = host
        self._config = config
        self._operations = operations
        self._faults = MQFaultStrategy(send_latency_enable=config.send_latency_enable)
        self._detector = ScheduledThread(host, "LatencyFaultToleranceScheduledThread")
        self._draw = host.rng("message queue views").randrange
        self._believed: dict[str, object] = {}
        self._views = LoadingCache(
            host,
            "TopicRouteCacheRefresh",
            config.topic_route_service_cache_refresh_seconds,
            config.topic_route_service_cache_expired_seconds,
            self._load,
            self._believe,
        )

    async def view(self, topic: str) -> MessageQueueView:
        """The route of a topic, of a broker's name or of a cluster's.

        Raises:
            TopicNotExistError: no nameserver knows it, as far as this proxy knows.
            CallError: it could not be loaded.
        """
        view = await self._views.get(topic)
        if view.route is None:
            raise TopicNotExistError(topic)
        return view

    async def route(self, topic: str) -> TopicRouteData:
        """As `view`, and only the route."""
        route = (await self.view(topic)).route
        assert route is not None
        return route

    async def master_address(self, broker_name: str) -> str | None:
        """The address of a broker's master; None: it has none now.

        Raises:
            CallError: the route of the broker is unknown.
        """
        return (await self.view(broker_name)).master_address(broker_name)

    async def fetch(self, topic: str) -> TopicRouteData | None:
        """Ask a nameserver for a route, past the cache; None: it knows none.

        Raises:
            CallError: there was no answer, or another error.
        """
        header = headers.GetRouteInfoRequestHeader(topic)
        answer = await self._operations.ask_nameserver(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise broker_error(answer)
        return decode_body_cached(TopicRouteData, answer.body)

    # --- where to send ----------------------------------------------------------------

    def start(self) -> None:
        """Start the detector, if there is one."""
        if self._config.start_detector_enable:
            self._detector.at_fixed_rate("detectByOneRound", self._detect, _DETECT_PERIOD_MS, _DETECT_PERIOD_MS)
            self._detector.start()

    def shutdown(self) -> None:
        """End the detector."""
        self._detector.stop()

    def next_queue(self, view: MessageQueueView) -> AddressableQueue | None:
        """The queue of the next message that has no group; None: there is none."""
        if not self._config.send_latency_enable:
            return view.write.next_queue()
        now_ms, tolerance = self._host.clock.now_ms(), self._faults.tolerance
        return view.write.next_queue_by_pipeline(
            (
                lambda queue: tolerance.is_available(queue.broker_name, now_ms),
                lambda queue: tolerance.is_reachable(queue.broker_name),
            )
        )

    def on_sent(self, broker_name: str, begin_ms: int, *, failed: bool) -> None:
        """A send has ended, which began at an instant of the wall clock."""
        now_ms = self._host.clock.now_ms()
        self._faults.update_fault_item(
            broker_name, now_ms - begin_ms, isolation=failed, reachable=not failed, now_ms=now_ms
        )

    async def _detect(self) -> None:
        """Ask each broker of earlier sends whether it answers, one after another."""
        tolerance, config = self._faults.tolerance, self._config
        for name in tolerance.broker_names():
            if not tolerance.begin_detection(name, self._host.clock.now_ms(), config.detect_interval):
                continue
            address = await self._resolve(name)
            if address is None:
                tolerance.remove(name)
            elif await self._answers(address):
                tolerance.on_detected(name)

    async def _resolve(self, broker_name: str) -> str | None:
        try:
            return await self.master_address(broker_name)
        except CallError:
            return None

    async def _answers(self, address: str) -> bool:
        """Ask a broker for the end of a queue of a cached topic, be that the name of a cluster or of a broker."""
        topics = hash_ordered(self._views.keys())
        if not topics:
            return False
        header = headers.GetMaxOffsetRequestHeader(topics[0], 0)
        code, timeout_ms = RequestCode.GET_MAX_OFFSET, self._config.detect_timeout
        try:
            answer = await self._operations.invoke(address, code, header, timeout_ms=timeout_ms)
        except CallError:
            return False
        return answer.code == ResponseCode.SUCCESS

    # --- loading ------------------------------------------------------------------------

    async def _load(self, topic: str) -> MessageQueueView:
        route = await self.fetch(topic)
        first, second, third, fourth = (self._draw(_INT_RANGE) for _ in range(4))
        return MessageQueueView.of(topic, route, (first, second, third, fourth))

    def _believe(self, topic: str, view: MessageQueueView) -> None:
        value = None if view.route is None else route_in_brief(view.route)
        if topic not in self._believed or self._believed[topic] != value:
            self._believed[topic] = value
            self._host.record(Belief(BeliefKind.ROUTE, topic, value))
