"""Routes of topics, as a broker asks its nameservers for them."""

import trio

from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.broker.tables.store.escape import EscapeRoutes
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageQueue, TopicRouteData
from nodes.protocol.registry import decode_body_cached
from nodes.routes import OrderTopicConfError, topic_subscribe_info
from nodes.rpc.errors import RemotingError
from nodes.rpc.nameservers import Nameservers
from nodes.threads import ScheduledThread, try_lock

_INITIAL_DELAY_MS = 1_000
_GET_TOPIC_ROUTE_TIMEOUT_MS = 3_000
_LOCK_TIMEOUT_MS = 3_000


class TopicRouteInfoManager(Part):
    """Routes for escapes to other brokers and for broker-side rebalance; refreshed every 30 s.

    Publish and subscribe information are retained apart: a topic may have both, one or none.

    Mirrors:
        `org.apache.rocketmq.broker.topic.TopicRouteInfoManager`.
    """

    def __init__(self, broker: BrokerContext, nameservers: Nameservers) -> None:
        self._broker = broker
        self._nameservers = nameservers
        self._routes = EscapeRoutes(broker.host.rng("sendWhichQueue").randrange)
        self._subscribe_info: dict[str, tuple[MessageQueue, ...]] = {}
        self._thread = ScheduledThread(broker.host, "TopicRouteInfoManagerScheduledThread")
        self._lock = trio.Lock()

    async def start(self) -> None:
        """Start to refresh."""
        period_ms = self._broker.config.load_balance_poll_name_server_interval
        self._thread.at_fixed_rate("updateTopicRouteInfoFromNameServer", self._update_all, _INITIAL_DELAY_MS, period_ms)
        self._thread.start()

    async def try_to_find_queues(self, topic: str) -> tuple[MessageQueue, ...] | None:
        """The queues to write to; the nameserver is asked only if none is known."""
        if not self._routes.queues(topic):
            await self._update(topic, publish=True)
        return self._routes.queues(topic)

    async def topic_subscribe_info(self, topic: str) -> tuple[MessageQueue, ...] | None:
        """The queues to consume, sorted; the nameserver is asked only if none is known.

        Returns:
            None if the topic is unknown.
        """
        if not self._subscribe_info.get(topic):
            await self._update(topic, subscribe=True)
        return self._subscribe_info.get(topic)

    def next_queue(self, topic: str, avoiding: str | None) -> MessageQueue:
        """The next queue in turn, if possible not of the broker `avoiding`."""
        return self._routes.next_queue(topic, avoiding)

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
        return self._routes.find_broker_address_in_publish(broker_name)

    async def broker_address_in_subscribe(self, topic: str, broker_name: str | None) -> str | None:
        """The address of a broker to read from; the nameserver is asked for the route of a topic if none is known."""
        if broker_name is None:
            return None
        known = self._routes.find_broker_address_in_subscribe(broker_name)
        if known is None:
            await self._update(topic, publish=True)
        return known or self._routes.find_broker_address_in_subscribe(broker_name)

    async def _update_all(self) -> None:
        written = dict.fromkeys(self._routes.topics())
        allocated = dict.fromkeys(self._subscribe_info)
        for topic in allocated | written:
            await self._update(topic, publish=topic in written, subscribe=topic in allocated)

    async def _update(self, topic: str, *, publish: bool = False, subscribe: bool = False) -> None:
        """Ask for one route; after an error the known one stays.

        If the nameserver does not know the topic, its subscribe information is removed, except for a retry topic.
        """
        log = self._broker.host.log
        if not await try_lock(self._broker.host, self._lock, _LOCK_TIMEOUT_MS):
            return
        try:
            header = headers.GetRouteInfoRequestHeader(topic)
            answer = await self._nameservers.call(
                RequestCode.GET_ROUTEINFO_BY_TOPIC, header, timeout_ms=_GET_TOPIC_ROUTE_TIMEOUT_MS
            )
            if answer.code == ResponseCode.SUCCESS:
                route = decode_body_cached(TopicRouteData, answer.body)
                if subscribe:
                    self._subscribe_info[topic] = topic_subscribe_info(topic, route)
                if publish:
                    self._routes.install(topic, route)
            elif answer.code == ResponseCode.TOPIC_NOT_EXIST and not topic.startswith(RETRY_TOPIC_PREFIX):
                self._subscribe_info.pop(topic, None)
        except (RemotingError, OrderTopicConfError) as error:
            log.warning("updateTopicRouteInfoFromNameServer failed", topic=topic, error=str(error))
        finally:
            self._lock.release()
