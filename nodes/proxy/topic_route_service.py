"""Routes of topics, of brokers and of clusters, in a cache.

Mirrors:
    `org.apache.rocketmq.proxy.service.route.TopicRouteService`, `ClusterTopicRouteService`.
"""

from nodes.beliefs import Belief, BeliefKind
from nodes.config.proxy import ProxyConfig
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import TopicRouteData
from nodes.protocol.registry import decode_body_cached
from nodes.proxy.broker_calls import MQClientAPIFactory, broker_error
from nodes.proxy.loading_cache import LoadingCache
from nodes.proxy.tables.errors import TopicNotExistError
from nodes.proxy.tables.route_view import MessageQueueView
from nodes.routes import route_in_brief

_INT_RANGE = 2**32


class TopicRouteService:
    """What a proxy believes about routes; a topic that no nameserver knows is cached, too.

    Emits:
        ROUTE whenever a route was loaded and is another one; null: no nameserver knows the topic.
    """

    def __init__(self, host: Host, config: ProxyConfig, operations: MQClientAPIFactory) -> None:
        self._host = host
        self._operations = operations
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

    async def _load(self, topic: str) -> MessageQueueView:
        route = await self.fetch(topic)
        first, second, third, fourth = (self._draw(_INT_RANGE) for _ in range(4))
        return MessageQueueView.of(topic, route, (first, second, third, fourth))

    def _believe(self, topic: str, view: MessageQueueView) -> None:
        value = None if view.route is None else route_in_brief(view.route)
        if topic not in self._believed or self._believed[topic] != value:
            self._believed[topic] = value
            self._host.record(Belief(BeliefKind.ROUTE, topic, value))
